"""Does the critic promise too much because of the maximum over its errors? For section 8.2.

    python -m research.overestimation

Trains `default`, the same without an end of learning, and TD3 (doc/extensions.ipynb), whose targets
take the smaller of two critics. After some episodes each plays one without noise, and a line of
`checkpoints/overestimation.csv` says by how much the critic's values exceed the returns that
followed: the mean over 20 arms and all decisions but the first 25, rewards scaled by ten.
"""

from __future__ import annotations

import numpy as np
import torch

from helpers import returns_that_followed
from reacher.episode import rollout
from reacher.files import write_whole
from research.training import as_csv, train_agent
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS

VARIANTS = {"default": {}, "no_end": {"anneal_episodes": None}, "td3": {"policy_delay": 2}}
SEEDS, EPISODES, ARMS = range(8120, 8123), (6, 20, 30), 20
RESULTS = CHECKPOINTS / "overestimation.csv"


def overestimation(agent, seed: int) -> float:
    """Mean of values minus returns of an agent in one episode without noise."""
    with open_environment("", ARMS, seed, {}) as environment:
        played = list(
            rollout(environment, lambda seen: agent.act(seen.astype(np.float32), explore=False))
        )
    observations, actions, rewards = (np.array(part) for part in zip(*played, strict=True))
    settings, critic = agent.settings, agent.ddpg.critic
    returns = returns_that_followed(settings.reward_scale * rewards, settings.discount)
    seen, chosen = (
        torch.from_numpy(part[: len(returns)].astype(np.float32)).flatten(0, 1)
        for part in (observations, actions)
    )
    with torch.no_grad():
        values = critic(seen, chosen).numpy().reshape(returns.shape)
    return float((values - returns)[25:].mean())


def main() -> None:
    torch.set_num_threads(1)
    definitions, lines = notebook.definitions(), []
    ddpg, td3 = definitions.DDPG, notebook.extensions().TD3
    for variant, overrides in VARIANTS.items():
        vars(definitions)["DDPG"] = td3 if variant == "td3" else ddpg
        settings = definitions.make_hyperparameters("default", overrides)
        for seed in SEEDS:

            def after_episode(agent, scores, seconds, line=(variant, seed)):
                if len(scores) in EPISODES:
                    found = overestimation(agent, 10_000 + line[1])
                    lines.append([*line, len(scores), f"{found:.3f}"])

            with open_environment("", ARMS, seed, {}) as environment:
                train_agent(environment, settings, ARMS, seed, EPISODES[-1], after_episode)
    vars(definitions)["DDPG"] = ddpg
    head = ["variant", "seed", "episode", "value_minus_return"]
    write_whole(RESULTS, as_csv([head, *lines]).encode())


if __name__ == "__main__":
    main()
