"""Take the learning curve of the README from the notebook's outputs.

Run it after the notebook was executed: python doc/pictures.py. The pictures of the arms are drawn
from kept weights, by doc/arm_pictures.py.
"""

import base64
from pathlib import Path

import nbformat

DOC = Path(__file__).parent
NOTEBOOK = DOC.parent / "Continuous_Control.ipynb"
PICTURES = {"plot_scores(": "scores.png"}


def main() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = notebook.cells
    for mark, name in PICTURES.items():
        (cell,) = [cell for cell in cells if cell.cell_type == "code" and mark in cell.source]
        (picture,) = [output.data["image/png"] for output in cell.outputs
                      if "image/png" in output.get("data", {})]
        (DOC / name).write_bytes(base64.b64decode(picture))
        print(f"doc/{name}")


if __name__ == "__main__":
    main()
