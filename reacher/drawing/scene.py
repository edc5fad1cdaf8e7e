"""The arms in three dimensions, by MuJoCo's renderer, from observations alone.

Nothing of the simulation takes part: a model of its own holds floor, light and sky, and the arms
and goals of each picture are put into the scene before it is drawn. So physics and speed stay as
they are, and arms of a Unity build or of a recording look the same.
"""

from __future__ import annotations

import contextlib
import math

import mujoco
import numpy as np

from reacher.drawing import backends, style
from reacher.drawing.points import (
    arm_points,
    arm_positions,
    columns_for,
    require_arms,
    touching,
    upright,
)
from reacher.task import GOAL_HEIGHT, GOAL_ORBIT, HAND_RADIUS

FEWEST_PIXELS, MOST_PIXELS = 16, 4096  # of a side


class Camera:
    """Where a picture is taken from, and where a point of space is in it.

    Args:
        width, height: of the picture, pixels.
        elevation: degrees; the camera looks along `style.AZIMUTH`, down by the elevation.
    """

    def __init__(self, width: int, height: int, elevation: float = style.ELEVATION) -> None:
        self.width, self.height = width, height
        self.elevation = elevation
        self.target, self.distance = np.zeros(3), 100.0  # m
        turn, tilt = math.radians(style.AZIMUTH), math.radians(elevation)
        self.forward = np.array(
            [math.cos(turn) * math.cos(tilt), math.sin(turn) * math.cos(tilt), -math.sin(tilt)]
        )
        self.right = np.array([math.sin(turn), -math.cos(turn), 0.0])
        self.up = np.cross(self.right, self.forward)
        self.focal = max(width, height) / 2 / math.tan(math.radians(style.FIELD_OF_VIEW) / 2)

    @property
    def vertical_angle(self) -> float:
        """The height that the picture spans, degrees."""
        return math.degrees(2 * math.atan(self.height / 2 / self.focal))

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels (..., 2), from the left and from the top, of points (..., 3), m, z up."""
        away = points - (self.target - self.distance * self.forward)
        depth = away @ self.forward
        return np.stack(
            [
                self.width / 2 + self.focal * (away @ self.right) / depth,
                self.height / 2 - self.focal * (away @ self.up) / depth,
            ],
            -1,
        )

    def frame(self, points: np.ndarray, bottom: int = 0) -> None:
        """Go as near as it can with all points (n, 3) in the picture, and in its middle.

        Args:
            points: m, z up.
            bottom: pixels at the lower edge to leave free.
        """
        self.target = (points.min(0) + points.max(0)) / 2
        away = points - self.target
        slope = np.array([self.width, self.height - bottom]) / 2 / self.focal
        for _ in range(20):  # what is nearer looks larger, so the middle moves with the distance
            depth = away @ self.forward
            across = np.stack([away @ self.right, away @ self.up], -1)
            self.distance = style.MARGIN * float((np.abs(across) / slope - depth[:, None]).max())
            seen = across / (self.distance + depth)[:, None]
            middle = (seen.min(0) + seen.max(0)) / 2 * self.distance
            self.target = self.target + middle[0] * self.right + middle[1] * self.up
            away = points - self.target
        self.target = self.target - bottom / 2 / self.focal * self.distance * self.up


def outline(place: np.ndarray, framed: tuple[float, float, float], goal_size: float) -> np.ndarray:
    """Points (n, 3) around what a camera should frame of an arm at a place (3,)."""
    around, below, above = framed
    goal = style.RING_OUTSIDE * min(goal_size, style.LARGEST_FRAMED_GOAL) / 2
    around = max(around, GOAL_ORBIT + goal)
    below, above = min(below, GOAL_HEIGHT - goal), max(above, GOAL_HEIGHT + goal)
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return place + np.concatenate(
        [
            np.stack(
                [around * np.cos(angle), around * np.sin(angle), np.full(len(angle), height)], -1
            )
            for height in (below, above)
        ]
    )


class ArmScene:
    """Draws arms on their grid as arrays of pixels. It needs no screen.

    Args:
        arms: how many.
        width, height: of the picture, pixels.
        goal_size: diameter of the goals, m.
        columns: arms in a row; None: by `columns_for`.
        framed: what of an arm the camera frames, of `reacher.drawing.style`.
        bottom: pixels at the lower edge that the arms leave free, for a line of text.
        elevation: of the camera above the horizon, degrees; None: by the number of arms.
        backend: "glfw", "egl", "osmesa" or "cgl"; None: the first that works.

    Raises:
        ValueError: a number out of range.
        RuntimeError: no backend works here, or not the one that is named.
    """

    def __init__(
        self,
        arms: int = 1,
        width: int = style.PICTURE_SIZE,
        height: int = style.PICTURE_SIZE,
        goal_size: float = 5.0,
        columns: int | None = None,
        framed: tuple[float, float, float] | None = None,
        bottom: int = 0,
        elevation: float | None = None,
        backend: str | None = None,
    ) -> None:
        self._gl = self._drawing = None  # here, since close() may follow a constructor that failed
        if not all(FEWEST_PIXELS <= side <= MOST_PIXELS for side in (width, height)):
            raise ValueError(
                f"width and height must be from {FEWEST_PIXELS} to {MOST_PIXELS} "
                f"pixels, not {width} and {height}"
            )
        self.arms, self.goal_size = arms, goal_size
        self.arm_positions = arm_positions(arms, columns or columns_for(arms), goal_size)
        if elevation is None:
            elevation = style.ONE_ARM_ELEVATION if arms == 1 else style.ELEVATION
        self.camera = Camera(width, height, elevation=elevation)
        framed = framed or (style.REACH if arms == 1 else style.WORKPLACE)
        around = [outline(place, framed, goal_size) for place in self.arm_positions]
        self.camera.frame(np.concatenate(around), bottom)
        self._model = mujoco.MjModel.from_xml_string(
            surroundings(self.arm_positions, goal_size, self.camera)
        )
        self._data = mujoco.MjData(self._model)
        mujoco.mj_forward(self._model, self._data)
        self._open(backend or backends.working_backend())
        self._scene = mujoco.MjvScene(self._model, maxgeom=8 * arms + 16)
        self._options, self._nobody = mujoco.MjvOption(), mujoco.MjvPerturb()
        self._eye = free_camera(self.camera)
        self._pixels = np.empty((height, width, 3), np.uint8)

    def _open(self, backend: str | None) -> None:
        if backend is None:
            tried = ", ".join(backends.candidates()) or "none, by MUJOCO_GL"
            raise RuntimeError(
                f"no OpenGL backend works here (tried {tried}): install one, "
                "such as Debian's package libosmesa6"
            )
        width, height = self.camera.width, self.camera.height
        try:
            self._gl = backends.context(backend, width, height)
            self._drawing = mujoco.MjrContext(
                self._model, mujoco.mjtFontScale.mjFONTSCALE_100.value
            )
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._drawing)
        except Exception as error:  # of the libraries, which have no common type
            self.close()
            raise RuntimeError(
                f"the OpenGL backend {backend} does not work here: {error!r}; "
                "glfw, egl, osmesa and, on macOS, cgl are allowed"
            ) from None
        self.backend = backend

    def frame(self, observations: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3) uint8 of observations (arms, 33), or (33,) of one arm.

        Raises:
            ValueError: observations of something else, or of another number of arms.
            RuntimeError: the scene is closed.
        """
        if self._gl is None:
            raise RuntimeError("frame() of a closed scene: make a new one")
        observations = require_arms(np.atleast_2d(observations))
        if len(observations) != self.arms:
            raise ValueError(f"this scene has {self.arms} arms, not {len(observations)}")
        self._gl.make_current()  # another scene may have been drawn since
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._options,
            self._nobody,
            self._eye,
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )
        add_arms(self._scene, self._model, observations, self.arm_positions, self.goal_size)
        view = mujoco.MjrRect(0, 0, self.camera.width, self.camera.height)
        mujoco.mjr_render(view, self._scene, self._drawing)
        mujoco.mjr_readPixels(self._pixels, None, view, self._drawing)
        return self._pixels[::-1].copy()  # OpenGL counts from the bottom

    def close(self) -> None:
        """Free what the graphics library holds. It may be called again."""
        if self._gl is not None:
            if self._drawing is not None:
                self._gl.make_current()
                self._drawing.free()
            self._gl.free()
        self._gl = self._drawing = None

    def __enter__(self) -> ArmScene:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the process half of it may be gone
            self.close()


