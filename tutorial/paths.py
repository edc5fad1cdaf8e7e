"""Where the project's files are."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
NOTEBOOK = PROJECT / "Continuous_Control.ipynb"
CHECKPOINTS = PROJECT / "checkpoints"  # what the notebook, README and chapters read
RESULTS = PROJECT / "research" / "results"  # of all other plans
RUNS = PROJECT / "runs"
DOC = PROJECT / "doc"
EXTENSIONS = DOC / "extensions.ipynb"


def plan_folder(plan: str) -> Path:
    """The folder of a plan's tables, stored or to be."""
    return CHECKPOINTS / plan if (CHECKPOINTS / plan).exists() else RESULTS / plan
