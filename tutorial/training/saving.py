"""What the future of a training depends on: taken from an agent, and given back to one.

That is the four networks, the averages of the optimizers, the memory with its priorities, all
random generators, the counters, and the environment. Between two episodes that is all: the n-step
windows are empty then, and noise that has a memory begins anew.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    ValidationError,
)

from tutorial.training import compiled
from tutorial.training.files import to_bytes
from tutorial.training.health import require_finite
from tutorial.training.protocols import (
    DDPG,
    Agent,
    Environment,
    PrioritizedReplay,
    Replay,
    SavedEnvironment,
)
from tutorial.training.randomness import (
    random_states,
    require_random_states,
    restore_random_states,
)
from tutorial.training.run_files import REMOVED, before_of, completed
from tutorial.training.scores import EVALUATION_COLUMNS, moving_average, scores_in
from tutorial.training.states import TrainingState

BLOCK = 2**14  # rows of the memory in one file: of a full memory, 0.3 GB, few change in an episode
COUNTERS = (
    "env_steps",
    "episodes",
    "annealed_episodes",
    "num_updates",
    "average_score",
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
        best: weights of actor and critic after the best episode, `<network>.<name>`.
    """

    scores: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    evaluations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    best: dict[str, torch.Tensor] = field(default_factory=dict)


def save_state(
    states: TrainingState, agent: Agent, environment: Environment, past: History | None = None
) -> None:
    """Write all that the future of a training depends on, between two episodes.

    Once learning has ended that is not the memory, and states become small.

    Raises:
        OSError: the disk is full or gone; the states before are as they were.
        FloatingPointError: a number is not finite, so nothing could go on from it; likewise.
    """
    past, replay = past or History(), agent.replay
    size, position = (replay.size, replay.position) if agent.anneal_factor() else (0, 0)
    randomness, tensors = random_states()
    tensors |= learner_tensors(agent.learner.synced()) | priorities(replay, size)
    tensors |= {f"best.{name}": tensor for name, tensor in past.best.items()}
    if agent.new_transitions:
        tensors["new_transitions"] = torch.from_numpy(np.concatenate(agent.new_transitions))
    for name, tensor in tensors.items():  # what is not finite could never be resumed
        require_savable(name, tensor.numpy())
    facts = (
        {name: getattr(agent, name) for name in COUNTERS}
        | randomness
        | {
            "settings": agent.settings.model_dump(mode="json"),
            "generator": replay.generator.bit_generator.state,
            "size": size,
            "position": position,
            "largest_priority": getattr(replay, "largest", None),
            "environment": environment_state(environment),
            "scores": past.scores,
            "lines": past.lines,
            "evaluations": past.evaluations,
            "seconds": past.seconds,
        }
    )

    def data() -> Iterator[tuple[str, bytes]]:  # one by one: together they need much memory
        yield "tensors", to_bytes(tensors)
        for name, rows in blocks(replay, size):
            require_savable(name, rows)
            yield name, to_bytes({name: torch.from_numpy(rows)})

    states.save(agent.episodes, facts, data())


def require_savable(name: str, values: np.ndarray) -> None:
    """Raise FloatingPointError where a part of a state is not finite, with what may help."""
    try:
        require_finite(name, values)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}: no state is saved. Where it is an optimizer's, gradients are too large to "
            "be squared in single precision: choose a smaller reward_scale, or limit them by "
            "actor_gradient_clip and critic_gradient_clip"
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
        ValueError: no whole state, one of another training, or one that is whole but does not hold
            what a state holds. Nothing has changed then.
    """
    _, saved, tensors = states.load()
    facts = checked(states, saved, tensors, agent)
    if facts.environment is not None and isinstance(environment, SavedEnvironment):
        environment.restore(facts.environment)  # checks it first
    else:
        print(
            "this environment cannot be saved, so it begins anew: the scores from here on are not "
            "those of a training in one go"
        )
    restore_learner(agent.ddpg, tensors)
    agent.learner.take_over()
    restore_replay(agent.replay, facts, tensors)
    agent.new_transitions = (
        [tensors["new_transitions"].numpy()] if "new_transitions" in tensors else []
    )
    for name in COUNTERS:
        setattr(agent, name, getattr(facts, name))
    restore_random_states(facts.python, facts.numpy, tensors["torch_generator"])
    return History(
        facts.scores, facts.lines, facts.evaluations, facts.seconds, below("best.", tensors)
    )


# ---------------------------------------------------------------------- what a state has to hold


class Facts(BaseModel):
    """The plain facts of a state."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    settings: dict[str, Any]
    env_steps: NonNegativeInt
    episodes: NonNegativeInt
    annealed_episodes: NonNegativeInt
    num_updates: NonNegativeInt
    average_score: float
    first_score: float | None = None  # an earlier version did without
    best_score: float | None
    largest_reward: NonNegativeFloat
    log: dict[str, float]
    size: NonNegativeInt  # transitions in the memory
    position: NonNegativeInt  # where the next goes
    largest_priority: PositiveFloat | None
    generator: dict[str, Any]
    python: tuple[int, list[int], float | None]
    numpy: dict[str, Any]
    environment: dict[str, Any] | None
    scores: list[float]
    lines: list[str]
    evaluations: list[str]
    seconds: NonNegativeFloat


