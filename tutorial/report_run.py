"""Execute the notebook into `runs/`, write it as HTML, and say where everything is.

    python -m tutorial.tasks run [NAME] [OPTIONS OF PAPERMILL]
    python -m tutorial.tasks run mine -p seed 3 -y '{overrides: {n_step: 5}}'

writes `runs/NAME.ipynb` and `runs/NAME.html`; the name is that of the notebook if none is given.
`-p NAME VALUE` and `-y YAML` set parameters of the notebook's second code cell. They are checked
before anything starts. What a cell printed is in the file soon after, whole, so that an error,
Ctrl-C or a kill leaves it readable.
"""

from __future__ import annotations

import contextlib
import difflib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import filelock
import nbformat
from papermill.cli import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from reacher.files import write_whole
from tutorial.environments import GYMNASIUM
from tutorial.notebook import carry_pictures, definitions, parameters_of
from tutorial.page import write_page
from tutorial.parameters import Parameters, check_parameters
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT, RUNS
from tutorial.run import locked
from tutorial.run_files import has_ended, require_pretrained, require_state, run_folder
from tutorial.scores import SOLVED_SCORE
from tutorial.states import TrainingState

SAVE_EVERY = 10.0  # s
QUIET = ["--IPKernelApp.log_level=50"]  # its own messages: of its sockets, and of being stopped


class CarefulEngine(NBClientEngine):
    """Papermill's engine, which checks the parameters first, and writes the notebook seldom.

    Writing before and after each cell took longer than the cells. Here the notebook is written at
    the start and then once in a while, in one piece; papermill itself writes it at the end, and
    after an error.
    """

    @classmethod
    def execute_notebook(cls, nb, kernel_name, output_path=None, **options):
        """As papermill's.

        Raises:
            click.UsageError: a parameter is unknown or wrong; nothing is written.
        """
        try:
            check(nb)
        except (OSError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        carry_pictures(nb, Path(output_path).parent)
        return super().execute_notebook(nb, kernel_name, output_path, **options)

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **options):
        due = 0.0

        def save(**_):
            nonlocal due
            if time.monotonic() >= due:
                write_whole(Path(nb_man.output_path), nbformat.writes(nb_man.nb).encode())
                due = time.monotonic() + SAVE_EVERY

        nb_man.save = save
        save()
        try:
            super().execute_managed_notebook(nb_man, kernel_name, extra_arguments=QUIET, **options)
        except KeyboardInterrupt:
            due = 0.0
            save()
            raise


def check(notebook: nbformat.NotebookNode) -> None:
    """Check a notebook's parameters as far as that goes without a kernel.

    Raises:
        ValueError, FileNotFoundError: names what is wrong and what is allowed.
    """
    parameters = parameters_of(notebook)
    for name in notebook.metadata.papermill.get("parameters", {}):
        if name not in Parameters.model_fields:
            near = difflib.get_close_matches(name, Parameters.model_fields, n=1)
            raise ValueError(
                f"unknown parameter {name!r}"
                + (f": did you mean {near[0]!r}?" if near else ".")
                + f" Known are {', '.join(Parameters.model_fields)}"
            )
    check_parameters(parameters)
    if parameters["overrides"]:  # only these need the notebook's definitions, of some seconds
        definitions().make_hyperparameters(parameters["preset"], parameters["overrides"])
    folder = folder_of(parameters)
    if not parameters["train"]:
        require_pretrained(folder)
        return
    if parameters["resume"] and not ended(parameters):
        require_state(folder)
    with locked(folder):  # else the notebook would find it locked much later
        pass


def folder_of(parameters: Mapping[str, Any]) -> Path:
    """The folder that a notebook with these parameters trains into, or loads from."""
    place = PROJECT / parameters["out_dir"] if parameters["train"] else CHECKPOINTS
    return run_folder(place, parameters["preset"], parameters["seed"])


def ended(parameters: Mapping[str, Any]) -> bool:
    """Whether the training with these parameters is done, so that `resume` only reports it."""
    threshold = None if str(parameters["env_location"]).startswith(GYMNASIUM) else SOLVED_SCORE
    return has_ended(
        folder_of(parameters),
        parameters["max_episodes"],
        parameters["stop_when_solved"],
        threshold,
    )


