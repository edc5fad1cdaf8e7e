"""The compiled learner: the notebook's `DDPG` with each update phase as one compiled call.

JAX is imported only when a `CompiledDDPG` is made, so whoever uses PyTorch alone pays nothing and
needs no JAX that works. The arithmetic is in `twin`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from platformdirs import user_cache_dir

from tutorial.training.randomness import normal_numbers

# ------------------------------------------------------------------------------ whether it can be


def why_not(settings: Any) -> str | None:
    """Why settings cannot be compiled here, in one line, or None where they can."""
    for name in ("input_normalization", "actor_normalization", "critic_normalization"):
        if getattr(settings, name) == "batch":
            return f'batch normalisation ({name} = "batch") is left to PyTorch'
    return why_no_jax()


def choose(engine: str, settings: Any) -> str:
    """The engine for these settings, "compiled" or "torch"; says which, and why, where it chooses.

    Args:
        engine: "compiled", "torch", or "auto": compiled where it can be.

    Raises:
        ValueError: "compiled", and it cannot be; says why, and what is allowed.
    """
    if engine == "torch":
        return engine
    reason = why_not(settings)
    if reason and engine == "compiled":
        raise ValueError(f"engine = 'compiled' cannot be: {reason}; choose 'torch' or 'auto'")
    if engine == "auto":
        print(
            f"engine: torch, since {reason}"
            if reason
            else "engine: compiled, each update phase as one call"
        )
    return "torch" if reason else "compiled"


@functools.cache
def why_no_jax() -> str | None:
    """Why JAX cannot be used here, in one line, or None. The first call imports it: a second."""
    try:
        twin()
    except ModuleNotFoundError as error:
        return f"JAX is not installed (no module named {error.name!r}): pip install jax"
    except Exception as error:  # a broken installation fails in any way
        first = str(error).strip().partition("\n")[0]
        return f"JAX is installed but does not work: {type(error).__name__}: {first}"
    return None


@functools.cache
def twin():
    """The module `twin`, with JAX set up: on the processor, in one thread."""
    import jax

    if not jax.config.jax_platforms:  # networks this small learn faster here than on a GPU
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
    if not jax.config.jax_compilation_cache_dir:  # where compiled calls outlive the process
        jax.config.update("jax_compilation_cache_dir", user_cache_dir("continuous-control"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    with environment_variable("NPROC", "1"):  # of which XLA makes the number of its threads
        jax.devices()
    return importlib.import_module("tutorial.training.twin")


@contextlib.contextmanager
def environment_variable(name: str, value: str):
    """Set it for a while, unless it is set."""
    present = name in os.environ
    os.environ.setdefault(name, value)
    yield
    if not present:
        del os.environ[name]


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


# ------------------------------------------------------------------------------------- the learner


def learner(ddpg: Any, engine: str) -> Any:
    """The notebook's learner itself ("torch"), or one that takes over its numbers ("compiled")."""
    return CompiledDDPG(ddpg) if engine == "compiled" else ddpg


def synced(agent: Any) -> Any:
    """The PyTorch learner of the notebook's `Agent` with the newest numbers."""
    if agent.learner is not agent.ddpg:
        agent.learner.sync()
    return agent.ddpg


def compare(
    plain: Any, phases: Sequence[int], batch: int = 64
) -> Iterator[tuple[int, dict[str, float], float]]:
    """Train a learner and a compiled copy of it with the same weights, batches and noise.

    Args:
        plain: the notebook's DDPG; it learns.
        phases: numbers of gradient steps.

    Yields:
        After each phase the number of steps so far, the largest difference of any weight, by
        network, and a bound for it: ten learning rates. Rounding can let a ReLU pass a transition
        in one engine only, and where that is the first gradient of a weight, Adam (averages of 0.9
        and 0.999) moves the weight by up to 1 / sqrt(0.001 / (1 - 0.999^t)) learning rates in all,
        9.8 of them at step t = 100.
    """
    copied, generator, done = copy.deepcopy(plain), np.random.default_rng(0), 0
    bound = 10 * max(plain.settings.actor_learning_rate, plain.settings.critic_learning_rate)
    compiled = CompiledDDPG(copied)
    for steps in phases:
        width = 2 * plain.sizes[0] + plain.sizes[1] + 2
        rows = generator.standard_normal((steps, batch, width), np.float32)
        noise = normal_numbers(generator, (steps, 1, plain.noise_size))
        for learner in (plain, compiled):
            learner.learn_phase(
                rows,
                np.ones((steps, batch), np.float32),
                noise,
                with_actor=np.arange(steps) % 2 == 0,
            )
        compiled.sync()
        done += steps
        yield (
            done,
            {
                name: max(
                    (ours - theirs).abs().max().item()
                    for ours, theirs in zip(
                        network.parameters(), copied.networks()[name].parameters(), strict=True
                    )
                )
                for name, network in plain.networks().items()
            },
            bound,
        )


