"""What `pip install ./packages/reacher` gives."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import reacher

USE = """
import importlib, pkgutil, sys
for name in ("torch", "jax", "scipy", "pydantic", "matplotlib", "PIL", "grpc", "IPython"):
    sys.modules[name] = None  # importing it is an error
import gymnasium
env = gymnasium.make("reacher:reacher/Reacher-v0")
assert env.spec.id == "reacher/Reacher-v0" and env.spec.max_episode_steps == 1001
for env in (env, gymnasium.make_vec("reacher/Reacher-v0", num_envs=1)):
    env.reset(seed=0)
    env.step(env.action_space.sample())
import reacher
for module in pkgutil.walk_packages(reacher.__path__, "reacher."):
    if not module.name.startswith(("reacher.unity", "reacher.moving")):
        importlib.import_module(module.name)
print(reacher.__file__)
"""


def test_a_wheel_holds_the_arms_alone_and_they_play_from_any_folder(tmp_path):
    """Without the packages that the rest of the project needs."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = {"cwd": tmp_path, "capture_output": True, "text": True}
    here = Path(__file__).parents[1]
    command = [sys.executable, *"-m pip wheel -q --no-deps -w .".split(), here]
    built = subprocess.run(command, env=clean, **run)
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("no package index can be reached")
    assert not built.returncode, built.stderr
    [wheel] = tmp_path.glob(f"*-{reacher.__version__}-*.whl")
    archive = zipfile.ZipFile(wheel)
    [metadata] = (name for name in archive.namelist() if name.endswith("/METADATA"))
    needed = re.findall(r"^Requires-Dist: (\w+)(?!.*extra)", archive.read(metadata).decode(), re.M)
    assert sorted(needed) == ["gymnasium", "mujoco", "numba", "numpy"]
    tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"reacher"}

    archive.extractall(tmp_path)
    played = subprocess.run([sys.executable, "-c", USE], env=clean | {"PYTHONPATH": "."}, **run)
    assert not played.returncode, played.stderr
    assert played.stdout.startswith(str(tmp_path))
