"""Where the project's files are."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
NOTEBOOK = PROJECT / "Continuous_Control.ipynb"
CHECKPOINTS = PROJECT / "checkpoints"
RUNS = PROJECT / "runs"
DOC = PROJECT / "doc"
EXTENSIONS = DOC / "extensions.ipynb"