class CompiledDDPG:
    """Takes over a learner of the notebook, and has its interface.

    The numbers live here while it learns; `sync` writes them back into the notebook's learner,
    bit for bit, from which they are saved and shown.
    """

    def __init__(self, ddpg: Any):
        """Args: ddpg is the notebook's DDPG, whose networks and optimisers are copied."""
        reason = why_not(ddpg.settings)
        if reason:
            raise ValueError(f"these settings cannot be compiled here: {reason}")
        self.ddpg, self.settings, self.noise_size = ddpg, ddpg.settings, ddpg.noise_size
        self.calls = calls_for(ddpg)
        self.steps, networks = {}, {}
        for name in ("critic", "actor"):
            networks[name], self.steps[name] = from_torch(ddpg, name)
        self.critic, self.actor = networks["critic"], networks["actor"]
        self.set_learning_rates(1.0)

    def set_learning_rates(self, factor: float) -> None:
        """Set both to this share of the settings' learning rates."""
        self.rates = {
            "critic": factor * self.settings.critic_learning_rate,
            "actor": factor * self.settings.actor_learning_rate,
        }

    def act(self, observations: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Actions (rows, action_size) for observations; with noise (1 or rows, noise_size)."""
        return np.asarray(self.calls["act"](self.actor.weights, observations, noise))

    def td_errors(self, rows: np.ndarray) -> np.ndarray:
        """TD errors (k,) of transitions (k, width)."""
        return np.asarray(
            self.calls["td_errors"](
                self.critic.weights, self.critic.target, self.actor.target, aligned(rows)
            )
        )

    def learn(
        self, rows: np.ndarray, weights: np.ndarray, noise: np.ndarray, with_actor: bool = True
    ) -> tuple:
        """One gradient step; return TD errors (batch,) and losses: critic, actor if asked.

        Args:
            rows, weights: transitions (batch, width) and their importance weights (batch,).
            noise: of the actor's loss, (1, noise_size).
        """
        errors, losses = self.learn_phase(
            rows[None], weights[None], noise[None], np.array([with_actor])
        )
        return errors[0], *losses[0, : 1 + with_actor].tolist()

    def learn_phase(
        self, rows: np.ndarray, weights: np.ndarray, noise: np.ndarray, with_actor: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A gradient step with each batch, all in one call.

        Args:
            rows, weights: (steps, batch, width) and (steps, batch).
            noise: of the actor's losses, (steps, 1, noise_size).
            with_actor: in which steps the actor learns, (steps,) of bool.

        Returns:
            TD errors (steps, batch), and losses (steps, 2), the actor's 0 where it did not learn.

        Raises:
            ValueError: noise of another shape.
        """
        if noise.shape != (len(rows), 1, self.noise_size):
            raise ValueError(
                f"noise must have the shape ({len(rows)}, 1, {self.noise_size}), not {noise.shape}"
            )
        rates = [
            [self.next_rates("critic"), self.next_rates("actor") if acts else (0, 0)]
            for acts in with_actor
        ]
        self.critic, self.actor, found = self.calls["learn_phase"](
            self.critic,
            self.actor,
            aligned(rows),
            weights,
            noise,
            np.array(rates, dtype=np.float32),
            with_actor,
        )
        found = np.asarray(found)
        return found[:, :-2], found[:, -2:]

    def next_rates(self, name: str) -> tuple[float, float]:
        """What Adam's bias correction makes of the learning rate in the next step of a network."""
        self.steps[name] += 1
        beta1, beta2 = self.calls["betas"]
        return (
            self.rates[name] / (1 - beta1 ** self.steps[name]),
            math.sqrt(1 - beta2 ** self.steps[name]),
        )

    def is_finite(self) -> bool:
        """Whether all weights of actor and critic are: one that is not spoils a sum of squares."""
        weights = [np.asarray(network.weights) for network in (self.critic, self.actor)]
        return all(math.isfinite(vector @ vector) for vector in weights)

    @torch.no_grad()
    def sync(self) -> None:
        """Write all numbers back into the notebook's learner."""
        for name in ("critic", "actor"):
            to_torch(self.ddpg, name, getattr(self, name), self.steps[name])


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


def scale_of(network: torch.nn.Module) -> np.ndarray:
    """What a network multiplies its inputs by."""
    return next((factor.numpy() for name, factor in network.named_buffers()), np.float32(1))


def calls_for(ddpg: Any) -> dict:
    """The compiled calls for a learner; learners with equal settings and sizes share them."""
    scales = {name: scale_of(getattr(ddpg, name)) for name in ("actor", "critic")}
    key = (ddpg.settings, ddpg.sizes, *(scale.tobytes() for scale in scales.values()))
    if key not in CALLS:
        import jax

        shapes = {
            name: {
                key: tuple(parameter.shape)[::-1]
                for key, parameter in getattr(ddpg, name).named_parameters()  # (inputs, outputs)
            }
            for name in scales
        }
        found = twin().Twin(ddpg.settings, ddpg.sizes, shapes, scales)
        jit = functools.partial(jax.jit, compiler_options=options())
        CALLS[key] = {
            "act": jit(found.act),
            "td_errors": jit(found.td_errors),
            "learn_phase": jit(found.learn_phase, donate_argnums=(0, 1)),
            "betas": (twin().BETA1, twin().BETA2),
        }
    return CALLS[key]


CALLS = {}  # compiled calls by settings and sizes


# ------------------------------------------------------------------- to PyTorch's numbers and back


def parts_of(ddpg: Any, name: str):
    """The parameters of a network, of its target, and its optimiser."""
    return (
        list(getattr(ddpg, name).parameters()),
        list(getattr(ddpg, f"target_{name}").parameters()),
        getattr(ddpg, f"{name}_optimizer"),
    )


@torch.no_grad()
def from_torch(ddpg: Any, name: str):
    """The numbers of a network as twin.Learned, and the steps that its optimiser has taken."""
    import jax

    parameters, targets, optimizer = parts_of(ddpg, name)
    averages = [
        optimizer.state.get(parameter)
        or {  # empty before its first step
            "step": 0.0,
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
        for parameter in parameters
    ]
    [steps] = {int(average["step"]) for average in averages}
    vectors = [
        torch.cat([tensor.t().reshape(-1) for tensor in tensors]).numpy()
        for tensors in (
            parameters,
            targets,
            [average["exp_avg"] for average in averages],
            [average["exp_avg_sq"] for average in averages],
        )
    ]
    return twin().Learned(*jax.device_put(vectors, may_alias=False)), steps


def to_torch(ddpg: Any, name: str, network: Any, steps: int) -> None:
    """The opposite."""
    parameters, targets, optimizer = parts_of(ddpg, name)
    sizes = [parameter.numel() for parameter in parameters]
    weights, target, average, square = (
        torch.from_numpy(np.array(vector)).split(sizes) for vector in network
    )
    for k, parameter in enumerate(parameters):
        shape = parameter.t().shape  # (inputs, outputs)
        parameter.copy_(weights[k].view(shape).t())
        targets[k].copy_(target[k].view(shape).t())
        if steps:
            optimizer.state[parameter] = {
                "step": torch.tensor(float(steps)),
                "exp_avg": average[k].view(shape).t().contiguous(),
                "exp_avg_sq": square[k].view(shape).t().contiguous(),
            }
