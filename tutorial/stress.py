"""What a training survives, at full size: memory, saving, watching, arms, cuts, disks, company.

    python -m tutorial.stress                    all parts, more than an hour
    python -m tutorial.stress --only arms,watch  some of them
    python -m tutorial.stress --quick            tiny sizes: does the code run?

It prints its figures, one per line; doc/reliability.md holds those of one machine.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import gc
import json
import os
import pstats
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import mujoco
import numpy as np
import torch

import helpers
from reacher import ReacherEnvironment
from tutorial import notebook
from tutorial.benchmarks import measure
from tutorial.paths import PROJECT

ARMS = 20


def memory() -> float:
    """Resident memory of this process, MB."""
    import psutil  # comes with jupyter

    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def show(what: str, value, unit: str = "") -> None:
    """Print one figure."""
    text = f"{value:,.4g}" if isinstance(value, float) else str(value)
    print(f"{what}: {text} {unit}".rstrip(), flush=True)


# ---------------------------------------------------------------------------------------- trainings


def train(folder, episodes: int, save_every: int = 10, seed: int = 0, after_episode=None) -> float:
    """A training with the default preset and 20 arms, as in the notebook; it goes on if it can.

    It keeps its last state. Args: after_episode is called as train_agent says.

    Returns:
        the seconds that it took.
    """
    definitions, folder = notebook.definitions(), Path(folder)
    torch.set_num_threads(1)
    environment = helpers.open_environment("", ARMS, seed)
    generator = helpers.seed_everything(seed)
    settings = definitions.make_hyperparameters("default", {})
    agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, ARMS, settings, generator)
    print("training begins", flush=True)
    start = time.perf_counter()
    definitions.train_agent(
        environment,
        agent,
        folder,
        episodes,
        stop_when_solved=False,
        save_every=save_every,
        resume=helpers.TrainingState(folder).exists(),
        after_episode=after_episode,
        keep_state=True,
        metadata={"seed": seed},
    )
    environment.close()
    return time.perf_counter() - start


def left_by(folder: Path) -> dict:
    """All that a training left but the time that it took: scores, weights, its last state."""
    _, facts, tensors = helpers.TrainingState(folder).load()
    timeless = {name: fact for name, fact in facts.items() if name not in ("seconds", "lines")}
    return {
        "facts": json.dumps(timeless),
        "scores": [line.rsplit(",", 1)[0] for line in (folder / "scores.csv").open()],
        "files": sorted(path.name for path in folder.iterdir()),
        **{path.name: path.read_bytes() for path in folder.glob("*.safetensors")},
        **{name: tensor.numpy().tobytes() for name, tensor in tensors.items()},
    }


def in_a_process(folder, episodes, save_every=10, seed=0) -> subprocess.Popen:
    """A training in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tutorial.stress",
        "--train",
        str(folder),
        str(episodes),
        str(save_every),
        str(seed),
    ]
    return subprocess.Popen(
        command, cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finished(process: subprocess.Popen) -> None:
    output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a training failed:\n{output[-1000:]}\n{errors[-3000:]}")


# --------------------------------------------------------------------------------------- the parts


def long(quick: bool, place: Path) -> None:
    """Memory over 200 episodes, and what saving costs."""
    episodes, save_every = (4, 2) if quick else (200, 10)
    states, saving, lasted = helpers.TrainingState(place / "states"), [], []

    def measure_memory_and_saving(agent, scores):
        lasted.append(time.perf_counter())
        if len(scores) in (2, 4, 10, *range(20, 201, 20)):
            filled = len(agent.replay) * agent.replay.rows[0].nbytes / 1e6
            show(
                f"memory after episode {len(scores)}",
                memory(),
                f"MB, of them {filled:.0f} MB of transitions",
            )
        if len(scores) % save_every == 0:
            start = time.perf_counter()
            helpers.save_state(states, agent, None)
            saving.append(time.perf_counter() - start)

    total = train(place / "long", episodes, 10**6, after_episode=measure_memory_and_saving)
    show("training", total / 60, "min")
    show("states saved", len(saving))
    show("median seconds of saving a state", float(np.median(saving)))
    show("longest", max(saving))
    show("saving states", 100 * sum(saving) / total, "% of the training")
    half = len(saving) // 2
    show(
        "saving states in the second half",
        100 * sum(saving[-half:]) / (lasted[-1] - lasted[len(lasted) // 2 - 1]),
        "%",
    )
    size = sum(path.stat().st_size for path in states.folder.iterdir()) / 1e6
    show("both states on disk", size, "MB")
    start = time.perf_counter()
    helpers.TrainingState(place / "states").load()
    show("reading a state", time.perf_counter() - start, "s")


def watch(quick: bool, place: Path) -> None:
    """What watching the numbers costs, of the time of a training."""
    episodes, names = 2 if quick else 12, ("require_finite", "require_healthy")
    total, profile = train(place / "watch", episodes), cProfile.Profile()
    profile.runcall(train, place / "profiled", episodes)
    stats = pstats.Stats(profile).get_stats_profile().func_profiles
    share = total / pstats.Stats(profile).total_tt  # a profiled call takes longer, as all others
    for name in names:
        calls = int(str(stats[name].ncalls).split("/")[0])
        show(f"{name}, {calls} calls, mean", 1e6 * share * stats[name].cumtime / calls, "us")
        show(name, 100 * share * stats[name].cumtime / total, "% of the training")


def arms(quick: bool, place: Path) -> None:
    """Twenty million decisions of single arms under torques that are meant to break the physics."""
    number, episode = 1_000, 101 if quick else 1_001
    environment = ReacherEnvironment(number, seed=0)
    task = environment._task
    chance = np.random.default_rng(0)
    total, worst = 0, {}

    def play(name, decisions, act, each=lambda angular: None):
        """`decisions` of all arms; note the fastest rotation and motion of any body."""
        nonlocal total
        fastest = np.zeros(2)
        answer = environment.reset()["ReacherBrain"]
        for decision in range(decisions):
            bodies = answer.vector_observations[:, :26].reshape(number, 2, 13)
            angular, linear = bodies[..., 7:10], bodies[..., 10:13]
            each(angular)
            actions = act(decision, angular)
            answer = environment.step(actions)["ReacherBrain"]
            fastest = np.maximum(
                fastest,
                [np.linalg.norm(angular, axis=-1).max(), np.linalg.norm(linear, axis=-1).max()],
            )
            if not (
                np.isfinite(answer.vector_observations).all() and np.isfinite(answer.rewards).all()
            ):
                raise FloatingPointError(f"{name}: not finite in decision {decision}")
        total += decisions * number
        worst[name] = np.maximum(worst.get(name, 0), fastest)

    def along(angular):  # about the axes on which torques act, x and z, upper arm then forearm
        return np.where(angular[..., ::2] >= 0, 1.0, -1.0).reshape(number, 4)

    def signs():
        return chance.choice([-1.0, 1.0], (number, 4))

    frequency = chance.uniform(0.02, 2.0, (number, 1))  # radians a decision
    phase = chance.uniform(0, 2 * np.pi, (number, 4))
    ways = signs()
    held = {"signs": signs()}

    def switching(decision, angular):
        flip = chance.random((number, 4)) < 0.05
        held["signs"] = np.where(flip, -held["signs"], held["signs"])
        return held["signs"]

    policies = {
        "random": lambda decision, angular: chance.uniform(-1, 1, (number, 4)),
        "extreme, held for an episode": lambda decision, angular: ways,
        "extreme, switching at random": switching,
        "along each body's own rotation": lambda decision, angular: along(angular),
        "along it or against it, body by body": lambda decision, angular: ways * along(angular),
        "resonance, 1,000 frequencies": lambda decision, angular: np.sign(
            np.sin(frequency * decision + phase)
        ),
    }
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for name, act in policies.items():
            for _ in range(1 if quick else 3):
                play(name, episode, act)
        search(play, number, chance, 1 if quick else 8)
    for name, (angular, linear) in worst.items():
        show(f"{name}: fastest rotation", float(angular), f"rad/s, fastest motion {linear:.1f} m/s")
    show("decisions of single arms", f"{total:,}")
    show(
        "warnings of MuJoCo",
        int(
            sum(
                task.physics.data.warning[kind].number
                for kind in range(int(mujoco.mjtWarning.mjNWARNING))
            )
        ),
    )


def search(play, number: int, chance: np.random.Generator, generations: int) -> None:
    """Look for the torques that make a body move fastest, by mutation and selection.

    An arm's torques are the signs of linear functions of its rotation and of an oscillation.
    """
    gains = chance.normal(size=(number, 4, 6))
    frequency = chance.uniform(0.02, 2.0, number)
    for _ in range(generations):
        peak = np.zeros(number)

        def act(decision, angular, gains=gains, frequency=frequency):
            wave = np.stack([np.sin(frequency * decision), np.cos(frequency * decision)], -1)
            seen = np.concatenate([angular[..., ::2].reshape(number, 4) / 7, wave], axis=1)
            return np.sign(np.einsum("aij,aj->ai", gains, seen))

        def note(angular, peak=peak):
            np.maximum(peak, np.abs(angular).sum(axis=(1, 2)), out=peak)

        play("search for the fastest", 501, act, note)
        best = np.argsort(peak)[-number // 5 :]
        parents = chance.choice(best, number)
        gains = gains[parents] + 0.3 * chance.normal(size=gains.shape)
        frequency = np.abs(frequency[parents] + 0.05 * chance.normal(size=number))


def cuts(quick: bool, place: Path) -> None:
    """A training that is killed twenty times at random moments ends as one that is not."""
    episodes, kills, chance = (2, 2, random.Random(0)) if quick else (10, 20, random.Random(0))
    start = time.perf_counter()
    finished(in_a_process(place / "uncut", episodes, 1))
    one_episode = (time.perf_counter() - start) / (episodes + 2)
    for kill in range(kills):
        process = in_a_process(place / "cut", episodes, 1)
        for line in process.stdout:
            if line.startswith("training begins"):
                break
        time.sleep(chance.uniform(0, 1.5 * one_episode))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        done = [int(path.stem.split("_")[1]) for path in (place / "cut" / "state").glob("*.json")]
        show(
            f"kill {kill + 1}: ended by {process.returncode}, episodes saved", max(done, default=0)
        )
    finished(in_a_process(place / "cut", episodes, 1))
    show(
        "scores, weights and state as without the cuts",
        left_by(place / "cut") == left_by(place / "uncut"),
    )


def full_disk(quick: bool, place: Path) -> None:
    """A training on a disk that is too small, and again when there is space. Needs `mount`."""
    episodes, disk = 3 if quick else 6, place / "disk"
    disk.mkdir()
    size = "9m" if quick else "40m"
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
    )
    if mount.returncode:
        show("full disk", f"not measured: {mount.stderr.strip()}")
        return
    try:
        process = in_a_process(disk / "run", episodes, 1)
        _, errors = process.communicate()
        show("ended by", errors.strip().splitlines()[-1])
        remains = [path.name for path in disk.rglob("*.tmp")]
        show("half files", remains or "none")
        show("episodes in scores.csv", len(helpers.read_scores(disk / "run/scores.csv")["score"]))
        subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
        finished(in_a_process(disk / "run", episodes, 1))
        finished(in_a_process(place / "roomy", episodes, 1))
        show(
            "with space again: scores, weights and state as on a large disk",
            left_by(disk / "run") == left_by(place / "roomy"),
        )
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def together(quick: bool, place: Path) -> None:
    """Two trainings at once, in two processes, and each alone."""
    episodes = 1 if quick else 4
    both = [in_a_process(place / f"together{seed}", episodes, 2, seed) for seed in (0, 1)]
    for process in both:
        finished(process)
    for seed in (0, 1):
        finished(in_a_process(place / f"alone{seed}", episodes, 2, seed))
        show(
            f"seed {seed}: scores, weights and state the same in company and alone",
            left_by(place / f"alone{seed}") == left_by(place / f"together{seed}"),
        )


PARTS = {
    "arms": arms,
    "watch": watch,
    "together": together,
    "full_disk": full_disk,
    "cuts": cuts,
    "long": long,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tutorial.stress",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument(
        "--train",
        nargs=4,
        metavar=("FOLDER", "EPISODES", "SAVE_EVERY", "SEED"),
        help="only train; this is how the parts begin processes",
    )
    options = parser.parse_args()
    if options.train:
        folder, *numbers = options.train
        train(folder, *map(int, numbers))
        return
    for name in options.only.split(","):
        if name not in PARTS:
            parser.error(f"unknown part {name!r}; known are {', '.join(PARTS)}")
    print(json.dumps(measure.machine() | measure.versions() | {"load": os.getloadavg()}))
    for name in options.only.split(","):
        print(f"\n{name}: {PARTS[name].__doc__.splitlines()[0]}")
        with (
            tempfile.TemporaryDirectory() as place,
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stderr(nowhere),
        ):  # the bars
            PARTS[name](options.quick, Path(place))


if __name__ == "__main__":
    main()
