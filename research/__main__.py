"""The commands of `python -m research`, of which each says more by --help."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from research import fidelity, runner, tables
from research.bugs import BUGS, plot_bugs
from research.plans import PLANS, Measure, Plan
from research.training import Training, make_training
from tutorial.figures import plot_with_and_without
from tutorial.paths import DOC, RUNS, plan_folder
from tutorial.results import read_plan

Options = argparse.Namespace


def plan(options: Options) -> int:
    """Train what a plan misses; without a name say what is stored of all plans."""
    for name in [options.name] if options.name else PLANS:
        trainings = PLANS[name].trainings(name)
        folder = plan_folder(name).parent
        missing = [one for one in trainings if not runner.is_stored(one, folder)]
        stored = f"{len(trainings) - len(missing)} of {len(trainings)}" if trainings else "finished"
        print(f"{name:18}{stored:12}{PLANS[name].question}")
    if not options.name:
        return 0
    return runner.run_trainings(missing, folder, options.address, options.workers)


def sweep(options: Options) -> int:
    """Train all combinations of settings on some seeds; print a table, and draw the curves."""
    folder, trainings = RUNS / "sweeps", sweep_of(options)
    failed = runner.run_trainings(trainings, folder, options.address, options.workers)
    variants = read_plan(options.name, folder)
    print(tables.means_table(Plan("", measure=Measure("score")), variants))
    curves = {name: (one["episode"][0], one["score"]) for name, one in variants.items()}
    figure = plot_with_and_without(curves)
    figure.savefig(folder / options.name / "curves.png", dpi=110)
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


def figure(options: Options) -> None:
    """Draw curves of all bugs over the range of the agent without one."""
    shown = {name: bug.title for name, bug in BUGS.items() if bug.number}
    plot_bugs(tables.read("bugs"), shown).savefig(options.out, dpi=110)


def show(texts: Iterable[Any]) -> None:
    for text in texts:
        print(text, flush=True)


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Any, told: str, trains: bool = False) -> Any:
        one = commands.add_parser(name, help=told, description=told)
        one.set_defaults(function=function)
        if trains:
            one.add_argument("--address", default="", help="of a Dask scheduler, tcp://host:port")
            one.add_argument("--workers", type=int, help="processes here, without an address")
        return one

    one = command("plan", plan, "train what a plan misses; without a name list the plans", True)
    one.add_argument("name", nargs="?", choices=PLANS, metavar="NAME")
    one = command("sweep", sweep, "train all combinations of settings on some seeds", True)
    one.add_argument("settings", nargs="*", type=setting, help="such as n_step=1,3 episodes=20")
    one.add_argument("--name", default="sweep")
    one.add_argument("--seeds", type=int, default=3)
    one.add_argument("--first-seed", type=int, default=0)
    one = command("tables", lambda o: show(map(tables.report, o.name or PLANS)), "print the tables")
    one.add_argument("name", nargs="*", help="of plans; all without a name")
    one = command("figure", figure, "draw that of doc/bugs.md")
    one.add_argument("--out", type=Path, default=DOC / "bugs.png", help="the file")
    one = command(
        "fidelity", lambda o: show([fidelity.table(o.folder)]), "play policies trained in Unity"
    )
    one.add_argument("folder", type=Path)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return min(1, options.function(options) or 0)
    except KeyboardInterrupt:
        print("stopped; the same command goes on with what is not stored yet")
        return 130
    except (ValueError, KeyError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
