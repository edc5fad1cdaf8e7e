"""A whole training made small, for the tests of cuts and faults.

It does what section 6 of the notebook does, with short episodes of the real environment. Run as a
script, this file is a server that trains in forks of itself, which may be killed.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.utils._pytree import tree_flatten_with_path

from reacher import files, task
from reacher.episode import evaluate_policy
from research.bugs import BATCH, COURSE
from tutorial import run_files
from tutorial.environments import open_environment
from tutorial.notebook import definitions, load_definitions
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.randomness import seed_everything
from tutorial.states import TrainingState

ARMS, DECISIONS = 2, 14  # of an episode
SMALL = {
    "actor_hidden": (8, 8),
    "critic_hidden": (8, 8),
    "batch_size": 16,
    "learning_starts": 20,
    "replay_capacity": 5_000,
    "train_freq": 5,
    "gradient_steps": 2,
}
CLIP = (
    "    loss.backward()\n    optimizer.step()",
    "    loss.backward()\n"
    '    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 0.5)\n'
    "    optimizer.step()",
)
KINDS = {  # different things to remember
    "default": {},  # prioritized replay, NoisyNet, Gaussian noise on the actions
    "uniform replay and OU noise": {"replay": "uniform", "noisy_layers": False},
    "batch normalization": {},
    "no noise": {"noisy_layers": False, "gaussian_sigma": 0.0},
    "an end of learning": {"anneal_score": 0.0, "anneal_episodes": 2},  # after two of six episodes
    "ring that wraps around": {"replay_capacity": 70, "n_step": 1},
}
EDITS = {  # of the cells, as a reader makes them: old and new text
    "uniform replay and OU noise": COURSE,
    "batch normalization": (BATCH,),
    "ring that wraps around": (CLIP,),
}


def shrink(patch=setattr) -> None:
    """Make episodes small, and leave out waiting for the disk.

    Args: patch is `monkeypatch.setattr` where the change should end with a test.
    """
    patch(task, "EPISODE_DECISIONS", DECISIONS)
    patch(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})  # scores vary
    patch(os, "fsync", lambda descriptor: None)  # only a loss of power needs it
    patch(run_files, "versions", functools.cache(run_files.versions))


@functools.cache
def edited(kind):
    """The notebook's definitions with a kind's edits, one copy in a process."""
    return load_definitions(NOTEBOOK, EDITS[kind])


def cells(notebook, kind):
    """The notebook's definitions, or those with a kind's edits."""
    return edited(kind) if kind in EDITS else notebook


def make_agent(notebook, kind="default", **overrides):
    notebook = cells(notebook, kind)
    settings = notebook.make_hyperparameters("default", SMALL | KINDS[kind] | overrides)
    generator = seed_everything(0)
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, generator)
    if kind == "an end of learning":  # from the start, and not once 20 arms have been seen
        agent.first_score = agent.best_score = 0.0
    return agent


def train(
    notebook,
    folder,
    kind="default",
    episodes=6,
    save_every=1,
    environment=None,
    stop_when_solved=True,
    after_episode=None,
    reward_threshold=30.0,
    keep_state=True,
    **overrides,
):
    """Train as the notebook does, and go on where there is something to go on from."""
    folder, notebook = Path(folder), cells(notebook, kind)
    environment = environment or open_environment("", ARMS, 0)
    agent = make_agent(notebook, kind, **overrides)
    agent.reward_threshold = reward_threshold
    notebook.train_agent(
        environment,
        agent,
        folder,
        episodes,
        stop_when_solved,
        save_every,
        resume=TrainingState(folder).exists(),
        after_episode=after_episode,
        keep_state=keep_state,
        metadata={"seed": 0},
    )
    return agent


WEIGHTS = [
    f"{network}_{which}.safetensors"
    for network in ("actor", "critic")
    for which in ("best", "last")
]


def left_by(folder: Path) -> dict:
    """All that a training left but the time that it took: scores, weights, its last state."""
    state = TrainingState(folder).load()
    facts = json.loads(state.pop("facts"))
    timeless = {name: fact for name, fact in facts.items() if name not in ("seconds", "lines")}
    leaves = {str(path): value for path, value in tree_flatten_with_path(state)[0]}
    return {
        "facts": json.dumps(timeless),
        "scores": [line.rsplit(",", 1)[0] for line in (folder / "scores.csv").open()],
        "files": sorted(path.name for path in folder.iterdir()),
        **{path.name: path.read_bytes() for path in folder.glob("*.safetensors")},
        **{
            name: value.numpy().tobytes() if isinstance(value, torch.Tensor) else value
            for name, value in leaves.items()
        },
    }


def assert_same(one: dict, other: dict) -> None:
    """Every number of two outcomes is the same, bit for bit."""
    assert one.keys() == other.keys()
    differing = [name for name in one if one[name] != other[name]]
    assert not differing, f"{differing[:5]} differ"


# ----------------------------------------------------------------------------- in another process


class Forks:
    """Small trainings in processes of their own, which end as they are told to."""

    def __init__(self):
        self.server = subprocess.Popen(
            [sys.executable, __file__],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
        )

    def train(self, folder, cut=None, kill_at=None, file_limit=None, **options):
        """Train in a fork; return how that ended.

        Args:
            cut: a signal that the process sends itself, or None; the decision, counted from 1 on
                since it began, that starts a clock; and the seconds of processor time until then.
                So a cut cannot come too early or too late, however busy the machine is.
            kill_at: the number of the file operation at which the process is killed.
            file_limit: largest size of a file, in bytes: beyond it, as on a full disk, writing
                fails.
            options: of `train`.

        Returns:
            `ended` (0 for well, minus the number of a signal), `operations` on files, and the
            `output`.
        """
        order = {
            "cut": cut,
            "kill_at": kill_at,
            "file_limit": file_limit,
            "options": {"folder": str(folder), **options},
        }
        print(json.dumps(order), file=self.server.stdin, flush=True)
        return json.loads(self.server.stdout.readline())

    def close(self):
        self.server.communicate()


class CutShort:
    """The real environment; some time after a decision its process gets a signal.

    None stands for an end at once, in the middle of whatever the process does: the system ends it
    when the clock has run out. Python handles other signals itself, between two instructions.
    """

    def __init__(self, send, decision, seconds):
        self.environment = open_environment("", ARMS, 0)
        self.left, self.seconds = decision, seconds
        if send:
            signal.signal(signal.SIGVTALRM, lambda *_: os.kill(os.getpid(), getattr(signal, send)))

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def step(self, actions):
        self.left -= 1
        if not self.left:
            signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)
        return self.environment.step(actions)


def warm_up(notebook) -> None:
    """Load and compile once, for all forks. Gradients would start threads, which a fork loses."""
    for each in (notebook, *map(edited, EDITS)):
        each.tree_update(np.zeros(4), np.arange(2), np.ones(2))
        each.tree_find(np.ones(4), np.ones(2))
    agent, environment = make_agent(notebook), open_environment("", ARMS, 0)
    agent.ddpg.actor_optimizer.step()
    evaluate_policy(environment, lambda seen: agent.act(seen, explore=False))


def serve() -> None:
    """Carry out the orders that come in, one by one."""
    torch.set_num_threads(1)
    notebook = definitions()
    shrink()
    warm_up(notebook)
    log = Path(tempfile.mkdtemp()) / "output"
    for line in sys.stdin:
        order = json.loads(line)
        from_child, to_parent = os.pipe()
        child = os.fork()
        if not child:
            run_fork(notebook, order, log, to_parent)
        os.close(to_parent)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        operations = os.read(from_child, 100)
        os.close(from_child)
        print(
            json.dumps(
                {"ended": ended, "output": log.read_text(), "operations": int(operations or 0)}
            ),
            flush=True,
        )
    shutil.rmtree(log.parent)


def run_fork(notebook, order, log, to_parent) -> None:
    """Train; the process ends here."""
    ended, operations = 1, [0]
    try:
        descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(descriptor, 1), os.dup2(descriptor, 2)
        count_operations(operations, order["kill_at"])
        if order["file_limit"]:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_limit"],) * 2)
        warnings.simplefilter("error")  # no state here is damaged
        environment = CutShort(*order["cut"]) if order["cut"] else None
        train(notebook, **order["options"], environment=environment)
        ended = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os.write(to_parent, b"%d" % operations[0])
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(ended)


def count_operations(operations, kill_at) -> None:
    """Count what is done to files; kill this process before the operation of that number."""

    def counted(name, call):
        def operation(*arguments, **options):
            operations[0] += 1
            if operations[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return operation

    for name in ("replace", "unlink", "fsync", "rename", "mkdir"):
        setattr(os, name, counted(name, getattr(os, name)))
    files.open = counted("open", open)


if __name__ == "__main__":
    serve()