def checked(
    states: TrainingState, saved: Mapping, tensors: Mapping[str, torch.Tensor], agent: Agent
) -> Facts:
    """The facts of a state, if this agent can be set to it.

    Raises:
        ValueError: it cannot; with what is wrong.
    """
    try:
        facts = Facts.model_validate_json(json.dumps(saved))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors()[:3]
        )
        raise ValueError(f"{states.folder} holds no state of this version: {wrong}") from None
    fields = before_of(type(agent.settings).model_fields)
    settings = completed(states.folder, facts.settings, fields, REMOVED)
    if json.loads(json.dumps(settings)) != agent.settings.model_dump(mode="json"):
        raise ValueError(f"{states.folder} holds the state of a training with other settings")
    try:
        require_counts(facts, agent)
        require_tensors(facts, tensors, agent)
        type(agent.replay.generator.bit_generator)().state = facts.generator
        require_random_states(facts.python, facts.numpy, tensors["torch_generator"])
    except (KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{states.folder} holds no state of this training: {error}") from None
    return facts


def require_counts(facts: Facts, agent: Agent) -> None:
    """Raise ValueError where the numbers of a state contradict each other or the agent."""
    size, position, capacity = facts.size, facts.position, len(agent.replay.rows)
    if not (size == position < capacity or position < size == capacity):
        raise ValueError(
            f"position {position} and {size} transitions do not fit into a memory of {capacity}"
        )
    if (facts.largest_priority is None) == isinstance(agent.replay, PrioritizedReplay):
        raise ValueError(f"the largest priority is {facts.largest_priority}")
    if facts.log.keys() != agent.log.keys():
        raise ValueError(f"log holds {', '.join(facts.log)}")
    written = scores_in(facts.lines)["score"] if facts.lines else np.empty(0)
    if len(written) != len(facts.scores) or not np.allclose(
        written, facts.scores, rtol=0, atol=1e-6
    ):
        raise ValueError("scores and the lines of the score file differ")
    if facts.episodes < len(facts.scores):
        raise ValueError(f"there are {len(facts.scores)} scores of {facts.episodes} episodes")
    if facts.env_steps < facts.episodes:
        raise ValueError(f"there are {facts.env_steps} decisions in {facts.episodes} episodes")
    require_averages(facts)


def require_averages(facts: Facts) -> None:
    """Raise ValueError where best score, average or evaluations do not follow from the scores."""
    if facts.evaluations:
        columns = scores_in(facts.evaluations, EVALUATION_COLUMNS)
        if columns["episode"][-1] > facts.episodes or columns["decisions"].max() > facts.env_steps:
            raise ValueError("there are evaluations of later than the last episode")
    if len(facts.scores) != facts.episodes:  # an agent that played elsewhere, too
        return
    average = moving_average(facts.scores)[-1] if facts.scores else 0.0
    if not np.isclose(facts.average_score, average, rtol=1e-9, atol=1e-9):
        raise ValueError(f"the average score is {facts.average_score}, and of the scores {average}")
    # A mean of scores does not exceed the largest but by its rounding.
    largest = max([0.0, *facts.scores]) + 1e-9 * max(map(abs, [1.0, *facts.scores]))
    least = min([0.0, *facts.scores]) - largest + max([0.0, *facts.scores])
    for name in ("first_score", "best_score"):
        value = getattr(facts, name)
        if value is not None and not least <= value <= largest:
            raise ValueError(f"{name} is {value}, and the scores are from {least:g} to {largest:g}")


def require_tensors(facts: Facts, tensors: Mapping[str, torch.Tensor], agent: Agent) -> None:
    """Raise ValueError where a tensor is missing, unknown, of another shape or type, or not finite.

    What may be missing is missing as a whole: averages of an optimizer before its first step, the
    best weights before the first episode, and new transitions.
    """
    expected, optional = expected_tensors(facts, tensors, agent)
    for group, needed in optional:
        if needed or group.keys() & tensors.keys():
            expected |= group
    for what, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("has an unknown", tensors.keys() - expected.keys()),
    ):
        if names:
            raise ValueError(f"it {what} tensor {min(names)}")
    for name, (shape, dtype) in expected.items():
        tensor = tensors[name]
        if (tensor.shape, tensor.dtype) != (shape, dtype):
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)} and type {tensor.dtype}, "
                f"and not {tuple(shape)} and {dtype}"
            )
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} is not finite")
    if "priorities" in tensors and (tensors["priorities"] < 0).any():
        raise ValueError("a priority is below 0")


