"""Writing files whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write into a new temporary file, which then takes the file's name; or OSError.

    A link that lies in its place is replaced and not followed.
    """
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
