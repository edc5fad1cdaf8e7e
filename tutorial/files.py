"""Writing files whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write into a temporary file first, which then takes the file's name; or OSError."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
