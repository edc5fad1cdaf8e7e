"""States of a training on disk, to go on from."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from reacher.files import write_whole
from tutorial.training.files import STATE_FORMAT


class Damaged(ValueError):
    """A file that does not hold what was written into it."""


class TrainingState:
    """The last two states of a training in `<run folder>/state`, each enough to go on from.

    A state is a file `state_<episode>.json`, written last, that holds plain facts and names its
    data files with their checksums. Data files are in the safetensors format, which cannot carry
    code. They are never changed, and go when no state names them. The two states share none, so
    that one damaged file leaves the other state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder) / "state"
        # Of the state saved or loaded last, and of the one before it: name -> [file, checksum].
        self.files: dict[str, list[str]] = {}
        self.before: dict[str, list[str]] = {}

    def paths(self) -> list[Path]:
        """Files of the states, newest first."""
        return sorted(self.folder.glob("state_*.json"), reverse=True)

    def exists(self) -> bool:
        return bool(self.paths())

    def save(self, episode: int, facts: Mapping, data: Iterable[tuple[str, bytes]]) -> None:
        """Write a state, then remove what the last two do not need.

        Args:
            episode: whole episodes so far.
            facts: what JSON can hold.
            data: names and contents of data files. One that is as it was two states ago is not
                written again.

        Raises:
            OSError: the disk is full or gone; the states before are as they were.
        """
        self.folder.mkdir(exist_ok=True)  # in the run's folder, unless that was removed
        files = {}
        for name, content in data:
            known, found = self.before.get(name), checksum(content)
            if known and known[1] == found:
                files[name] = known
                continue
            files[name] = [f"{name}_{episode:07d}.safetensors", found]
            write_whole(self.folder / files[name][0], content)
        state = {"format": STATE_FORMAT, "episode": episode, "facts": facts, "files": files}
        state["checksum"] = checksum(json.dumps(state).encode())
        write_whole(self.folder / f"state_{episode:07d}.json", json.dumps(state).encode())
        self.files, self.before = files, self.files
        self.remove_old()

    def remove_old(self) -> None:
        """Remove all states but two, and data files and remains that none of them names."""
        for path in self.paths()[2:]:
            path.unlink()
        needed = {path.name for path in self.paths()}
        needed |= {file for file, _ in (*self.files.values(), *self.before.values())}
        for path in self.folder.glob("*"):
            if path.name not in needed and path.suffix in (".safetensors", ".tmp"):
                path.unlink()

    def remove(self) -> None:
        """Remove all states: first those that name files, so that none names a missing one."""
        for path in self.paths():
            path.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self) -> tuple[int, dict, dict[str, torch.Tensor]]:
        """The newest state that is whole: its episode, facts, and tensors of all data files.

        A damaged one is named in a warning and, if there is a whole one, set aside as
        `<name>.damaged`.

        Raises:
            ValueError: no whole state, or one of another format.
            OSError, MemoryError: reading failed; the state may be whole.
        """
        damaged = []
        for path in self.paths():
            try:
                state, tensors = self.read(path)
            except Damaged as error:
                warnings.warn(
                    f"{path} is damaged ({error}); the state before is used", stacklevel=2
                )
                damaged.append(path)
                continue
            for other in damaged:
                other.replace(other.with_name(other.name + ".damaged"))
            self.files, self.before = state["files"], {}
            return state["episode"], state["facts"], tensors
        raise ValueError(f"{self.folder} holds no whole training state; begin with resume = False")

    def read(self, path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
        """A state and its tensors.

        Raises:
            Damaged: one of its files is missing or not as it was written.
            ValueError: it is of another format.
        """
        try:
            state = json.loads(content_of(path))
            expected = state.pop("checksum")
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise Damaged(f"{path.name} is no state: {error}") from None
        if expected != checksum(json.dumps(state).encode()):
            raise Damaged(f"{path.name} has another checksum")
        if state["format"] != STATE_FORMAT:
            raise ValueError(
                f"{path} has format {state['format']}, and this version goes on from format "
                f"{STATE_FORMAT} only: "
                + (
                    "get a newer version of this project"
                    if state["format"] > STATE_FORMAT
                    else "it was written by an earlier version of this project; finish the "
                    "training "
                    "with that version, or begin again with resume = False"
                )
            )
        tensors: dict[str, torch.Tensor] = {}
        for file, expected in state["files"].values():
            content = content_of(self.folder / file)
            if checksum(content) != expected:
                raise Damaged(f"{file} has another checksum")
            try:
                tensors |= load_tensors(content)
            except SafetensorError as error:
                raise Damaged(f"{file} is no safetensors file: {error}") from None
        return state, tensors


def content_of(path: Path) -> bytes:
    """What a file holds.

    Raises:
        Damaged: there is no such file. Other errors of reading are not about what it holds.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path.name} is missing") from None


def checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
