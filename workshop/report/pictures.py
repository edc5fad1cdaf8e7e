"""Take the pictures of the README, and the one that opens the notebook, from its outputs.

Run it after the notebook was executed: python -m workshop.report.pictures
"""

import base64

import nbformat

from workshop.paths import DOC, NOTEBOOK

PICTURES = {"plot_scores(": "scores.png", "show_arms(trained)": "trained_arms.png"}


def main() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = notebook.cells
    for mark, name in PICTURES.items():
        (cell,) = [cell for cell in cells if cell.cell_type == "code" and mark in cell.source]
        (picture,) = [output.data["image/png"] for output in cell.outputs
                      if "image/png" in output.get("data", {})]
        (DOC / name).write_bytes(base64.b64decode(picture))
        if name in cells[0].attachments:
            cells[0].attachments[name] = {"image/png": picture.replace("\n", "")}
        print(f"doc/{name}")
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
