"""Take the pictures of the README and of the notebook's opening from the notebook's own outputs.

Run it after the notebook was executed: python doc/pictures.py
"""

import base64
from pathlib import Path

import nbformat

DOC = Path(__file__).parent
PICTURES = {"plot_scores(": "scores.png", "show_arms(trained)": "trained_arms.png"}


def main() -> None:
    cells = nbformat.read(DOC.parent / "Continuous_Control.ipynb", as_version=4).cells
    for mark, name in PICTURES.items():
        (cell,) = [cell for cell in cells if cell.cell_type == "code" and mark in cell.source]
        (picture,) = [output.data["image/png"] for output in cell.outputs
                      if "image/png" in output.get("data", {})]
        (DOC / name).write_bytes(base64.b64decode(picture))
        print(f"doc/{name}")


if __name__ == "__main__":
    main()
