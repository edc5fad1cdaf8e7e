"""machine.c as WebAssembly: `python -m tapejit.machine.build`, with `pip install ziglang`.

machine.wasm is committed, so that only who edits machine.c needs a compiler.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OPTIONS = "--target=wasm32-freestanding -mcpu=generic+simd128 -O3 -ffp-contract=off -nostdlib"
LINKER = "--no-entry --export=run --export=heap --import-symbols --strip-all -z,stack-size=65536"


def build(file: Path = HERE / "machine.wasm") -> None:
    """Write the machine into a file."""
    options = [*OPTIONS.split(), *(f"-Wl,{option}" for option in LINKER.split())]
    files = ["-o", str(file), str(HERE / "machine.c")]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *options, *files], check=True)
    file.chmod(0o644)


if __name__ == "__main__":
    build()
