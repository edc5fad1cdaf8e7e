"""States of a training on disk, to go on from."""

from __future__ import annotations

import io
import shutil
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from reacher.files import write_whole

STATE_FORMAT = 4  # 1 had flat optimizers, 2 learned without an end, 3 had several files


class Damaged(ValueError):
    """A file that does not hold what was written into it."""


class TrainingState:
    """The last two states of a training in `<run folder>/state`, each enough to go on from.

    A state is one file of `torch.save`, `state_<episode>.pt`. It is read with `weights_only`, so it
    cannot carry code, and its checksums, which are those of a zip file, tell whether it is whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder) / "state"

    def paths(self) -> list[Path]:
        """Files of the states, newest first."""
        return sorted(self.folder.glob("state_*.pt"), reverse=True)

    def exists(self) -> bool:
        return bool(self.paths())

    def save(self, episode: int, state: Mapping[str, Any]) -> None:
        """Write a state of tensors, texts and dictionaries, then remove all but the last two.

        Args:
            episode: whole episodes so far.

        Raises:
            OSError: the disk is full or gone; the states before are as they were.
        """
        self.folder.mkdir(exist_ok=True)  # in the run's folder, unless that was removed
        file = io.BytesIO()
        torch.save({"format": STATE_FORMAT, **state}, file)
        write_whole(self.folder / f"state_{episode:07d}.pt", file.getbuffer())
        for path in [*self.paths()[2:], *self.folder.glob("*.tmp")]:
            path.unlink()

    def remove(self) -> None:
        """Remove all states."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self) -> dict[str, Any]:
        """The newest state that is whole.

        A damaged one is named in a warning and, if there is a whole one, set aside as
        `<name>.damaged`.

        Raises:
            ValueError: no whole state, or one of another format.
            OSError, MemoryError: reading failed; the state may be whole.
        """
        damaged = []
        for path in self.paths():
            content = path.read_bytes()
            try:
                state = unpacked(content)
            except Damaged as error:
                warnings.warn(
                    f"{path} is damaged ({error}); the state before is used", stacklevel=2
                )
                damaged.append(path)
                continue
            if state["format"] != STATE_FORMAT:
                raise ValueError(
                    f"{path} has format {state['format']}, and this version goes on from format "
                    f"{STATE_FORMAT} only: use the version of this project that wrote it, or begin "
                    "again with resume = False"
                )
            for other in damaged:
                other.replace(other.with_name(other.name + ".damaged"))
            return state
        raise ValueError(f"{self.folder} holds no whole training state; begin with resume = False")


def unpacked(content: bytes) -> dict[str, Any]:
    """What `TrainingState.save` packed into a file.

    Raises:
        Damaged: the content is another one.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if (part := archive.testzip()) is not None:
                raise Damaged(f"{part} has another checksum")
        state = torch.load(io.BytesIO(content), weights_only=True)
        if "format" not in state:
            raise Damaged("another program wrote it")
        return state
    except MemoryError:
        raise
    except Exception as error:  # zipfile, pickle and PyTorch have no error in common
        raise Damaged(str(error)) from None
