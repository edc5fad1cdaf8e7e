"""Pictures of the arms by MuJoCo's renderer, from observations alone.

Nothing of the simulation takes part: a model of its own holds floor, light and sky, and the arms
and goals of each picture are put into the scene before it is drawn.
"""

from __future__ import annotations

import ctypes.util
import importlib
import itertools
import math
import os
import sys

import numpy as np

from reacher.checks import integer, number
from reacher.physics import mujoco
from reacher.points import arm_points, touching
from reacher.task import GOAL_HEIGHT, GOAL_ORBIT, HAND_RADIUS, OBSERVATION_SIZE

FLOOR = -14.5  # m below the bases; a hand that hangs reaches down to -14
SPACING = np.array([24.0, 30.0, 0.0])  # m between bases, in a row and from row to row
LARGEST_FRAMED = 40.0  # m; spacing and camera heed no larger goal
TANGENT = math.tan(math.radians(14))  # of half the angle that a picture's longer side spans

# Red, green, blue and opacity, from 0 to 1.
POST, JOINT, ARM, HAND = (0.34, 0.38, 0.47), (0.47, 0.51, 0.60), (0.90, 0.91, 0.93), (0.2, 0.62, 1)
GOAL, TOUCHED_GOAL, RING = (0.80, 0.42, 0.66, 0.42), (0.20, 0.95, 0.45, 0.42), (1, 1, 1)
SURROUNDINGS = f"""<mujoco>
  <visual>
    <headlight ambient=".42 .42 .42" diffuse=".22 .22 .22" specular=".12 .12 .12"/>
    <rgba haze=".055 .071 .106 1"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="flat" rgb1=".055 .071 .106" width="8" height="8"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1=".118 .142 .192" rgb2=".137 .163 .218"
             width="256" height="256"/>
    <material name="floor" texture="tiles" texuniform="true" texrepeat=".077 .077" specular="0"/>
  </asset>
  <worldbody>
    <light directional="true" pos="-40 -60 90" dir="40 60 -90" diffuse=".62 .62 .62"/>
    <geom type="plane" size="0 0 1" pos="0 0 {FLOOR}" material="floor"/>
  </worldbody>
</mujoco>"""


