"""What is seen of a training while it runs: a progress bar, and TensorBoard's curves."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from IPython import get_ipython
from IPython.display import display
from tqdm.std import tqdm

from tutorial.protocols import Agent, PrioritizedReplay
from tutorial.scores import moving_average


class NotebookBar(tqdm):
    """A tqdm bar as one text output that is updated in place.

    It needs no widgets, and a saved notebook or its HTML shows the last state instead of a line
    for every update.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.output = None
        super().__init__(*arguments, **options, file=io.StringIO())

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """What tqdm calls to show itself."""
        text = {"text/plain": str(self) if msg is None else msg}
        if self.output is None:
            self.output = display(text, raw=True, display_id=True)
        else:
            self.output.update(text, raw=True)


def in_notebook() -> bool:
    """Whether a kernel runs this, and a notebook shows what it displays."""
    return hasattr(get_ipython(), "kernel")


def progress_bar(total: int, done: int = 0) -> tqdm:
    """A progress bar over episodes, some of them done before, for a notebook or a terminal."""
    layout = "{n_fmt}/{total_fmt} episodes |{bar:12}| {elapsed}<{remaining}{postfix}"
    return (NotebookBar if in_notebook() else tqdm)(
        total=total, initial=done, bar_format=layout, mininterval=0.5
    )


def show_progress(bar: tqdm, agent: Agent, scores: Sequence[float]) -> None:
    """Move the bar by an episode; print a line for the first ten, every tenth, the last to learn.

    No value can exceed the largest reward, paid for ever; a critic far above that is diverging,
    and the bar says so.
    """
    average = moving_average(scores)[-1]
    shown = {"score": f"{scores[-1]:.2f}", "average": f"{average:.2f}"}
    shown |= {name: f"{value:.2g}" for name, value in agent.log.items()}
    possible = agent.largest_reward / (1 - agent.settings.discount)
    if abs(agent.log["Q"]) > 2 * possible > 0:
        shown["critic diverges, largest possible Q"] = f"{possible:.2g}"
    bar.set_postfix(shown, refresh=False)
    bar.update()  # shows it, twice a second at most
    if len(scores) < 10 or len(scores) % 10 == 0:
        print(
            f"episode {len(scores):4}: score {scores[-1]:5.2f}, "
            f"average {average:5.2f}, Q {agent.log['Q']:.1f}, {bar.format_dict['elapsed']:.0f} s"
        )
    if agent.annealed_episodes == agent.settings.anneal_episodes:  # only once: it counts on
        print(f"episode {len(scores):4}: learning has ended; from now on without noise")


def log_means(agent: Agent, errors: np.ndarray, losses: np.ndarray, with_actor: np.ndarray) -> None:
    """Note in an agent's log the means of an update phase.

    Args: errors, losses and with_actor as the notebook's `DDPG.learn_phase` returns and takes them.
    """
    agent.log["critic loss"] = float(losses[:, 0].mean())
    agent.log["TD error"] = float(np.abs(errors).mean())
    if with_actor.any():
        agent.log["Q"] = -float(losses[with_actor, 1].mean())


def noisy_layer_names(number: int) -> list[str]:
    """Names of an actor's noisy layers, all but its first, by their number."""
    hidden = ["hidden"] if number == 2 else [f"hidden {k}" for k in range(2, number + 1)]
    return [*hidden, "output"] if number else []


def sizes_of_noise(actor: Any) -> dict[str, float]:
    """Mean absolute sigma of the weights of each noisy layer of an actor, by its name."""
    layers = actor.noisy_layers
    return {
        name: layer.sigma_weight.abs().mean().item()
        for name, layer in zip(noisy_layer_names(len(layers)), layers, strict=True)
    }


def scalars(agent: Agent, scores: Sequence[float]) -> dict[str, float]:
    """What TensorBoard shows of an episode."""
    replay = agent.replay
    shown = {
        "score/episode": scores[-1],
        "score/average": moving_average(scores)[-1],
        "noise/in the actions": agent.log["noise"],
        "Q/of the policy": agent.log["Q"],
        "loss/critic": agent.log["critic loss"],
        "loss/actor": -agent.log["Q"],
        "TD error": agent.log["TD error"],
    }
    shown |= {
        f"noise/sigma, {name}": size
        for name, size in sizes_of_noise(agent.learner.synced().actor).items()
    }
    if agent.learns:  # afterwards nobody needs a memory, and a resumed training has none
        shown["replay/transitions"] = len(replay)
        if isinstance(replay, PrioritizedReplay):
            shown["replay/mean of p^alpha"] = replay.tree[1] / max(1, len(replay))
    return shown


@contextlib.contextmanager
def tensorboard_curves(
    folder: Path, wanted: bool = True
) -> Iterator[Callable[[Agent, Sequence[float]], None] | None]:
    """A context with what writes an agent's `scalars` after an episode, or with None.

    The curves go to `<folder>/tensorboard`. Episodes that a resumed training repeats replace those
    that it played before.

    Raises:
        ValueError: the package is missing.
    """
    if not wanted:
        yield None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError("tensorboard = True needs the package: pip install tensorboard") from None
    writer = None
    time_and_steps: tuple[float, int | None] = time.perf_counter(), None

    def after_episode(agent: Agent, scores: Sequence[float]) -> None:
        nonlocal writer, time_and_steps
        if writer is None:  # by now the folder is there, and the first episode is known
            writer = SummaryWriter(folder / "tensorboard", purge_step=len(scores))
        then, steps = time_and_steps
        time_and_steps = time.perf_counter(), agent.num_updates
        shown = scalars(agent, scores)
        if steps is not None:
            shown["gradient steps a second"] = (agent.num_updates - steps) / (
                time_and_steps[0] - then
            )
        for name, value in shown.items():
            writer.add_scalar(name, value, len(scores))

    try:
        yield after_episode
    finally:
        if writer:
            writer.close()
