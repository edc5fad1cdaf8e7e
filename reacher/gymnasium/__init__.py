"""The Reacher for Gymnasium: one arm, or many arms as a vector environment.

    import gymnasium
    import reacher

    env = gymnasium.make("reacher/Reacher-v0")  # without the import: "reacher:reacher/Reacher-v0"
    envs = gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)

Importing this package, as `import reacher` does, registers that name and three harder variants:
`reacher/ReacherSmallGoals-v0`, `reacher/ReacherQuickGoals-v0` and
`reacher/ReacherDelayedRewards-v0`. Both kinds run the simulation of `reacher.ReacherEnvironment`.
`DelayedRewards` holds the rewards of any environment back. `unity_wrapper` goes the other way:
environments of Gymnasium with the interface of Unity's.
"""

from typing import Any

import gymnasium

from reacher.gymnasium.arms import ReacherEnv, ReacherVectorEnv
from reacher.gymnasium.delayed_rewards import DelayedRewards
from reacher.task import EPISODE_DECISIONS, SOLVED_SCORE

ENV_ID = "reacher/Reacher-v0"

COMMON: dict[str, Any] = {
    "entry_point": "reacher.gymnasium:ReacherEnv",
    "max_episode_steps": EPISODE_DECISIONS,
    "reward_threshold": SOLVED_SCORE,
}
IN_ONE_SIMULATION: dict[str, Any] = {"vector_entry_point": "reacher.gymnasium:ReacherVectorEnv"}

gymnasium.register(ENV_ID, **COMMON, **IN_ONE_SIMULATION)
gymnasium.register(
    "reacher/ReacherSmallGoals-v0", **COMMON, **IN_ONE_SIMULATION, kwargs={"goal_size": 2.0}
)
gymnasium.register(
    "reacher/ReacherQuickGoals-v0", **COMMON, **IN_ONE_SIMULATION, kwargs={"goal_speed": 2.0}
)
gymnasium.register(  # Gymnasium allows no wrappers within a vector environment of its own kind
    "reacher/ReacherDelayedRewards-v0",
    **COMMON,
    additional_wrappers=(DelayedRewards.wrapper_spec(every=15),),
)

__all__ = ["ENV_ID", "DelayedRewards", "ReacherEnv", "ReacherVectorEnv"]