class ArmRenderer:
    """Draws arms on a grid, without a screen, as arrays of pixels.

    A goal that the hand touches is green, glows and wears a white ring; else it is pink.

    Args:
        arms: how many.
        goal_size: diameter of the goals, m.
        width, height: of the pictures, pixels.

    Raises:
        TypeError, ValueError, RuntimeError: a bad number; or OpenGL does not work here.
    """

    def __init__(
        self, arms: int, goal_size: float = 5.0, width: int = 900, height: int = 600
    ) -> None:
        self._context = None  # close() may follow a constructor that failed
        self._arms = integer("arms", arms, 1, 10_000)
        self._goal_size = number("goal_size", goal_size, 0, 1e6)
        width, height = integer("width", width, 16, 4096), integer("height", height, 16, 4096)
        slope = np.array([width, height]) / max(width, height) * TANGENT
        columns = math.ceil(math.sqrt(0.66 * arms * width / height))
        self._places, self._camera = on_grid(arms, columns, min(goal_size, LARGEST_FRAMED), slope)
        self._model = model = mujoco.MjModel.from_xml_string(SURROUNDINGS)
        view = model.vis.global_
        view.offwidth, view.offheight = width, height
        view.fovy = 2 * np.degrees(np.arctan(slope[1]))
        model.stat.center[:], model.stat.extent = 0, self._camera.distance
        model.vis.map.znear, model.vis.map.zfar, model.vis.map.shadowclip = 0.02, 8, 1
        self._data = mujoco.MjData(model)
        mujoco.mj_forward(model, self._data)
        self._scene = mujoco.MjvScene(model, maxgeom=9 * arms + 16)
        self._view = mujoco.MjrRect(0, 0, width, height)
        name = opengl()
        try:
            self._gl = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
            self._gl.make_current()
            self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        except Exception as error:  # of the libraries, which have no common type
            raise RuntimeError(
                f"OpenGL does not work here by {name} ({error!r}). Set MUJOCO_GL to egl, glfw or "
                "osmesa; the last needs no screen, and on Debian 'apt-get install libosmesa6'"
            ) from error

    def frame(self, observations: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3) uint8 of observations (arms, 33)."""
        if np.shape(observations) != (self._arms, OBSERVATION_SIZE):
            raise ValueError(
                f"observations must have shape {(self._arms, OBSERVATION_SIZE)}, not "
                f"{np.shape(observations)}: environments other than the arms draw themselves"
            )
        mujoco.mjv_updateScene(
            self._model, self._data, mujoco.MjvOption(), mujoco.MjvPerturb(), self._camera,
            mujoco.mjtCatBit.mjCAT_ALL.value, self._scene,
        )  # fmt: skip
        points = [  # from Unity's axes (y up) to the pictures' (z up)
            point[:, [0, 2, 1]].astype(np.float64) + self._places
            for point in arm_points(observations).values()
        ]
        for base, elbow, hand, _ in zip(*points, strict=True):
            self._rod(np.array([*base[:2], FLOOR]), base, 0.14, POST)
            self._rod(base, elbow, 0.5, ARM)
            self._rod(elbow, hand, 0.5, ARM)
            self._ball(base, [1.0] * 3, JOINT)
            self._ball(elbow, [0.75] * 3, JOINT)
            self._ball(hand, [HAND_RADIUS] * 3, HAND)
        touched = touching(observations, self._goal_size)
        radius = self._goal_size / 2
        for goal, touch in zip(points[-1], touched, strict=True):  # what is see-through comes last
            if touch:
                self._ball(goal, [1.2 * radius, 1.2 * radius, 0.12], RING, glow=0.7)
            self._ball(goal, [radius] * 3, TOUCHED_GOAL if touch else GOAL, glow=0.4 * touch)
        self._gl.make_current()  # another one may have drawn since
        pixels = np.empty((self._view.height, self._view.width, 3), np.uint8)
        mujoco.mjr_render(self._view, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, self._view, self._context)
        return pixels[::-1].copy()  # OpenGL counts from the bottom

    def close(self) -> None:
        """Free what the graphics library holds. It may be called again."""
        if self._context is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
        self._context = None

    def _ball(self, place, radii, color, glow=0.0):
        self._geom(mujoco.mjtGeom.mjGEOM_ELLIPSOID, radii, place, color, glow)

    def _rod(self, start, end, radius, color):
        kind = mujoco.mjtGeom.mjGEOM_CAPSULE
        mujoco.mjv_connector(self._geom(kind, [radius] * 3, start, color), kind, radius, start, end)

    def _geom(self, kind, size, place, color, glow=0.0):
        geom = self._scene.geoms[self._scene.ngeom]
        self._scene.ngeom += 1
        rgba = np.array([*color, 1.0][:4], np.float32)
        mujoco.mjv_initGeom(geom, kind, np.array(size, float), place, np.eye(3).ravel(), rgba)
        geom.category = mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # mere decoration casts no shadow
        geom.emission, geom.specular, geom.shininess = glow, 0.3, 0.4
        return geom


def opengl() -> str:
    """The module of MuJoCo that draws: what MUJOCO_GL names, or what needs the least here."""
    if asked := os.environ.get("MUJOCO_GL", "").lower().strip():
        return asked
    if sys.platform != "linux" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return "cgl" if sys.platform == "darwin" else "glfw"
    return "osmesa" if ctypes.util.find_library("OSMesa") else "egl"


def on_grid(
    arms: int, columns: int, goal_size: float, slope: np.ndarray
) -> tuple[np.ndarray, mujoco.MjvCamera]:
    """Where the bases stand, (arms, 3), m, and the nearest camera that sees all that arms do.

    `slope` is half of the picture's width and height, at a distance of 1.
    """
    outside = GOAL_ORBIT + 0.6 * goal_size  # of a touched goal's ring
    row, column = np.divmod(np.arange(arms), columns)
    grid = np.stack([column - column.max() / 2, row.max() / 2 - row, 0 * row], -1)
    places = grid * SPACING * max(1.0, (2 * outside + 1) / SPACING[0])

    around, low, high, tilt = (15, -15, 15, 18) if arms == 1 else (11, -9, 5, 36)
    x, y, _ = places.max(0) + max(around, outside)
    z = min(low, GOAL_HEIGHT - 0.6 * goal_size), max(high, GOAL_HEIGHT + 0.6 * goal_size)
    corners = np.array(list(itertools.product((-x, x), (-y, y), z)))
    forward = np.array([0, math.cos(math.radians(tilt)), -math.sin(math.radians(tilt))])
    axes = np.array([[1.0, 0, 0], np.cross([1.0, 0, 0], forward)])  # of the picture: right, up
    target = np.zeros(3)
    for _ in range(20):  # what is nearer looks larger, so the middle moves with the distance
        depth, across = (corners - target) @ forward, (corners - target) @ axes.T
        distance = (np.abs(across) / slope - depth[:, None]).max()
        seen = across / (distance + depth)[:, None]
        target = target + (seen.min(0) + seen.max(0)) / 2 * distance @ axes
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.azimuth, camera.elevation = 90, -tilt  # along Unity's z axis, with x to the right
    camera.lookat[:], camera.distance = target, distance
    return places, camera
