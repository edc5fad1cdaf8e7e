"""The Reacher for Gymnasium: one arm, or many arms as a vector environment.

    import gymnasium
    import reacher

    env = gymnasium.make("reacher/Reacher-v0")  # without the import: "reacher:reacher/Reacher-v0"
    envs = gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)

Importing this package, as `import reacher` does, registers that name and two harder variants,
`reacher/ReacherSmallGoals-v0` and `reacher/ReacherQuickGoals-v0`. `unity_wrapper` goes the other
way: environments of Gymnasium with the interface of Unity's.
"""

import gymnasium

from reacher.gymnasium.arms import ReacherEnv, ReacherVectorEnv
from reacher.task import EPISODE_DECISIONS, SOLVED_SCORE

for name, options in (
    ("Reacher", {}),
    ("ReacherSmallGoals", {"goal_size": 2.0}),
    ("ReacherQuickGoals", {"goal_speed": 2.0}),
):
    gymnasium.register(
        f"reacher/{name}-v0",
        entry_point="reacher.gymnasium:ReacherEnv",
        vector_entry_point="reacher.gymnasium:ReacherVectorEnv",
        max_episode_steps=EPISODE_DECISIONS,
        reward_threshold=SOLVED_SCORE,
        kwargs=options,
    )

__all__ = ["ReacherEnv", "ReacherVectorEnv"]
