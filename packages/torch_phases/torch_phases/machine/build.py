"""machine.c as WebAssembly: `python -m torch_phases.machine.build`, with `pip install ziglang`.

machine.wasm runs where WebAssembly has SIMD, relaxed.wasm where it also has fused multiply-add
(relaxed SIMD). Both are committed, so that only who edits machine.c needs a compiler.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VARIANTS = {"relaxed.wasm": "simd128+relaxed_simd", "machine.wasm": "simd128"}  # the faster first
OPTIONS = "--target=wasm32-freestanding -O3 -ffp-contract=fast -nostdlib"
LINKER = "--no-entry --export=run --import-symbols --strip-all -z,stack-size=65536"


def build(folder: Path = HERE) -> None:
    """Write both variants into a folder."""
    options = [*OPTIONS.split(), *(f"-Wl,{option}" for option in LINKER.split())]
    for name, features in VARIANTS.items():
        files = [f"-mcpu=generic+{features}", "-o", str(folder / name), str(HERE / "machine.c")]
        subprocess.run([sys.executable, "-m", "ziglang", "cc", *options, *files], check=True)
        (folder / name).chmod(0o644)


if __name__ == "__main__":
    build()
