"""Writing files whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all: into a temporary file first, which then takes its name.

    Raises:
        OSError: the disk is full or gone, or a folder is in the way; with the name of the file.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # a full disk, or the stop button
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)
        raise
