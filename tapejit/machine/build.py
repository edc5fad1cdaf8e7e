"""machine.c as WebAssembly: `python -m tapejit.machine.build`, with `pip install ziglang`.

machine.wasm runs where WebAssembly has SIMD, machine_relaxed.wasm where it also has fused
multiply-add (relaxed SIMD). Both are committed, so that only who edits machine.c needs a compiler.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VARIANTS = {
    "machine.wasm": ["-mcpu=generic+simd128"],
    "machine_relaxed.wasm": ["-mcpu=generic+simd128+relaxed_simd", "-DRELAXED"],
}
OPTIONS = "--target=wasm32-freestanding -O3 -ffp-contract=off -nostdlib"
LINKER = "--no-entry --export=run --export=heap --import-symbols --strip-all -z stack-size=65536"


def build(folder: Path = HERE) -> None:
    """Write both variants into a folder."""
    linker = [f"-Wl,{option}" for option in LINKER.replace("-z ", "-z,").split()]
    for name, options in VARIANTS.items():
        command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS.split(), *linker, *options]
        subprocess.run([*command, "-o", str(folder / name), str(HERE / "machine.c")], check=True)
        (folder / name).chmod(0o644)


if __name__ == "__main__":
    build()
