"""What computes a training: the notebook's learner with PyTorch, or the same recorded and compiled.

`recording` notes what the learner's own methods do, `translation` says the same in JAX, and here
whole learning phases of it are compiled. What cannot be, PyTorch computes, and one line says why.
JAX is imported only when something is compiled, so whoever uses PyTorch alone needs none.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import inspect
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from platformdirs import user_cache_dir

from tapejit.recording import CannotRecord, Recorded, record
from tutorial.randomness import random_states, restore_random_states

SLOWER = "a learning step then takes about eight times as long"  # doc/benchmarks.md


def learner(ddpg: Any, engine: str) -> Learner:
    """What lets the notebook's learner act and learn; says in a line what computes, and why.

    Args:
        ddpg: has the methods `act`, `td_errors` and `learn` of the notebook's `DDPG`, and networks
            (nn.Module) and optimizers (torch.optim.Optimizer) as attributes.
        engine: "compiled", "torch", or "auto": compiled where it can be.

    Raises:
        ValueError: "compiled", and it cannot be; says why.
        Exception: what the learner's methods raise.
    """
    if engine == "torch":
        return Learner(ddpg)
    found = CompiledLearner(ddpg, strict=engine == "compiled")
    if engine == "auto" and found.engine == "compiled":
        print("engine: compiled, the learner as it stands in the notebook, a phase in one call")
    return found


# ----------------------------------------------------------------------- what a learner consists of


def networks(ddpg: Any) -> dict[str, torch.nn.Module]:
    """The networks among a learner's attributes, by name."""
    return {name: value for name, value in vars(ddpg).items() if isinstance(value, torch.nn.Module)}


def optimizers(ddpg: Any) -> dict[str, torch.optim.Optimizer]:
    """The optimizers among a learner's attributes, by name."""
    kind = torch.optim.Optimizer
    return {name: value for name, value in vars(ddpg).items() if isinstance(value, kind)}


def modes_of(ddpg: Any) -> list[bool]:
    """Whether each module is in training mode, which only PyTorch's own steps change."""
    return [each.training for network in networks(ddpg).values() for each in network.modules()]


def parameter_groups(ddpg: Any) -> list[dict]:
    """Those of the optimizers, with their parameters and settings."""
    return [group for optimizer in optimizers(ddpg).values() for group in optimizer.param_groups]


def trained_networks(ddpg: Any) -> dict[str, torch.nn.Module]:
    """Those that an optimizer changes; the others are targets."""
    trained = {id(parameter) for group in parameter_groups(ddpg) for parameter in group["params"]}
    return {
        name: network
        for name, network in networks(ddpg).items()
        if any(id(parameter) in trained for parameter in network.parameters())
    }


def state_of(ddpg: Any, with_optimizers: bool = True) -> list[list[torch.Tensor]]:
    """All tensors of networks and then of optimizers, in lists of one kind, each tensor once."""
    found, known = {}, set()

    def add(tensor, *kind):
        if id(tensor) not in known:
            known.add(id(tensor))
            found.setdefault((*kind, tensor.dtype), []).append(tensor)

    for name, network in networks(ddpg).items():
        for tensor in network.parameters():
            add(tensor, name)
        for tensor in network.buffers():
            add(tensor, name, "buffers")
    for name, optimizer in optimizers(ddpg).items() if with_optimizers else ():
        for k, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                for field, value in optimizer.state.get(parameter, {}).items():
                    if isinstance(value, torch.Tensor):
                        add(value, name, k, field)
    return list(found.values())


