"""Progress bars in a notebook: plain HTML that is updated in place, so that no widgets need be installed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

_EVERY_S = 0.3  # time between two updates: each is a message to the browser
_SHORT_S = 1.0  # work that takes less has no bar


class NotebookBars:
    """A listener to `assay.core.progress.report` that shows a bar for each kind of work, under the cell that runs.

    Args:
        display: IPython's function, which returns a handle whose content can be replaced.
        html: IPython's class for HTML.
        clock: Tells the time in seconds.

    Example:
        >>> seconds = iter([0.0, 0.5, 4.0])
        >>> bars = NotebookBars(lambda html, display_id: print(html), str, lambda: next(seconds))
        >>> bars("cells", 1, 4)
        >>> bars("cells", 2, 4)
        <div>cells <progress value="2" max="4"></progress> 2 of 4</div>
    """

    def __init__(self, display: Callable[..., Any], html: Callable[[str], Any], clock: Callable[[], float]) -> None:
        self.display, self.html, self.clock = display, html, clock
        self.began = clock()
        self.drawn = -1.0
        self.handle: Any = None
        self.steps: dict[str, tuple[int, int | None]] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Hear that ``done`` of ``total`` steps of ``what`` are done."""
        now = self.clock()
        ended = total is not None and done >= total
        if what not in self.steps or ended:  # work that is done, or has no end, makes room
            self.steps = {name: (i, n) for name, (i, n) in self.steps.items() if n is not None and i < n}
        self.steps[what] = (done, total)
        if now - self.began < _SHORT_S or (now - self.drawn < _EVERY_S and not ended):
            return
        self.drawn = now
        page = self.html("".join(_bar(name, *steps) for name, steps in self.steps.items()))
        if self.handle is None:
            self.handle = self.display(page, display_id=True)
        else:
            self.handle.update(page)


def _bar(what: str, done: int, total: int | None) -> str:
    if total is None:
        return f"<div>{escape(what)}: {done:,}</div>"
    return f'<div>{escape(what)} <progress value="{done}" max="{total}"></progress> {done:,} of {total:,}</div>'


@dataclass
class _Cell:
    """The bars of the notebook's cell that runs now."""

    number: int = -1
    bars: NotebookBars | None = None


_cell = _Cell()


def notebook_bars() -> NotebookBars | None:
    """The bars of the notebook's cell that runs now; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:  # IPython in a terminal has no kernel
        return None
    if _cell.bars is None or _cell.number != shell.execution_count:
        from IPython.display import HTML, display

        _cell.number, _cell.bars = shell.execution_count, NotebookBars(display, HTML, time.monotonic)
    return _cell.bars
