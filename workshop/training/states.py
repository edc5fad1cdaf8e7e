"""States of a training, to go on from."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load as load_tensors

from workshop.training.files import RUN_FORMAT, NewerFormat, write_whole


class TrainingState:
    """The last two states of a training in `<run folder>/state`, each enough to go on from.

    A state is a file `state_<episode>.json`, written last, that holds plain facts and names its
    data files with their checksums. Data files are in the safetensors format, which cannot carry
    code. They are never changed, and go when no state names them. The two states share none, so
    that one damaged file leaves the other state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder) / "state"
        self.files = {}  # of the state saved or loaded last: name -> [file, checksum]
        self.before = {}  # of the one before it

    def paths(self) -> list[Path]:
        """Files of the states, newest first."""
        return sorted(self.folder.glob("state_*.json"), reverse=True)

    def exists(self) -> bool:
        return bool(self.paths())

    def finished(self) -> bool:
        """Whether the newest state is that of a training that came to its end."""
        try:
            return bool(json.loads(self.paths()[0].read_text())["facts"]["finished"])
        except (IndexError, KeyError, TypeError, ValueError):
            return False

    def save(self, episode: int, facts: Mapping, data: Mapping[str, bytes | None]) -> None:
        """Write a state, then remove what the last two do not need.

        Args:
            episode: whole episodes so far.
            facts: what JSON can hold.
            data: contents of data files by name; None for one unchanged since the last state.

        Raises:
            OSError: the disk is full or gone; the states before are as they were.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for name, content in data.items():
            if content is None:  # two states ago it may have been the same
                file, expected = self.files[name]
                if self.before.get(name, [None, None])[1] == expected:
                    files[name] = self.before[name]
                    continue
                content = (self.folder / file).read_bytes()
                if checksum(content) != expected:
                    raise OSError(f"{self.folder / file} was damaged meanwhile")
            file = f"{name}_{episode:07d}.safetensors"
            write_whole(self.folder / file, content)
            files[name] = [file, checksum(content)]
        state = {"format": RUN_FORMAT, "episode": episode, "facts": facts, "files": files}
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

    def load(self) -> tuple[int, dict, dict[str, torch.Tensor]]:
        """The newest state that is whole: its episode, facts, and tensors of all data files.

        A damaged one is named in a warning and, if there is a whole one, set aside as
        `<name>.damaged`.

        Raises:
            ValueError: no whole state, or one of a newer format.
        """
        damaged = []
        for path in self.paths():
            try:
                state = json.loads(path.read_text())
                if state.pop("checksum") != checksum(json.dumps(state).encode()):
                    raise ValueError(f"{path.name} has another checksum")
                if state["format"] > RUN_FORMAT:
                    raise NewerFormat(f"{path} has format {state['format']}, and this version "
                                      f"reads up to {RUN_FORMAT}: get a newer version")
                tensors = {}
                for file, expected in state["files"].values():
                    content = (self.folder / file).read_bytes()
                    if checksum(content) != expected:
                        raise ValueError(f"{file} has another checksum")
                    tensors |= load_tensors(content)
            except NewerFormat:
                raise
            except Exception as error:  # whatever damage does to a file
                warnings.warn(f"{path} is damaged ({error}); the state before is used",
                              stacklevel=2)
                damaged.append(path)
                continue
            for other in damaged:
                other.replace(other.with_name(other.name + ".damaged"))
            self.files, self.before = state["files"], {}
            return state["episode"], state["facts"], tensors
        raise ValueError(f"{self.folder} holds no whole training state; "
                         "begin with resume = False")


def checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
