"""The commands of `python -m research`.

python -m research plan                                  all plans, and what of each is stored
python -m research plan leave_one_out --address tcp://scheduler:8786
python -m research sweep n_step=1,3 replay=uniform,prioritized --seeds 5 --episodes 20
python -m research tables leave_one_out                  its tables; all plans without a name
python -m research figures                               those of doc/
python -m research tune sbx_td3, planner, benchmark, fidelity FOLDER: see their modules
"""

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
from tutorial.paths import CHECKPOINTS, DOC, RUNS


def values_of(text: str) -> tuple[str, list[Any]]:
    """`name=1,2` as the name and its values, which are JSON or, else, text.

    Raises:
        argparse.ArgumentTypeError: there is no name, or no value.
    """
    name, _, values = text.partition("=")
    if not name or not values:
        raise argparse.ArgumentTypeError(f"{text!r} must be like n_step=1,3")
    try:
        return name, json.loads(f"[{values}]")
    except json.JSONDecodeError:
        return name, values.split(",")


def sweep_of(options: argparse.Namespace) -> list[Training]:
    """All combinations of the values, each with every seed."""
    shared = {
        "preset": options.preset,
        "arms": options.arms,
        "episodes": options.episodes,
        "evaluate_every": options.evaluate_every,
    }
    names = [name for name, _ in options.values]
    combined = itertools.product(*(values for _, values in options.values))
    return [
        make_training(options.name, variant, seed, {**shared, **changes})
        for values in combined
        for changes in [dict(zip(names, values, strict=True))]
        for variant in ["_".join(f"{name}_{value}" for name, value in changes.items()) or "default"]
        for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]


def sweep(options: argparse.Namespace) -> int:
    """Train a sweep into `runs/sweeps/<name>/`, print its table, and draw its curves."""
    folder, trainings = RUNS / "sweeps", sweep_of(options)
    failed = runner.run_trainings(trainings, folder, options.address, options.workers)
    variants = results.read_plan(options.name, folder)
    plan = Plan("", measure=Measure("score"))
    picture = folder / options.name / "curves.png"
    print(tables.means_table(plan, variants, {}))
    figures.curves(variants).savefig(picture, dpi=110)
    print(f"tables in {folder / options.name}, curves in {picture}")
    return min(1, failed)


def train_plan(options: argparse.Namespace) -> int:
    """Train what a plan misses, or say what is stored."""
    if options.name and not options.list:
        trainings = PLANS[options.name].trainings(options.name)
        if not trainings:
            print(f"{options.name} is finished: its program is in commit 6ee81e9")
            return 1
        if options.only:
            trainings = [one for one in trainings if one.variant in options.only]
        return min(
            1, runner.run_trainings(trainings, options.results, options.address, options.workers)
        )
    for name in [options.name] if options.name else PLANS:
        trainings = PLANS[name].trainings(name)
        stored = sum(runner.is_stored(one, options.results) for one in trainings)
        number = f"{stored} of {len(trainings)} trainings" if trainings else "finished"
        print(f"{name:18} {number:24} {PLANS[name].question}")
        if options.list and options.name:
            for one in trainings:
                print(f"  {one}: {'stored' if runner.is_stored(one, options.results) else 'to do'}")
    return 0


def show_tables(options: argparse.Namespace) -> int:
    for name in options.names or PLANS:
        print(tables.report(name, options.results), end="\n\n")
    return 0


def draw_figures(options: argparse.Namespace) -> int:
    for name in options.names or figures.FIGURES:
        print(figures.draw(name, options.out))
    return 0


def compare_with_unity(options: argparse.Namespace) -> int:
    found = fidelity.measured(options.folder, options.episodes)
    print(fidelity.table(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="python -m research",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Any, where: bool = False) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=(function.__doc__ or name).splitlines()[0])
        one.set_defaults(function=function)
        if where:
            one.add_argument("--address", default="", help="of a Dask scheduler, tcp://host:port")
            one.add_argument("--workers", type=int, help="processes here, without an address")
        return one

    one = command("plan", train_plan, where=True)
    one.add_argument("name", nargs="?", choices=PLANS, metavar="NAME")
    one.add_argument("--list", action="store_true", help="train nothing")
    one.add_argument("--only", nargs="*", help="variants")
    one.add_argument("--results", type=Path, default=CHECKPOINTS, help="folder")

    one = command("sweep", sweep, where=True)
    one.add_argument("values", nargs="*", type=values_of, help="such as n_step=1,3")
    one.add_argument("--name", default="sweep", help="of its folder in runs/sweeps/")
    one.add_argument("--seeds", type=int, default=3, help="how many")
    one.add_argument("--first-seed", type=int, default=0)
    one.add_argument("--preset", default="default")
    one.add_argument("--arms", type=int, default=20)
    one.add_argument("--episodes", type=int, default=20)
    one.add_argument("--evaluate-every", type=int, default=1)

    one = command("tables", show_tables)
    one.add_argument("names", nargs="*", choices=[*PLANS, []], metavar="NAME")
    one.add_argument("--results", type=Path, default=CHECKPOINTS, help="folder")

    one = command("figures", draw_figures)
    one.add_argument("names", nargs="*", choices=[*figures.FIGURES, []], metavar="NAME")
    one.add_argument("--out", type=Path, default=DOC, help="folder")

    one = command("tune", lambda o: baselines.tune(o.agent, o.trials, o.address, o.workers), True)
    one.add_argument("agent", choices=baselines.AGENTS)
    one.add_argument("--trials", type=int, default=13)

    one = command(
        "planner", lambda o: planner.run(o.goals, CHECKPOINTS, o.address, o.workers), True
    )
    one.add_argument("--goals", type=int, default=100)

    one = command("benchmark", lambda o: print(benchmark.table(o.seeds)))
    one.add_argument("--seeds", type=int, default=3)

    one = command("fidelity", compare_with_unity)
    one.add_argument("folder", type=Path)
    one.add_argument("--episodes", type=int, default=fidelity.EPISODES)
    one.add_argument("--out", type=Path, help="JSON file")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.function(options) or 0
    except KeyboardInterrupt:
        print("stopped; the same command goes on with what is not stored yet")
        return 130
    except (ValueError, FileNotFoundError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