def how_to_go_on(parameters: Mapping[str, Any]) -> str:
    """What is left of a training that was stopped, and what continues it."""
    states = TrainingState(folder_of(parameters)).paths()
    if states:
        episode = int(states[0].stem.removeprefix("state_"))
        return (
            f"The last saved state is that after episode {episode}: the same command with "
            "-p resume True goes on from there."
        )
    if ended(parameters):
        return "The training is done: the same command with -p resume True makes its report."
    return (
        "No state to go on from has been saved: the same command begins again. (States are "
        f"saved every {parameters['save_every']} episodes: -p save_every N.)"
    )


def execute(notebook: Path, output: Path, options: list[str]) -> None:
    """Execute a notebook in the project's folder, with papermill's options.

    Raises:
        click.ClickException: an unknown option or a wrong parameter; nothing is written.
        click.exceptions.Abort: Ctrl-C; the output ends there.
        PapermillExecutionError: a cell failed; the output ends there.
    """
    papermill_engines.register("careful", CarefulEngine)
    output.parent.mkdir(parents=True, exist_ok=True)
    papermill(
        [
            str(notebook),
            str(output),
            "--engine",
            "careful",
            "--kernel",
            "python3",
            "--cwd",
            str(PROJECT),
            "--no-progress-bar",
            "--stdout-file",
            "-",
            *options,
        ],
        standalone_mode=False,
    )


@contextlib.contextmanager
def only_one(output: Path) -> Iterator[None]:
    """Keep other runs from writing the same files; the system forgets it when the process ends.

    Raises:
        click.UsageError: another run writes them.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(output.with_suffix(".lock")).acquire(blocking=False):
            yield
    except filelock.Timeout:
        raise click.UsageError(
            f"another run writes {shown(output)}: wait until it ends, or give this one a name of "
            "its own and another seed or folder: python -m tutorial.tasks run NAME -p seed 1"
        ) from None


def shown(path: Path) -> Path:
    """A path as seen from the project's folder."""
    return path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path


def changed_at(path: Path) -> int | None:
    """When a file was written, ns; None: there is none."""
    return path.stat().st_mtime_ns if path.exists() else None


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    name = NOTEBOOK.stem
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
    output = RUNS / f"{name.removesuffix('.ipynb')}.ipynb"
    try:
        with only_one(output):
            return run(output, arguments)
    except click.ClickException as error:
        print(f"make run: {error.format_message()}", file=sys.stderr)
    except OSError as error:  # a full disk, or a folder that cannot be written; names the file
        print(f"make run: {error}", file=sys.stderr)
    return 2


def run(output: Path, options: list[str]) -> int:
    """Execute the notebook, write the pages, and say what there is; return the exit status."""
    page, watch = output.with_suffix(".html"), output.with_name(f"{output.stem}_watch.html")
    status, stopped = 0, ""
    before, started = changed_at(output), time.time_ns()
    try:
        execute(NOTEBOOK, output, options)
    except PapermillExecutionError as error:
        status = 1
        stopped = (
            f"It stopped at an error, in cell {error.exec_count}: {error.ename}: {error.evalue}"
        )
    except click.exceptions.Abort:
        status, stopped = 130, "Stopped by Ctrl-C."
    if changed_at(output) == before:  # papermill only printed something, such as its version
        return 0
    write_page(output, page)
    parameters = parameters_of(nbformat.read(output, as_version=4))
    folder = folder_of(parameters)
    outputs = [("executed notebook", output), ("the same as HTML", page)]
    if not stopped or (changed_at(folder / "scores.csv") or 0) >= started:
        outputs.append(("scores, weights", folder))
    command = [sys.executable, "-m", "web.watch", folder, "--out", watch]
    if not stopped and not subprocess.call(command, cwd=PROJECT):
        outputs.append(("arms to play with", watch))
    print()
    for what, path in outputs:
        print(f"{what:24}{shown(path)}")
    if stopped:
        print(f"\n{stopped}")
        if parameters["train"]:
            print(how_to_go_on(parameters))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
