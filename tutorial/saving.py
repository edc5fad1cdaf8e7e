"""What the future of a training depends on: taken from an agent, and given back to one.

That is the networks, the averages of the optimizers, the memory with its priorities, all random
generators, the counters, and the environment. Between two episodes that is all: the n-step windows
are empty then, and noise that has a memory begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tapejit import compiled
from tutorial.health import require_finite
from tutorial.protocols import (
    DDPG,
    Agent,
    Environment,
    PrioritizedReplay,
    Replay,
    SavedEnvironment,
)
from tutorial.randomness import random_states, restore_random_states
from tutorial.run_files import before_of, completed
from tutorial.states import TrainingState

COUNTERS = (
    "env_steps",
    "episodes",
    "annealed_episodes",
    "num_updates",
    "first_score",
    "best_score",
    "largest_reward",
    "log",
)


@dataclass
class History:
    """What a training has done so far, besides what its agent has become.

    Attributes:
        scores: of the episodes, means over the arms.
        lines: of the score file.
        evaluations: lines of the file of evaluations.
        seconds: wall clock.
        best: weights of actor and critic after the best episode, by the network's name.
    """

    scores: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    evaluations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    best: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)


def save_state(
    states: TrainingState, agent: Agent, environment: Environment, past: History | None = None
) -> None:
    """Write all that the future of a training depends on, between two episodes.

    Once learning has ended that is not the memory, and states become small.

    Raises:
        OSError: the disk is full or gone; the states before are as they were.
        FloatingPointError: a number is not finite, so nothing could go on from it; likewise.
    """
    past, waiting = past or History(), agent.new_transitions
    facts = {name: getattr(agent, name) for name in COUNTERS} | {
        "settings": agent.settings.model_dump(mode="json"),
        "environment": environment_state(environment),
        "scores": past.scores,
        "lines": past.lines,
        "evaluations": past.evaluations,
        "seconds": past.seconds,
    }
    state = {
        "facts": json.dumps(facts),
        "learner": learner_state(agent.learner.synced()),
        "replay": replay_state(agent.replay, is_needed=agent.anneal_factor() > 0),
        "new_transitions": torch.from_numpy(np.concatenate(waiting)) if waiting else None,
        "best": past.best,
        "randomness": random_states(),
    }
    for name, tensor in tensors_in(state):
        require_savable(name, tensor.numpy())
    states.save(agent.episodes, state)


def tensors_in(state: Mapping[Any, Any], place: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of dictionaries within dictionaries, each with its place, "a.b.c"."""
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            yield f"{place}{name}", value
        elif isinstance(value, Mapping):
            yield from tensors_in(value, f"{place}{name}.")


def require_savable(name: str, values: np.ndarray) -> None:
    """Raise FloatingPointError where a part of a state is not finite, with what may help."""
    try:
        require_finite(name, values)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}: no state is saved. Where it is an optimizer's, gradients are too large to "
            "be squared in single precision: choose a smaller reward_scale, or clip them before "
            "the optimizer's step"
        ) from None


def environment_state(environment: Environment) -> dict | None:
    """What an environment's `restore` takes, or None where it cannot go on exactly."""
    if not isinstance(environment, SavedEnvironment):  # a Unity build
        return None
    try:
        return environment.state()
    except RuntimeError:  # one of Gymnasium with a memory of its own
        return None


def restore_state(states: TrainingState, agent: Agent, environment: Environment) -> History:
    """Set agent, environment and random generators to the newest whole state; return its past.

    An environment that cannot save itself, such as a Unity build, begins anew; a line says so.

    Raises:
        ValueError: no whole state, or one of another training.
    """
    state = states.load()
    try:
        facts = json.loads(state["facts"])
        fields = before_of(type(agent.settings).model_fields)
        settings = completed(states.folder, facts["settings"], fields)
        if json.loads(json.dumps(settings)) != agent.settings.model_dump(mode="json"):
            raise ValueError("its settings are others")
        require_possible(facts)
        if facts["environment"] is not None and isinstance(environment, SavedEnvironment):
            environment.restore(facts["environment"])
        else:
            print(
                "this environment cannot be saved, so it begins anew: the scores from here on are "
                "not those of a training in one go"
            )
        restore_learner(agent.ddpg, state["learner"])
        agent.learner.take_over()
        restore_replay(agent.replay, state["replay"])
        waiting = state["new_transitions"]
        agent.new_transitions = [] if waiting is None else [waiting.numpy()]
        for name in COUNTERS:
            setattr(agent, name, facts[name])
        restore_random_states(state["randomness"])
        past = {name: facts[name] for name in ("scores", "lines", "evaluations", "seconds")}
        return History(best=state["best"], **past)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{states.folder} holds no state of this training: {error}") from error


def require_possible(facts: Mapping[str, Any]) -> None:
    """Raise ValueError where the counters and scores of a state contradict each other."""
    played, lines = len(facts["scores"]), facts["lines"]
    if played != len(lines) or played > facts["episodes"] or facts["env_steps"] < played:
        raise ValueError(
            f"{played} scores in {len(lines)} lines, {facts['episodes']} episodes and "
            f"{facts['env_steps']} decisions do not belong together"
        )
    if any(not 0 < int(line.partition(",")[0]) <= played for line in facts["evaluations"]):
        raise ValueError(f"an evaluation after more than {played} episodes")
    best = facts["best_score"]
    if (
        played == facts["episodes"]
        and best is not None
        and best > max(facts["scores"], default=0) + 1e-9
    ):
        raise ValueError(f"a best score of {best} above all scores")


def learner_state(ddpg: DDPG) -> dict[str, Any]:
    """Networks, and what the optimizers remember, by name."""
    networks, optimizers = compiled.networks(ddpg), compiled.optimizers(ddpg)
    return {name: network.state_dict() for name, network in networks.items()} | {
        name: optimizer.state_dict()["state"] for name, optimizer in optimizers.items()
    }


def restore_learner(ddpg: DDPG, state: Mapping[str, Any]) -> None:
    """Set networks and optimizers to what learner_state returned."""
    for name, network in compiled.networks(ddpg).items():
        network.load_state_dict(state[name])
    for name, optimizer in compiled.optimizers(ddpg).items():
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state[name]})


def replay_state(replay: Replay, is_needed: bool = True) -> dict[str, Any]:
    """A memory, or an empty one where it is not needed, and its generator.

    Of a prioritized one only the leaves of the tree are in it. The sums above them follow to the
    last bit, because a parent is always computed from its children.
    """
    size, position = (replay.size, replay.position) if is_needed else (0, 0)
    state = {
        "size": size,
        "position": position,
        "generator": json.dumps(replay.generator.bit_generator.state),
        "rows": torch.from_numpy(replay.rows[:size]),  # no copy: it may be 0.3 GB
    }
    if isinstance(replay, PrioritizedReplay):
        leaves = replay.tree[len(replay.tree) // 2 :]
        state["priorities"] = torch.from_numpy(leaves[:size].copy())
    return state


def restore_replay(replay: Replay, state: Mapping[str, Any]) -> None:
    """Set a memory with its priorities to what replay_state returned."""
    replay.size, replay.position = state["size"], state["position"]
    replay.generator.bit_generator.state = json.loads(state["generator"])
    replay.rows[: replay.size] = state["rows"].numpy()
    if isinstance(replay, PrioritizedReplay):
        tree, level = replay.tree, len(replay.tree) // 2
        tree[level:] = 0.0
        tree[level:][: replay.size] = state["priorities"].numpy()
        while level > 1:
            level //= 2
            children = tree[2 * level : 4 * level]
            tree[level : 2 * level] = children[::2] + children[1::2]