class Learner:
    """Lets the notebook's learner act, rate and learn on NumPy's arrays, with PyTorch."""

    engine = "torch"

    def __init__(self, ddpg: Any):
        self.ddpg = ddpg

    def call(self, name: str, *arguments: np.ndarray | None) -> np.ndarray:
        """What a method of the learner returns for arrays."""
        return getattr(self.ddpg, name)(*tensors(*arguments)).numpy()

    def scan(self, name: str, *arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        """What `learn` returns for each row of the arguments' first axis, stacked."""
        errors, losses = self.learn_phase(*arguments)
        return errors, losses[:, 0], losses[:, 1]

    def learn_phase(
        self, rows: np.ndarray, weights: np.ndarray, noise: np.ndarray, with_actor: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A learning step with each batch.

        Args:
            rows, weights: (steps, batch, width) and (steps, batch).
            noise: of the actor's losses, (steps, 1, noise_size).
            with_actor: in which steps the actor learns, (steps,) of bool.

        Returns:
            TD errors (steps, batch), and losses (steps, 2) of critic and actor.
        """
        found = [
            results_of(self.ddpg, *tensors(*data), bool(wanted))
            for *data, wanted in zip(rows, weights, noise, with_actor, strict=True)
        ]
        errors, *losses = (
            np.stack([np.asarray(values) for values in column])
            for column in zip(*found, strict=True)
        )
        return errors, np.stack(losses, axis=1)

    def is_finite(self) -> bool:
        """Whether all numbers of the networks are, statistics included: one spoils the norm."""
        found = (
            tensor
            for network in networks(self.ddpg).values()
            for tensor in network.state_dict().values()
            if tensor.is_floating_point()
        )
        return math.isfinite(torch.nn.utils.get_total_norm(list(found)))

    def synced(self) -> Any:
        """The notebook's learner with the newest numbers."""
        return self.ddpg

    def take_over(self) -> None:
        """Go on from the numbers of the notebook's learner."""


def results_of(ddpg: Any, rows, weights, noise, with_actor: bool) -> list[torch.Tensor]:
    """What a learning step returns: TD errors (batch,), and the losses of critic and actor."""
    found = ddpg.learn(rows, weights, noise, with_actor)
    shapes = [
        tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        for value in (found if isinstance(found, tuple) else [found])
    ]
    if shapes != [(len(rows),), (), ()]:
        raise ValueError(
            f"{type(ddpg).__name__}.learn must return tensors of the shapes "
            f"({len(rows)},), () and (): TD errors and the losses of critic and "
            f"actor; it returned {shapes}"
        )
    return [value.detach() for value in found]


def tensors(*arrays: np.ndarray | None) -> list[torch.Tensor | None]:
    return [None if array is None else torch.from_numpy(array) for array in arrays]


# ------------------------------------------------------------------------------------------- JAX


@functools.cache
def why_no_jax() -> str | None:
    """Why JAX cannot be used here, in one line, or None. The first call imports it: a second."""
    try:
        translation()
    except ModuleNotFoundError as error:
        return f"JAX is not installed (no module named {error.name!r}): pip install jax"
    except Exception as error:  # a broken installation fails in any way
        first = str(error).strip().partition("\n")[0]
        return f"JAX is installed but does not work: {type(error).__name__}: {first}"
    return None


@functools.cache
def translation():
    """The module `translation`, with JAX set up: on the processor, in one thread."""
    import jax

    if not jax.config.jax_platforms:  # networks this small learn faster here than on a GPU
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
    if not jax.config.jax_compilation_cache_dir:  # where compiled calls outlive the process
        jax.config.update("jax_compilation_cache_dir", user_cache_dir("continuous-control"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    present = "NPROC" in os.environ
    os.environ.setdefault("NPROC", "1")  # of which XLA makes the number of its threads
    try:
        jax.devices()
    finally:
        if not present:
            del os.environ["NPROC"]
    from tapejit import translation

    return translation


COMPILER_OPTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": "",  # other products of matrices: 7 % faster
    # One operation after the other, in the thread that calls: up to a quarter faster in a training.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


@functools.cache
def options() -> dict:
    """Those of COMPILER_OPTIONS that this version of JAX's compiler knows."""
    import jax

    def known(option):
        try:
            jax.jit(lambda x: x, compiler_options=option).lower(0.0).compile()
        except Exception:
            return False
        return True

    return {name: value for name, value in COMPILER_OPTIONS.items() if known({name: value})}


def aligned(array: np.ndarray, boundary: int = 64) -> np.ndarray:
    """A copy that begins at a multiple of so many bytes.

    JAX takes such an array as it is. Another one, if it is large, is copied in a second thread, in
    which the computation then goes on, on a core that has none of its numbers in its cache.
    """
    memory = np.empty(array.nbytes + boundary, np.uint8)
    start = -memory.ctypes.data % boundary
    copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


TRIES = 5  # steps until two in succession must have been the same


class CompiledLearner(Learner):
    """The same, recorded and compiled.

    The numbers live in JAX's arrays while it learns; `synced` writes them back into the notebook's
    learner, bit for bit, from which they are saved and shown.
    """

    engine = "compiled"

    def __init__(self, ddpg: Any, strict: bool = True):
        """Record everything once, on a copy, with made-up transitions.

        Args: strict: what cannot be compiled is a ValueError, and else left to PyTorch.
        """
        super().__init__(ddpg)
        self.strict, self.entries, self.apart, self.changes = strict, {}, set(), 0
        self.vectors, self.newer = None, False  # newer than the numbers of ddpg
        self.modes = modes_of(ddpg)
        self.waited = False
        try:
            if reason := why_no_jax():
                raise CannotRecord(reason)
            self.facts = facts_of(ddpg)
            self.try_once()
        except CannotRecord as reason:
            self.give_way(reason)

    def try_once(self) -> None:
        (observation_size, action_size), batch = self.ddpg.sizes, self.ddpg.settings.batch_size
        generator = np.random.default_rng(0)
        rows = generator.uniform(-1, 1, (batch, 2 * observation_size + action_size + 2))
        rows, weights = np.float32(rows), np.ones(batch, np.float32)
        noise = generator.standard_normal((1, self.ddpg.noise_size), np.float32)
        copied = self.copied()
        self.entry("act", rows[:2, :observation_size], np.repeat(noise, 2, 0), copied=copied)
        self.entry("td_errors", rows, copied=copied)
        for with_actor in (True, False):
            self.entry("learn", rows, weights, noise, with_actor, copied=copied)
        if modes_of(copied) != self.modes:  # in which learning leaves it
            with the_same_chance_afterwards():
                self.settled(copied, "td_errors", [rows])

    def give_way(self, reason: CannotRecord) -> None:
        """Leave all to PyTorch, and say why."""
        self.synced()
        self.engine = "torch"
        if self.strict:
            raise ValueError(f"engine = 'compiled' cannot be: {reason}; choose 'torch' or 'auto'")
        print(f"engine: torch, because {reason}; {SLOWER}")

    # ------------------------------------------------------------------------------- its numbers

    def groups_of(self, lists: Sequence[Sequence[torch.Tensor]]) -> tuple:
        return tuple(
            translation().Group(
                tuple(tuple(tensor.shape) for tensor in tensors),
                tensors[0].dtype,
                shared=(
                    len(tensors) > 1
                    and k not in self.apart
                    and all(not tensor.ndim and tensor == tensors[0] for tensor in tensors)
                ),
            )
            for k, tensors in enumerate(lists)
        )

    def load(self) -> None:
        """Take over the numbers of the notebook's learner, unless those here are newer."""
        if self.vectors is not None and self.versions != self.versions_now():
            self.take_over()
        if self.vectors is None:
            import jax

            if (modes := modes_of(self.ddpg)) != self.modes:
                self.entries.clear()
                self.modes = modes
            self.lists = state_of(self.ddpg)
            self.groups = self.groups_of(self.lists)
            self.number = len(state_of(self.ddpg, with_optimizers=False))
            self.vectors = jax.device_put(
                [
                    group.vector([tensor.detach().numpy() for tensor in tensors], np)
                    for group, tensors in zip(self.groups, self.lists, strict=True)
                ],
                may_alias=False,
            )
            self.versions = self.versions_now()

    def versions_now(self) -> list[int]:
        """What PyTorch raises whenever a tensor is written."""
        return [tensor._version for tensors in self.lists for tensor in tensors]

    def take_over(self) -> None:
        self.vectors, self.newer = None, False

    def is_finite(self) -> bool:
        if self.newer:
            return all(
                math.isfinite(np.float64(vector @ vector))
                for vector in map(np.asarray, self.vectors[: self.number])
                if vector.ndim and vector.dtype == np.float32
            )
        return super().is_finite()

    @torch.no_grad()
    def synced(self) -> Any:
        if self.newer:
            for group, tensors, vector in zip(self.groups, self.lists, self.vectors, strict=True):
                for tensor, piece in zip(tensors, group.pieces(np.array(vector)), strict=True):
                    tensor.copy_(torch.from_numpy(piece))
            self.newer, self.versions = False, self.versions_now()
        return self.ddpg

    # -------------------------------------------------------------------------------- recording

    def copied(self) -> Any:
        """A copy of the notebook's learner that may learn, with learning rates as tensors."""
        try:
            copied = copy.deepcopy(self.synced())
        except Exception as error:
            raise CannotRecord(f"the learner cannot be copied ({error})") from None
        places = [
            tensor.data_ptr()
            for tensors in state_of(self.ddpg)
            for tensor in tensors
            if tensor.numel()
        ]
        if len(set(places)) < len(places):  # which a copy does not
            raise CannotRecord("two tensors of its networks and optimizers share memory")
        for group in parameter_groups(copied):
            group |= {"lr": torch.tensor(float(group["lr"]))} | {
                name: False for name in ("foreach", "fused") if name in group
            }
        return copied

    def entry(self, name: str, *arguments: Any, copied: Any = None) -> tuple[tuple, Recorded]:
        """The recording of a method for arguments of these shapes, and its groups."""
        key = name, *(getattr(value, "shape", value) for value in arguments)
        if key not in self.entries:
            with the_same_chance_afterwards():
                self.entries[key] = self.settled(copied or self.copied(), name, arguments)
        return self.entries[key]

    def settled(self, copied: Any, name: str, arguments: Sequence) -> tuple[tuple, Recorded]:
        """Record calls on a copy until two in succession are the same."""
        learns = name == "learn"  # other methods use the networks alone
        given = [
            torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
            for value in arguments
        ]
        others = [value for value in given if isinstance(value, torch.Tensor)]

        def rates():
            return [group["lr"] for group in parameter_groups(copied)]

        def call():
            found = results_of(copied, *given) if learns else [getattr(copied, name)(*given)]
            if not all(isinstance(rate, torch.Tensor) for rate in rates()):
                raise CannotRecord(f"{name} itself sets a learning rate")
            return [*state_of(copied, learns), rates(), found]

        last = None
        for _ in range(TRIES):
            lists, before = state_of(copied, learns), all_facts(copied)
            groups = self.groups_of(lists)
            shared = [k for k, group in enumerate(groups) if group.shared]
            found = record(call, [*lists, rates(), others], shared, translation().ALLOWED)
            after = all_facts(copied)
            changed = [fact for fact, value in after.items() if before.get(fact, self) != value]
            if found == last and not changed and self.groups_of(state_of(copied, learns)) == groups:
                if found.outputs[-2] != found.inputs[-2]:
                    raise CannotRecord(f"{name} itself changes a learning rate")
                if not learns and found.outputs[:-1] != found.inputs[:-1]:
                    raise CannotRecord(f"{name} changes the networks")
                apart = {k for k in shared if len(set(found.outputs[k])) > 1}
                if not apart:
                    translation().check(found, groups)
                    return groups, found
                self.apart |= apart
            last = found
        raise CannotRecord(
            f"{name} changes {changed[0]}"
            if changed
            else f"two calls of {name} one after the other do different things"
        )

    # ----------------------------------------------------------------------------------- calls

    def call(self, name: str, *arguments: np.ndarray | None) -> np.ndarray:
        if self.engine == "compiled":
            try:
                self.load()
                groups, recorded = self.entry(name, *arguments)
                call, random = compiled_call(groups, recorded)
                given = [
                    aligned(value) if value.nbytes > 16_384 else value
                    for value in arguments
                    if value is not None
                ]
                seed = seeds() if random else None
                return np.asarray(call(self.vectors[: len(groups)], given, seed))
            except CannotRecord as reason:
                self.give_way(reason)
        return super().call(name, *arguments)

    def learn_phase(
        self, rows: np.ndarray, weights: np.ndarray, noise: np.ndarray, with_actor: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.engine == "compiled":
            try:
                self.notice_changes()
                self.load()
                entries = {
                    variant: self.entry("learn", rows[0], weights[0], noise[0], variant)
                    for variant in sorted(set(with_actor.tolist()))
                }
                if all(groups == self.groups for groups, _ in entries.values()):
                    recordings = tuple(recorded for _, recorded in entries.values())
                    return self.compiled_phase(recordings, rows, weights, noise, with_actor)
                # Until every optimizer has its averages, PyTorch computes: they begin differently.
                if self.waited:  # their own state is another than the made-up one: record anew
                    self.entries.clear()
                self.waited = True
                self.synced()
                self.take_over()
            except CannotRecord as reason:
                self.give_way(reason)
        return super().learn_phase(rows, weights, noise, with_actor)

    def notice_changes(self) -> None:
        """Record anew where something has changed that a recording holds, such as a setting."""
        if (now := facts_of(self.ddpg)) != self.facts:
            self.changes += 1
            if self.changes > TRIES:
                raise CannotRecord("the learner's attributes change from phase to phase")
            self.entries.clear()
            self.facts = now

    def compiled_phase(self, recordings, rows, weights, noise, with_actor):
        call, random = compiled_phase(self.groups, recordings)
        rates = np.array([float(group["lr"]) for group in parameter_groups(self.ddpg)], np.float32)
        seed = seeds(len(rows)) if random else None
        self.vectors, found = call(
            self.vectors, rates, (seed, aligned(rows), weights, noise, with_actor)
        )
        self.newer = True
        self.synced()
        found = np.asarray(found)
        return found[:, :-2], found[:, -2:]


@functools.cache
def compiled_call(groups, recorded: Recorded):
    """A recording without changes, compiled, and whether it is random."""
    import jax

    library = translation()

    def call(vectors, others, seed):
        inputs = [*vectors, [None] * len(recorded.inputs[-2]), others]
        return library.Translation(recorded, groups, inputs, seed).outputs()[-1][0]

    return jax.jit(call, compiler_options=options()), library.is_random(recorded)


@functools.cache
def compiled_phase(groups, recordings: tuple[Recorded, ...]):
    """Learning steps, without and with the actor, as one call, and whether they are random."""
    import jax

    library = translation()

    def phase(vectors, rates, data):
        def step(vectors, inputs):
            seed, *others, with_actor = inputs

            def run(recorded):
                given = [*vectors, list(rates), others]
                *new, _, (errors, *losses) = library.Translation(
                    recorded, groups, given, seed
                ).outputs()
                found = jax.numpy.append(errors, jax.numpy.stack(losses))
                return [a.astype(b.dtype) for a, b in zip(new, vectors, strict=True)], found

            if len(recordings) == 1:
                return run(recordings[0])
            return jax.lax.cond(with_actor, lambda: run(recordings[1]), lambda: run(recordings[0]))

        return jax.lax.scan(step, vectors, data)

    call = jax.jit(phase, donate_argnums=0, compiler_options=options())
    return call, any(map(library.is_random, recordings))


# ------------------------------------------------------------------- what a recording cannot hold


def facts_of(ddpg: Any) -> dict[str, Any]:
    """Numbers and the like that a recording holds, and that may change between two phases."""
    facts = {
        f"self.{name}": value if isinstance(value, PLAIN) else id(value)
        for name, value in vars(ddpg).items()
    }
    for k, group in enumerate(parameter_groups(ddpg)):
        facts |= {
            f"{name} of parameter group {k}": value
            for name, value in group.items()
            if name not in ("params", "lr")
        }
    return facts


def all_facts(ddpg: Any) -> dict[str, Any]:
    """What a learner knows beside tensors, and the notebook's variables, as far as it is plain."""
    facts = {
        name: plain(value, 0)
        for name, value in inspect.unwrap(type(ddpg).learn).__globals__.items()
    }
    owners = {type(ddpg).__name__: type(ddpg)} | {
        f"{name}.{path}": module
        for name, network in networks(ddpg).items()
        for path, module in network.named_modules()
    }
    for name, owner in owners.items():
        facts |= {f"{name}.{key}": plain(value) for key, value in vars(owner).items()}
    facts |= {f"contents of self.{key}": plain(value) for key, value in vars(ddpg).items()}
    return facts_of(ddpg) | facts


PLAIN = (bool, int, float, str, bytes, type(None))


def plain(value: Any, depth: int = 2) -> Any:
    """A value, or something that changes with it."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (list, tuple, set, frozenset, collections.deque, dict)):
        inner = list(value.items()) if isinstance(value, dict) else list(value)
        return type(value), len(inner), depth and [plain(one, depth - 1) for one in inner]
    if depth and isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    return type(value)


@contextlib.contextmanager
def the_same_chance_afterwards():
    """Leave the random generators of Python, NumPy and PyTorch as they were."""
    states = random_states()
    try:
        yield
    finally:
        restore_random_states(states)


def seeds(*shape: int) -> np.ndarray:
    """Seeds of jax.random, drawn by PyTorch's generator, which is saved with a training."""
    return torch.randint(2**31 - 1, shape, dtype=torch.int32).numpy()
