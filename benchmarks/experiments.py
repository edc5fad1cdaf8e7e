"""All trainings that the report draws from, run through the notebook: `make experiments`.

    python -m benchmarks.experiments --list
    python -m benchmarks.experiments --workers 2 --only default deeprl

Each experiment is a preset with overrides over some seeds. A run is the notebook itself, executed
by papermill in `--out`; its score file and hyperparameters, and for a preset's first seed the best
weights, are then copied to `checkpoints/<experiment>/seed<N>/`. What is there is not run again, and
a run that was cut goes on from its last state.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
NOTEBOOK = PROJECT / "Continuous_Control.ipynb"
CHECKPOINTS = PROJECT / "checkpoints"


@dataclass(frozen=True)
class Experiment:
    """One line of a comparison: what it trains, and on how many seeds."""

    preset: str = "default"
    overrides: dict = field(default_factory=dict)
    seeds: int = 3
    max_episodes: int = 150
    stop_when_solved: bool = True
    num_agents: int = 20
    env_location: str = ""
    weights: bool = False  # keep the best weights of the first seed


EXPERIMENTS = {
    "default": Experiment(seeds=5, weights=True),
    "deeprl": Experiment("deeprl", max_episodes=300, weights=True),
    "reacher_arm": Experiment("reacher_arm", seeds=1, max_episodes=50),  # does not learn
    "walkthrough": Experiment("walkthrough", max_episodes=300, weights=True),
    "one_arm": Experiment(num_agents=1, max_episodes=250),
    "pendulum": Experiment(num_agents=1, env_location="gymnasium:Pendulum-v1"),
}


@dataclass(frozen=True)
class Run:
    """One training: an experiment and a seed."""

    name: str
    seed: int

    @property
    def experiment(self) -> Experiment:
        return EXPERIMENTS[self.name]

    @property
    def kept(self) -> Path:
        """Where its score file stays."""
        return CHECKPOINTS / self.name / f"seed{self.seed}"

    def done(self) -> bool:
        return (self.kept / "scores.csv").exists()

    def command(self, out: Path) -> list[str]:
        """The papermill command that trains it into `<out>/<name>/`."""
        experiment = self.experiment
        folder = out / self.name / experiment.preset / f"seed{self.seed}"
        resume = any((folder / "state").glob("state_*.json"))
        parameters = {
            "preset": experiment.preset, "seed": self.seed, "num_agents": experiment.num_agents,
            "max_episodes": experiment.max_episodes, "overrides": experiment.overrides,
            "stop_when_solved": experiment.stop_when_solved, "resume": resume,
            "env_location": experiment.env_location, "out_dir": str(out / self.name)}
        return [sys.executable, "-m", "papermill", str(NOTEBOOK),
                str(out / f"{self.name}_seed{self.seed}.ipynb"), "-y", json.dumps(parameters),
                "--kernel", "python3", "--no-progress-bar", "--cwd", str(PROJECT)]

    def train(self, out: Path) -> str:
        """Run it and keep its files; return a line that says how it went."""
        if self.done():
            return f"{self.name} seed {self.seed}: kept from before"
        out.mkdir(parents=True, exist_ok=True)
        log = out / f"{self.name}_seed{self.seed}.log"
        start = time.perf_counter()
        with open(log, "w") as file:
            failed = subprocess.run(self.command(out.resolve()), stdout=file, stderr=file,
                                    env=os.environ | {"OMP_NUM_THREADS": "1"}).returncode
        if failed:
            return f"{self.name} seed {self.seed}: FAILED, see {log}"
        self.keep(out)
        return f"{self.name} seed {self.seed}: {time.perf_counter() - start:.0f} s"

    def keep(self, out: Path) -> None:
        """Copy what stays to `checkpoints/`, the score file last, since it means done."""
        source = out / self.name / self.experiment.preset / f"seed{self.seed}"
        self.kept.mkdir(parents=True, exist_ok=True)
        names = ["hyperparameters.json", "scores.csv"]
        if self.experiment.weights and self.seed == 0:
            names = ["actor_best.safetensors", "critic_best.safetensors", *names]
        for name in names:
            shutil.copyfile(source / name, self.kept / name)
        shutil.rmtree(source / "state", ignore_errors=True)  # large, and no longer needed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=PROJECT / "runs" / "experiments")
    parser.add_argument("--list", action="store_true", help="say what is done, and run nothing")
    options = parser.parse_args(arguments)
    runs = [Run(name, seed) for name in options.only for seed in range(EXPERIMENTS[name].seeds)]
    if options.list:
        for run in runs:
            print(f"{run.name:24} seed {run.seed:2}  {'done' if run.done() else 'to do'}")
        return 0
    start, failures = time.perf_counter(), 0
    with ThreadPoolExecutor(options.workers) as pool:
        for line in pool.map(lambda run: run.train(options.out), runs):
            print(line, flush=True)
            failures += "FAILED" in line
    print(f"{len(runs)} runs in {time.perf_counter() - start:.0f} s, {failures} failed")
    return failures


if __name__ == "__main__":
    sys.exit(main())