def free_camera(camera: Camera) -> mujoco.MjvCamera:
    """MuJoCo's camera at the place of ours."""
    eye = mujoco.MjvCamera()
    eye.type = mujoco.mjtCamera.mjCAMERA_FREE
    eye.azimuth, eye.elevation = style.AZIMUTH, -camera.elevation
    eye.lookat[:], eye.distance = camera.target, camera.distance
    return eye


def surroundings(spots: np.ndarray, goal_size: float, camera: Camera) -> str:
    """MuJoCo XML of what is around arms at `spots` (arms, 3), m: floor, sky, light, ring's form.

    Args:
        goal_size: diameter, m.
        camera: of the largest picture.
    """

    def row(values):
        return " ".join(f"{value:.6g}" for value in values)

    extent = float(np.ptp(spots, axis=0).max()) / 2 + 30
    corners, faces = ring(max(goal_size, 0.1) / 2 * style.RING_OUTSIDE, style.RING_WIDTH)
    first, second = map(row, style.FLOOR_COLORS)
    repeat = 1 / (2 * style.SQUARE)
    shadows = min(
        style.SHADOW_SIZE, 2 ** math.ceil(math.log2(3 * max(camera.width, camera.height)))
    )
    return f"""<mujoco model="arms">
  <visual>
    <global offwidth="{camera.width}" offheight="{camera.height}"
            fovy="{camera.vertical_angle:.9g}"/>
    <quality shadowsize="{shadows}" offsamples="{style.SAMPLES}" numslices="32"/>
    <headlight ambient="{row([style.AMBIENT] * 3)}" diffuse="{row([style.HEADLIGHT] * 3)}"
               specular="{row([style.SHINE / 2] * 3)}"/>
    <map znear="{0.02 * camera.distance / extent}" zfar="{8 * camera.distance / extent}"
         haze="0.3" shadowclip="1.5"/>
    <rgba haze="{row(style.SKY)} 1"/>
  </visual>
  <statistic center="0 0 0" extent="{extent}"/>
  <asset>
    <texture name="sky" type="skybox" builtin="flat" rgb1="{row(style.SKY)}" width="8" height="8"/>
    <texture name="squares" type="2d" builtin="checker" rgb1="{first}" rgb2="{second}"
             width="256" height="256"/>
    <material name="floor" texture="squares" texuniform="true" texrepeat="{repeat} {repeat}"
              specular="0"/>
    <mesh name="ring" vertex="{row(corners.ravel())}" face="{row(faces.ravel())}"/>
  </asset>
  <worldbody>
    <light directional="true" pos="{row(style.SUN_FROM)}" dir="{row(-np.array(style.SUN_FROM))}"
           diffuse="{row([style.SUN] * 3)}" specular="{row([style.SHINE] * 3)}"/>
    <geom type="plane" size="0 0 1" pos="0 0 {style.FLOOR}" material="floor"/>
    <geom type="mesh" mesh="ring" rgba="0 0 0 0" contype="0" conaffinity="0" group="5"/>
  </worldbody>
</mujoco>"""


