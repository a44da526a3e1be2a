"""Plot: a figure that a notebook shows by itself, and that can be saved."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError, first_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 160  # of the picture
_POINTS_PER_INCH = 80  # of the page on which a notebook shows it, so that it is sharp on fine screens


@dataclass(frozen=True, repr=False, eq=False)
class Plot:
    """A figure that a notebook shows by itself, and that can be saved.

    Args:
        figure: The figure, of matplotlib; change it as you would any other.
        captions: What each chart of it shows.

    Example:
        >>> from matplotlib.figure import Figure
        >>> plot = Plot(Figure(), ("Curvature across layers",))
        >>> plot
        Plot(Curvature across layers)
        >>> import tempfile
        >>> plot.save(Path(tempfile.mkdtemp()) / "curvature.pdf").name
        'curvature.pdf'
    """

    figure: Figure
    captions: tuple[str, ...]

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, whose ending says in which format (``.png``, ``.svg``, ``.pdf``).

        Args:
            path: Where; a file that is there is overwritten.

        Returns:
            The path of the file.
        """
        path = Path(path)
        try:
            self.figure.savefig(path, dpi=_DOTS_PER_INCH)
        except (ValueError, OSError) as error:
            raise AssayError(f"path={str(path)!r} cannot be written as a figure ({first_line(error)})") from error
        return path

    def __repr__(self) -> str:
        return f"Plot({'; '.join(self.captions)})"

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
        return buffer.getvalue(), {"width": round(self.figure.get_figwidth() * _POINTS_PER_INCH)}
