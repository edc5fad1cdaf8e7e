"""The Unity build of Reacher on today's Python: `unityagents` 0.4.0, adapted as it is imported.

The course's builds are Unity programs ("players") that speak the protocol of ML-Agents v0.4, for
which PyPI's `unityagents` is the client. Five things keep its code from running as it did in 2018,
and importing this package mends them without a change to the installed one:

1. Its message classes were generated for protobuf 3.5, and current protobuf refuses to load them.
   They are rebuilt from the descriptions that those files contain.
2. It names `np.float_`, which NumPy 2 has not: the module that uses it gets it, not NumPy itself.
3. It keeps its connection in a class attribute, so that no second environment works in a process,
   waits forever for a player that has died, and leaves a thread behind on which Python hangs at its
   exit. `client` has another in that part's place.
4. Its observations were float64; today's protobuf makes float32 of them. They are converted.
5. It sets up Python's root logger at import. That is held off.

So the original `unityagents.UnityEnvironment` works, as course notebooks call it. `open_unity` adds
the finding of the file, a free port and errors that say what to do. `server` is a stand-in for the
build, and `launcher` makes a file that starts it. `UnityVectorEnv` makes
Gymnasium's of an environment.
"""

# ruff: noqa: E402
from importlib.util import find_spec

names = "grpc", "google", "communicator_objects"  # of grpcio, protobuf, unityagents
if missing := [name for name in names if find_spec(name) is None]:
    raise ModuleNotFoundError(
        f"the Unity build needs {missing[0]}, which is not installed; run\n"
        "    pip install grpcio protobuf pillow\n"
        "    pip install --no-deps unityagents==0.4.0",
        name=missing[0],
    )

from reacher.unity.client import UnityError, open_unity
from reacher.unity.launcher import unity_launcher
from reacher.unity.protocol import messages, unityagents
from reacher.unity.vector import UnityVectorEnv

__all__ = [
    "UnityError",
    "UnityVectorEnv",
    "messages",
    "open_unity",
    "unity_launcher",
    "unityagents",
]
