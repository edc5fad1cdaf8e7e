"""The commands of `python -m research`, of which each says more by --help."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research import baselines, benchmark, fidelity, figures, planner, results, runner, tables
from research.plans import PLANS, Measure, Plan
from research.training import Training, make_training
from tutorial.paths import CHECKPOINTS, RUNS

Options = argparse.Namespace


def plan(options: Options) -> int:
    """Train what a plan misses; without a name say what is stored of all plans."""
    for name in [options.name] if options.name else PLANS:
        trainings = PLANS[name].trainings(name)
        missing = [one for one in trainings if not runner.is_stored(one, CHECKPOINTS)]
        stored = f"{len(trainings) - len(missing)} of {len(trainings)}" if trainings else "finished"
        print(f"{name:18}{stored:12}{PLANS[name].question}")
    if not options.name:
        return 0
    chosen = [one for one in missing if one.variant in (options.only or [one.variant])]
    if options.list:
        print(*chosen, sep="\n")
        return 0
    return runner.run_trainings(chosen, CHECKPOINTS, options.address, options.workers)


def sweep(options: Options) -> int:
    """Train all combinations of settings on some seeds; print a table, and draw the curves."""
    folder, trainings = RUNS / "sweeps", sweep_of(options)
    failed = runner.run_trainings(trainings, folder, options.address, options.workers)
    variants = results.read_plan(options.name, folder)
    print(tables.means_table(Plan("", measure=Measure("score")), variants))
    figures.curves(variants).savefig(folder / options.name / "curves.png", dpi=110)
    print(f"results and curves.png are in {folder / options.name}")
    return failed


def sweep_of(options: Options) -> list[Training]:
    """The trainings of a sweep, a seed of every combination before the next seed."""
    settings = [[(name, value) for value in values] for name, values in options.settings]
    variants = {
        "_".join(f"{name}_{value}" for name, value in one) or "default": dict(one)
        for one in itertools.product(*settings)
    }
    return [
        make_training(options.name, variant, seed, {"episodes": 20, "evaluate_every": 1, **changes})
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for variant, changes in variants.items()
    ]


def setting(text: str) -> tuple[str, list[Any]]:
    """`name=1,2` as the name and its values, which are JSON or, else, text."""
    name, _, values = text.partition("=")
    if not name or not values:
        raise argparse.ArgumentTypeError(f"{text!r} must be like n_step=1,3")
    try:
        return name, json.loads(f"[{values}]")
    except json.JSONDecodeError:
        return name, values.split(",")


def show_tables(options: Options) -> None:
    """Print the tables of plans, or of all, with their tests."""
    for name in options.name or PLANS:
        print(tables.report(name), end="\n\n")


def draw_figures(options: Options) -> None:
    """Draw the figures of doc/."""
    print(*map(figures.draw, figures.FIGURES), sep="\n")


def run_planner(options: Options) -> int:
    """Ask a planner that knows the simulator for the best scores, for plan `planner`."""
    return planner.run(options.goals, CHECKPOINTS, options.address, options.workers)


def tune(options: Options) -> None:
    """Try settings of another library's agent."""
    baselines.tune(options.agent, options.trials)


def measure_times(options: Options) -> None:
    """Print processor seconds of ours beside a library's agent."""
    print(benchmark.table(options.seeds))


def compare_with_unity(options: Options) -> None:
    """Play policies that were trained in the Unity build."""
    found = fidelity.measured(options.folder, options.episodes)
    print(fidelity.table(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Any, /, distributed: bool = False, **defaults: Any) -> Any:
        one = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        one.set_defaults(function=function)
        for option, default in defaults.items():
            one.add_argument(f"--{option.replace('_', '-')}", type=type(default), default=default)
        if distributed:
            one.add_argument("--address", default="", help="of a Dask scheduler, tcp://host:port")
            one.add_argument("--workers", type=int, help="processes here, without an address")
        return one

    one = command("plan", plan, distributed=True)
    one.add_argument("name", nargs="?", choices=PLANS, metavar="NAME")
    one.add_argument("--list", action="store_true", help="say what is missing, and train nothing")
    one.add_argument("--only", nargs="*", metavar="VARIANT")
    one = command("sweep", sweep, distributed=True, name="sweep", seeds=3, first_seed=0)
    one.add_argument("settings", nargs="*", type=setting, help="such as n_step=1,3 episodes=20")
    command("tables", show_tables).add_argument("name", nargs="*", help="of plans")
    command("figures", draw_figures)
    command("planner", run_planner, distributed=True, goals=100)
    command("tune", tune, trials=13).add_argument("agent", choices=baselines.AGENTS)
    command("benchmark", measure_times, seeds=3)
    one = command("fidelity", compare_with_unity, episodes=fidelity.EPISODES)
    one.add_argument("folder", type=Path)
    one.add_argument("--out", type=Path, help="JSON file")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return min(1, options.function(options) or 0)
    except KeyboardInterrupt:
        print("stopped; the same command goes on with what is not stored yet")
        return 130
    except (ValueError, KeyError, OSError, ModuleNotFoundError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