def ring(
    radius: float, thickness: float, around: int = 48, across: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """A lying ring: corners (n, 3), m, and triangles (m, 3) of their numbers."""
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)[:, None]
    turn = np.linspace(0, 2 * np.pi, across, endpoint=False)[None]
    out = radius + thickness * np.cos(turn)
    corners = np.stack(
        [out * np.cos(angle), out * np.sin(angle), thickness * np.sin(turn) + 0 * angle], -1
    ).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    a, b = across * i + j, across * ((i + 1) % around) + j
    c, d = across * ((i + 1) % around) + (j + 1) % across, across * i + (j + 1) % across
    return corners, np.concatenate(
        [np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)]
    )


def add_arms(
    scene: mujoco.MjvScene,
    model: mujoco.MjModel,
    observations: np.ndarray,
    spots: np.ndarray,
    goal_size: float,
) -> None:
    """Put arms and goals into a scene that has room for 8 more geoms each.

    Args:
        model: of `surroundings`; it holds the ring's form.
        observations: (arms, 33).
        spots: (arms, 3), where the bases are, m.
        goal_size: diameter, m.
    """
    point = {
        name: upright(value).astype(np.float64) + spots
        for name, value in arm_points(observations).items()
    }
    touched = touching(observations, goal_size)
    for base, elbow, hand in zip(point["base"], point["elbow"], point["hand"], strict=True):
        _rod(scene, [*base[:2], style.FLOOR], base, style.POST_RADIUS, style.POST)
        _ball(scene, base, style.BASE_RADIUS, style.BASE)
        _rod(scene, base, elbow, style.ARM_RADIUS, style.ARM)
        _ball(scene, elbow, style.ELBOW_RADIUS, style.ELBOW)
        _rod(scene, elbow, hand, style.ARM_RADIUS, style.ARM)
        _ball(scene, hand, HAND_RADIUS, style.HAND)
    for goal, touch in zip(point["goal"], touched, strict=True):
        if touch:
            _ring(scene, model, goal)
            _ball(scene, goal, goal_size / 2, style.TOUCHED_GOAL, style.TOUCHED_OPACITY, style.GLOW)
        else:
            _ball(scene, goal, goal_size / 2, style.GOAL, style.GOAL_OPACITY)


def _geom(scene, kind, size, place, turn, color, opacity=1.0, glow=0.0):
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(
        geom,
        kind,
        np.asarray(size, np.float64),
        np.asarray(place, np.float64),
        np.asarray(turn, np.float64).ravel(),
        np.array([*color, opacity], np.float32),
    )
    geom.category = mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # mere decoration casts no shadow
    geom.emission, geom.specular, geom.shininess = glow, 0.3, 0.4
    scene.ngeom += 1
    return geom


def _ball(scene, place, radius, color, opacity=1.0, glow=0.0):
    _geom(scene, mujoco.mjtGeom.mjGEOM_SPHERE, [radius] * 3, place, np.eye(3), color, opacity, glow)


def _rod(scene, start, end, radius, color):
    geom = _geom(scene, mujoco.mjtGeom.mjGEOM_CAPSULE, [radius] * 3, start, np.eye(3), color)
    mujoco.mjv_connector(
        geom,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        radius,
        np.asarray(start, np.float64),
        np.asarray(end, np.float64),
    )


def _ring(scene, model, place):
    turn = np.empty(9)  # MuJoCo turns a form to its principal axes
    mujoco.mju_quat2Mat(turn, model.mesh_quat[0])
    geom = _geom(scene, mujoco.mjtGeom.mjGEOM_MESH, [1.0] * 3, place, turn, style.RING, 1.0, 0.7)
    geom.dataid = 0  # twice the mesh's number; odd numbers are convex hulls
