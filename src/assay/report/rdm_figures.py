"""Figures of RDMs: the matrix with its stimuli along the edges, stimuli as points of a plane, scores of models."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from PIL import Image

from assay.core.errors import AssayError
from assay.core.names import showable
from assay.core.plot import Plot
from assay.report.document import DotChart, Mark, Series
from assay.report.figures import COLORS, plotted, styled
from assay.stats.ranks import ranks
from assay.stats.scaling import mds, stress
from assay.stimuli.datasets import as_images
from assay.stimuli.rdm_pictures import thumbnail
from assay.stimuli.rdms import RdmSet, as_matrices, read_rdms, require_same_stimuli, stimuli_of

Array = np.ndarray[Any, Any]
_SIDE = 5.2  # inches of a matrix
_PIXELS = 1200  # along the edge of a matrix, of the thumbnails beside it
_IN_A_ROW = 24  # thumbnails side by side along an edge; more stand in several rows, one behind the other
_MOST_ROWS = 5
_LARGEST = 1 / 12  # size of a thumbnail, as a share of the matrix
_ICON = 68  # pixels of a small picture, as reports show it
_PLANE = 6.4  # inches of a plane of points
_INK = "#1c2430"


def plot_rdm(rdm: Any, images: Any = None, *, title: str = "", percentiles: bool = True) -> Plot:
    """Draw an RDM as a matrix, with its stimuli along the edges.

    Args:
        rdm: One RDM, in any form that `compare_rdms` takes.
        images: The stimuli, in the order of the RDM, in any form that `assay.stimuli.as_images` takes; None for none.
        title: What stands above the figure.
        percentiles: Whether colours are percentiles of the dissimilarities, as rank correlations see them, or the
            dissimilarities themselves.

    Returns:
        A figure that a notebook shows; ``plot.save("rdm.png")`` writes it.
    """
    vector = _one(rdm, images)
    shown = 100 * (ranks(vector[None])[0] - 1) / max(len(vector) - 1, 1) if percentiles else vector
    label = "percentile of dissimilarity" if percentiles else "dissimilarity"
    matrix = as_matrices(shown[None])[0]
    caption = title or f"RDM of {len(matrix)} stimuli"
    return Plot(rdm_figure(matrix, _thumbnails(images, len(matrix)), title, label), (caption,))


def plot_mds(rdm: Any, images: Any = None, *, labels: Any = None, title: str = "") -> Plot:
    """Draw stimuli as points of a plane, whose distances follow the dissimilarities (see `assay.mds`).

    Args:
        rdm: One RDM, in any form that `compare_rdms` takes.
        images: The stimuli, in the order of the RDM, in any form that `assay.stimuli.as_images` takes, to be drawn as
            thumbnails; None for dots.
        labels: The category of each stimulus, by which dots and frames are coloured; by default the images' labels.
        title: What stands above the figure; by default the number of stimuli.

    Returns:
        A figure that a notebook shows; ``plot.save("mds.png")`` writes it. Above it stands the stress, by which the
        distances in the plane miss the dissimilarities: √(Σ (distance − dissimilarity)² / Σ dissimilarity²).
    """
    vector = _one(rdm, images)
    matrix = as_matrices(vector[None])[0]
    names = getattr(images, "labels", None) if labels is None else np.asarray(labels)
    if names is not None and len(names) != len(matrix):
        raise AssayError(f"labels has {len(names)} entries for {len(matrix)} stimuli: give the category of each")
    caption = title or f"{len(matrix)} stimuli, by their dissimilarities"
    points = mds(matrix)
    note = f"stress {stress(matrix, points):.2f}"
    return Plot(mds_figure(points, _thumbnails(images, len(matrix)), caption, names, note), (caption,))


def plot_scores(bootstrap: Any) -> Plot:
    """Draw the scores of models with their 95 % intervals, the highest first, beside the noise ceiling.

    Args:
        bootstrap: What `assay.bootstrap_rdms` returned.

    Returns:
        A figure that a notebook shows; ``plot.save("scores.pdf")`` writes it.
    """
    table = bootstrap.table().sort_values("value", ascending=False)
    marks = []
    for place, (_, row) in enumerate(table.iterrows()):
        value, low, high = (float(row[column]) for column in ("value", "low", "high"))
        marks.append(Mark(place, 0, value, (low, high), f"{row['model']}: {value:.3f} ({low:.3f} to {high:.3f})"))
    over = {"both": "stimuli and subjects"}.get(bootstrap.resample, bootstrap.resample)
    ceiling = bootstrap.ceiling
    chart = DotChart(
        f"Similarity of models to subjects, {bootstrap.method} (bars: 95 % intervals over {over})",
        "mean similarity to single subjects",
        tuple(map(str, table["model"])),
        (Series("models", 0),),
        tuple(marks),
        f"Similarity of {len(marks)} models to subjects, and the noise ceiling",
        rows=True,
        spread=False,
        band=None if ceiling is None else ("noise ceiling", ceiling.lower, ceiling.upper),
    )
    return plotted(chart)


def rdm_figure(matrix: Array, thumbnails: Sequence[Array], title: str = "", label: str = "") -> Figure:
    """A matrix of dissimilarities, thumbnails of the stimuli along its left and upper edge, and a scale."""
    m = len(matrix)
    rows = min(_MOST_ROWS, -(-m // _IN_A_ROW)) if len(thumbnails) else 0
    size = min(rows / m, _LARGEST)  # of a thumbnail, as a share of the matrix
    edge = rows * size * _SIDE
    width, height = edge + _SIDE + 1.1, edge + _SIDE + (0.4 if title else 0.1)
    with styled():
        figure = Figure(figsize=(width, height), dpi=120)
        FigureCanvasAgg(figure)

        def place(left: float, bottom: float, wide: float, high: float) -> Any:
            return figure.add_axes((left / width, bottom / height, wide / width, high / height))

        axes = place(edge, 0.05, _SIDE, _SIDE)
        colored = axes.imshow(matrix, cmap="viridis", interpolation="nearest", aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        if rows:
            above, beside = place(edge, 0.05 + _SIDE, _SIDE, edge), place(0, 0.05, edge, _SIDE)
            above.imshow(_edge(thumbnails, rows, size), aspect="auto")
            beside.imshow(_edge(thumbnails, rows, size, left=True), aspect="auto")
            above.set_axis_off()
            beside.set_axis_off()
        bar: Any = figure.colorbar(colored, cax=place(edge + _SIDE + 0.15, 0.05, 0.14, _SIDE / 2))
        bar.set_label(showable(label), color=_INK)
        bar.outline.set_visible(False)
        figure.text(
            0.01, 1 - 0.08 / height, showable(title), ha="left", va="top", fontsize=11, fontweight="bold", color=_INK
        )
        figure.canvas.draw()
    return figure


def _edge(thumbnails: Sequence[Array], rows: int, size: float, left: bool = False) -> Array:
    """Thumbnails in rows beside the upper or left edge of a matrix, each at its stimulus, as one picture."""
    pixels = round(_PIXELS * size)
    deep = rows * pixels
    canvas = Image.new("RGB", (deep, _PIXELS) if left else (_PIXELS, deep), "white")
    for number, picture in enumerate(thumbnails):
        middle = (number + 0.5) / len(thumbnails) * _PIXELS
        along = min(max(round(middle - pixels / 2), 0), _PIXELS - pixels)
        behind = deep - (number % rows + 1) * pixels
        shown = Image.fromarray(np.ascontiguousarray(picture)).resize((pixels - 2, pixels - 2))
        canvas.paste(shown, (behind, along) if left else (along, behind))
    return np.asarray(canvas)


def mds_figure(
    points: Array, thumbnails: Sequence[Array], title: str = "", labels: Array | None = None, note: str = ""
) -> Figure:
    """Stimuli as thumbnails or dots at points of a plane, framed or coloured by their categories."""
    names = list(dict.fromkeys(map(str, labels))) if labels is not None else []
    colors = [COLORS[names.index(str(name)) % len(COLORS)] for name in labels] if labels is not None else COLORS[:1]
    with styled():
        figure = Figure(figsize=(_PLANE, _PLANE), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes: Any = figure.add_subplot()
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.scatter(points[:, 0], points[:, 1], s=30, color=colors if labels is not None else colors[0])
        zoom = 0.62 if len(points) > 40 else 1.0
        for number, picture in enumerate(thumbnails):
            frame = {"edgecolor": colors[number], "linewidth": 1.6} if labels is not None else {"linewidth": 0}
            axes.add_artist(AnnotationBbox(OffsetImage(picture, zoom=zoom), points[number], pad=0.12, bboxprops=frame))
        axes.margins(0.07)
        if 1 < len(names) <= 12:
            handles = [
                axes.scatter([], [], s=36, color=COLORS[i % len(COLORS)], label=showable(n))
                for i, n in enumerate(names)
            ]
            figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        if title:
            figure.suptitle(showable(title), x=0.01, ha="left", fontsize=11, fontweight="bold", color=_INK)
        axes.set_title(showable(note), loc="right", fontsize=9, color=_INK)
        figure.canvas.draw()
    return figure


def rdm_icon(percentiles: Array) -> bytes:
    """An RDM, m×m numbers from 0 to 255, as a small coloured picture (PNG)."""
    small = Image.fromarray(percentiles).resize((_ICON, _ICON), Image.Resampling.BOX)
    colored = (mpl.colormaps["viridis"](np.asarray(small))[..., :3] * 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(colored).save(buffer, "png")
    return buffer.getvalue()


def _one(rdm: Any, images: Any) -> Array:
    """The upper triangle of one RDM; where it and the images have names, those must agree."""
    vectors, _ = read_rdms(rdm, "rdm")
    if getattr(images, "names", ()):
        named = RdmSet(vectors[:1], (), images.names) if len(images) == stimuli_of(vectors.shape[1]) else None
        require_same_stimuli(named, rdm, "images", "rdm", if_reordered="give rdm.reordered(images.names)")
    if len(vectors) != 1:
        raise AssayError(f"rdm holds {len(vectors)} RDMs: give one, such as their mean")
    return np.asarray(vectors[0])


def _thumbnails(images: Any, m: int) -> list[Array]:
    if images is None:
        return []
    array = as_images(images).array
    if len(array) != m:
        raise AssayError(f"there are {len(array)} images for {m} stimuli: give those of the RDM, in its order")
    return [thumbnail(image) for image in array]
