"""Named sets of hyperparameters: what differs from the notebook's defaults.

`default` differs in nothing. `fast` looks one reward ahead, has a shorter horizon, and learns from
larger batches. The others have the settings of the three references of doc/differences.md, run by
the notebook's algorithm.
"""

from __future__ import annotations

from typing import Any

# Reference C: batch normalization, uniform replay, Ornstein-Uhlenbeck noise.
DEEPRL = {
    "mirrors": "none",
    "actor_hidden": (256, 128),
    "critic_hidden": (128, 128),
    "critic_action_layer": 2,
    "input_normalization": "batch",
    "actor_normalization": "batch",
    "critic_normalization": "none",
    "initialization": "fan_in",
    "noisy_layers": False,
    "action_noise": "ou",
    "noise_schedule": "linear",
    "noise_decay": 1e-5,
    "noise_floor": 0.025,
    "reward_scale": 1.0,
    "discount": 0.99,
    "n_step": 1,
    "replay": "uniform",
    "batch_size": 256,
    "train_freq": 20,
    "gradient_steps": 10,
    "anneal_gradient_steps": 10,
    "anneal_episodes": None,
    "policy_delay": 1,
    "critic_gradient_clip": 1.0,
    "tau": 1e-3,
}

# Reference A: prioritized replay and long update phases. Its code has NoisyNet switched off; its
# text wants NoisyNet instead of noise on the actions, with an initial sigma of 0.1, which is 1.22
# divided by the square root of 150 inputs: {"noisy_layers": True, "noisy_noise": "ou",
# "noisy_sigma": 1.22, "action_noise": "none"}.
REACHER_ARM = {
    "mirrors": "none",
    "actor_hidden": (150, 150),
    "critic_hidden": (150, 150),
    "input_normalization": "batch",
    "actor_normalization": "none",
    "critic_normalization": "none",
    "negative_slope": 0.05,
    "noisy_layers": False,
    "action_noise": "ou",
    "ou_theta": 0.01,
    "noise_scale": 0.75,
    "noise_schedule": "episode",
    "noise_decay": 0.92,
    "reward_scale": 1.0,
    "n_step": 1,
    "replay_lifetime": 1_000_000,
    "priority_error": "squared",
    "priority_epsilon": 1e-9,
    "importance_exponent_start": 1.0,
    "batch_size": 128,
    "learning_starts": 10_000,
    "train_freq": 50,
    "gradient_steps": 100,
    "anneal_gradient_steps": 100,
    "anneal_episodes": None,
    "policy_delay": 1,
    "weight_decay": 1e-4,
    "tau": 5e-4,
    "zero_target_critic": True,
}

# Reference B: noise that shrinks as the score nears the goal. It names few numbers: the layer sizes
# are those of its training notes (run 50); the rhythm is the course's usual advice, and the batch
# size is ours.
WALKTHROUGH = {
    "mirrors": "none",
    "actor_hidden": (256, 128),
    "critic_hidden": (256, 128),
    "critic_action_layer": 2,
    "input_normalization": "batch",
    "actor_normalization": "none",
    "critic_normalization": "none",
    "negative_slope": 0.01,
    "noisy_layers": False,
    "action_noise": "ou",
    "noise_schedule": "score",
    "reward_scale": 1.0,
    "discount": 0.99,
    "n_step": 1,
    "replay": "uniform",
    "batch_size": 128,
    "train_freq": 20,
    "gradient_steps": 10,
    "anneal_gradient_steps": 10,
    "anneal_episodes": None,
    "policy_delay": 1,
    "tau": 1e-3,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {
        "n_step": 1,
        "discount": 0.95,
        "batch_size": 128,
        "anneal_gradient_steps": 10,
        "anneal_episodes": 7,
    },
    "deeprl": DEEPRL,
    "reacher_arm": REACHER_ARM,
    "walkthrough": WALKTHROUGH,
}
