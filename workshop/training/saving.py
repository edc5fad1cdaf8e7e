"""What the future of a training depends on: taken from an agent, and given back to one.

That is the four networks, the averages of the optimisers, the memory with its priorities, all
random generators, the counters, and the environment. Between two episodes that is all: the n-step
windows are empty then, and noise that has a memory begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from workshop.training.files import to_bytes
from workshop.training.randomness import random_states, restore_random_states
from workshop.training.run_files import REMOVED, before_of, completed
from workshop.training.states import TrainingState

BLOCK = 2**14  # rows of the memory in one file: of a full memory, 0.3 GB, few change in an episode
COUNTERS = ("decisions", "episodes", "learning_steps", "average_score", "best_score",
            "largest_reward", "log")


@dataclass
class Past:
    """What a training has done so far, besides what its agent has become.

    Attributes:
        scores: of the episodes, means over the arms.
        lines: of the score file.
        seconds: wall clock.
        best: weights of actor and critic after the best episode, `<network>.<name>`.
    """

    scores: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    seconds: float = 0.0
    best: dict[str, torch.Tensor] = field(default_factory=dict)


def save_state(states: TrainingState, agent: Any, environment: Any, past: Past | None = None
               ) -> None:
    """Write all that the future of a training depends on, between two episodes.

    Raises:
        OSError: the disk is full or gone; the states before are as they were.
    """
    past, replay = past or Past(), agent.replay
    randomness, tensors = random_states()
    tensors |= learner_tensors(learner_of(agent)) | priorities(replay)
    tensors |= {f"best.{name}": tensor for name, tensor in past.best.items()}
    if agent.new_rows:
        tensors["new_rows"] = torch.from_numpy(np.concatenate(agent.new_rows))
    facts = {name: getattr(agent, name) for name in COUNTERS} | randomness | {
        "settings": agent.settings.model_dump(mode="json"),
        "generator": replay.generator.bit_generator.state,
        "size": replay.size, "position": replay.position,
        "largest_priority": getattr(replay, "largest", None),
        "environment": environment.state() if hasattr(environment, "state") else None,
        "scores": past.scores, "lines": past.lines, "seconds": past.seconds}

    def data() -> Iterator[tuple[str, bytes]]:  # one by one: together they need much memory
        yield "tensors", to_bytes(tensors)
        for name, rows in blocks(replay, replay.size):
            yield name, to_bytes({name: torch.from_numpy(rows)})

    states.save(agent.episodes, facts, data())


def restore_state(states: TrainingState, agent: Any, environment: Any) -> Past:
    """Set agent, environment and random generators to the newest whole state; return its past.

    An environment that cannot save itself, such as a Unity build, begins anew.

    Raises:
        ValueError: no whole state, or one of another training.
    """
    _, facts, tensors = states.load()
    fields = before_of(type(agent.settings).model_fields)
    settings = completed(states.folder, facts["settings"], fields, REMOVED)
    if json.loads(json.dumps(settings)) != agent.settings.model_dump(mode="json"):
        raise ValueError(f"{states.folder} holds the state of a training with other settings")
    if facts["environment"] is not None:
        environment.restore(facts["environment"])
    restore_learner(agent.ddpg, tensors)
    if hasattr(agent, "take_over"):  # a compiled twin keeps its own copy of the learner's numbers
        agent.take_over()
    restore_replay(agent.replay, facts, tensors)
    agent.new_rows = [tensors["new_rows"].numpy()] if "new_rows" in tensors else []
    for name in COUNTERS:
        setattr(agent, name, facts[name])
    restore_random_states(facts, tensors["torch_generator"])
    return Past(facts["scores"], facts["lines"], facts["seconds"], below("best.", tensors))


def learner_of(agent: Any) -> Any:
    """The agent's PyTorch learner with the newest numbers: a compiled twin keeps its own."""
    return agent.synced() if hasattr(agent, "synced") else agent.ddpg


def learner_tensors(ddpg: Any) -> dict[str, torch.Tensor]:
    """Networks and optimisers as one flat dictionary, `<network>.<name>` as PyTorch names them."""
    tensors = {f"{name}.{key}": tensor for name, network in ddpg.networks().items()
               for key, tensor in network.state_dict().items()}
    for name, optimizer in ddpg.optimizers().items():
        for index, averages in optimizer.state_dict()["state"].items():
            tensors |= {f"{name}.{index}.{key}": tensor for key, tensor in averages.items()}
    return tensors


def restore_learner(ddpg: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """The opposite: set networks and optimisers to what learner_tensors returned."""
    for name, network in ddpg.networks().items():
        network.load_state_dict(below(f"{name}.", tensors))
    for name, optimizer in ddpg.optimizers().items():
        averages = below(f"{name}.", tensors)
        indices = {key.split(".")[0] for key in averages}
        optimizer.load_state_dict(optimizer.state_dict() | {
            "state": {int(index): below(f"{index}.", averages) for index in indices}})


def below(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with prefix, by the rest of their names."""
    return {key.removeprefix(prefix): value for key, value in tensors.items()
            if key.startswith(prefix)}


def blocks(replay: Any, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Names and views of successive parts of the first rows of a memory."""
    for number, start in enumerate(range(0, size, BLOCK)):
        yield f"rows_{number}", replay.rows[start:min(start + BLOCK, size)]


def priorities(replay: Any) -> dict[str, torch.Tensor]:
    """The leaves of a prioritized memory's tree, (size,), double precision.

    The sums above them follow to the last bit: a parent is always computed from its children.
    """
    if not hasattr(replay, "tree"):
        return {}
    return {"priorities": torch.from_numpy(replay.tree[len(replay.tree) // 2:][:replay.size])}


def restore_replay(replay: Any, facts: Mapping, tensors: Mapping[str, torch.Tensor]) -> None:
    """Set a memory with its priorities to what was saved of it."""
    replay.clear()
    replay.size, replay.position = facts["size"], facts["position"]
    replay.generator.bit_generator.state = facts["generator"]
    for name, rows in blocks(replay, replay.size):
        rows[:] = tensors[name].numpy()
    if "priorities" in tensors:
        tree, replay.largest = replay.tree, facts["largest_priority"]
        level = len(tree) // 2
        tree[level:][:replay.size] = tensors["priorities"].numpy()
        while level > 1:
            level //= 2
            children = tree[2 * level:4 * level]
            tree[level:2 * level] = children[::2] + children[1::2]
