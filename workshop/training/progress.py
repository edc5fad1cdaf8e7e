"""A progress bar for notebook and terminal."""

from __future__ import annotations

import io
from typing import Any

from IPython import get_ipython
from IPython.display import display
from tqdm.std import tqdm


class NotebookBar(tqdm):
    """A tqdm bar as one text output that is updated in place.

    It needs no widgets, and a saved notebook or its HTML shows the last state instead of a line
    for every update.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.output = None
        super().__init__(*arguments, **options, file=io.StringIO())

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """What tqdm calls to show itself."""
        text = {"text/plain": str(self) if msg is None else msg}
        if self.output is None:
            self.output = display(text, raw=True, display_id=True)
        else:
            self.output.update(text, raw=True)


def progress_bar(total: int, done: int = 0) -> tqdm:
    """A progress bar over episodes, some of them done before, for a notebook or a terminal."""
    in_notebook = hasattr(get_ipython(), "kernel")
    layout = "{n_fmt}/{total_fmt} episodes |{bar:12}| {elapsed}<{remaining}{postfix}"
    return (NotebookBar if in_notebook else tqdm)(total=total, initial=done, bar_format=layout,
                                                 mininterval=0.5)