def expected_tensors(
    facts: Facts, tensors: Mapping[str, torch.Tensor], agent: Agent
) -> tuple[dict, list[tuple[dict, bool]]]:
    """Shapes and types by name: of what must be there, and of groups with whether they must."""

    def like(prefix, tensors):
        return {
            f"{prefix}.{name}": (tensor.shape, tensor.dtype) for name, tensor in tensors.items()
        }

    networks, rows = compiled.networks(agent.ddpg), agent.replay.rows
    expected = {"torch_generator": (torch.get_rng_state().shape, torch.uint8)}
    for name, network in networks.items():
        expected |= like(name, network.state_dict())
    for number, start in enumerate(range(0, facts.size, BLOCK)):
        block = (min(BLOCK, facts.size - start), rows.shape[1])
        expected[f"rows_{number}"] = (torch.Size(block), torch.float32)
    if isinstance(agent.replay, PrioritizedReplay):
        expected["priorities"] = (torch.Size([facts.size]), torch.float64)
    best = {
        name: value
        for network in compiled.trained_networks(agent.ddpg)
        for name, value in like(f"best.{network}", networks[network].state_dict()).items()
    }
    optional = [(best, bool(facts.scores))]
    if "new_transitions" in tensors:
        shape = (len(tensors["new_transitions"]), rows.shape[1])
        expected["new_transitions"] = (torch.Size(shape), torch.float32)
    learned = facts.num_updates >= agent.settings.policy_delay  # actor and critic
    for name, optimizer in compiled.optimizers(agent.ddpg).items():
        for index, averages in averages_of(optimizer).items():
            optional.append((like(f"{name}.{index}", averages), learned and not index))
    return expected, optional


# -------------------------------------------------------------------------------- parts of an agent


def learner_tensors(ddpg: DDPG) -> dict[str, torch.Tensor]:
    """Networks and optimizers as one flat dictionary, `<network>.<name>` as PyTorch names them."""
    tensors = {
        f"{name}.{key}": tensor
        for name, network in compiled.networks(ddpg).items()
        for key, tensor in network.state_dict().items()
    }
    for name, optimizer in compiled.optimizers(ddpg).items():
        for index, averages in optimizer.state_dict()["state"].items():
            tensors |= {
                f"{name}.{index}.{key}": value
                for key, value in averages.items()
                if isinstance(value, torch.Tensor)
            }
    return tensors


def averages_of(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, torch.Tensor]]:
    """What an optimizer has of each parameter, by its number, once it has made a step."""
    stepped = copy.deepcopy(optimizer)
    for group in stepped.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    stepped.step()
    return {
        index: {key: value for key, value in averages.items() if isinstance(value, torch.Tensor)}
        for index, averages in stepped.state_dict()["state"].items()
    }


def restore_learner(ddpg: DDPG, tensors: Mapping[str, torch.Tensor]) -> None:
    """The opposite: set networks and optimizers to what learner_tensors returned."""
    for name, network in compiled.networks(ddpg).items():
        network.load_state_dict(below(f"{name}.", tensors))
    for name, optimizer in compiled.optimizers(ddpg).items():
        averages = below(f"{name}.", tensors)
        indices = {key.split(".")[0] for key in averages}
        optimizer.load_state_dict(
            optimizer.state_dict()
            | {"state": {int(index): below(f"{index}.", averages) for index in indices}}
        )


def below(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with prefix, by the rest of their names."""
    return {
        key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)
    }


def blocks(replay: Replay, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Names and views of successive parts of the first rows of a memory."""
    for number, start in enumerate(range(0, size, BLOCK)):
        yield f"rows_{number}", replay.rows[start : min(start + BLOCK, size)]


def priorities(replay: Replay, size: int) -> dict[str, torch.Tensor]:
    """The first leaves of a prioritized memory's tree, (size,), double precision.

    The sums above them follow to the last bit: a parent is always computed from its children.
    """
    if not isinstance(replay, PrioritizedReplay):
        return {}
    return {"priorities": torch.from_numpy(replay.tree[len(replay.tree) // 2 :][:size])}


def restore_replay(replay: Replay, facts: Facts, tensors: Mapping[str, torch.Tensor]) -> None:
    """Set a memory with its priorities to what was saved of it."""
    replay.clear()
    replay.size, replay.position = facts.size, facts.position
    replay.generator.bit_generator.state = facts.generator
    for name, rows in blocks(replay, replay.size):
        rows[:] = tensors[name].numpy()
    if isinstance(replay, PrioritizedReplay) and facts.largest_priority is not None:
        tree, replay.largest = replay.tree, facts.largest_priority
        level = len(tree) // 2
        tree[level:][: replay.size] = tensors["priorities"].numpy()
        while level > 1:
            level //= 2
            children = tree[2 * level : 4 * level]
            tree[level : 2 * level] = children[::2] + children[1::2]
