"""Small corpora for property tests: ties, repeated settings and missing combinations included."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

relaxed = settings(max_examples=60)


@st.composite
def corpora(draw, hyperparameters=(2, 3), networks=(3, 12), values=4):
    """Measure, gap and columns of hyper-parameters; no column is constant."""
    width, n = draw(st.integers(*hyperparameters)), draw(st.integers(*networks))
    numbers = st.lists(st.integers(0, values), min_size=n, max_size=n)
    levels = st.lists(st.sampled_from([1, "1", 11, None]), min_size=n, max_size=n)
    columns = draw(st.lists(levels.filter(lambda c: len(set(c)) > 1), min_size=width, max_size=width))
    return draw(numbers), draw(numbers), columns


def named(columns):
    return {f"h{k}": column for k, column in enumerate(columns)}


def full_grid(*levels):
    """Columns of a grid with one network per combination."""
    return [list(map(int, column)) for column in np.indices(levels).reshape(len(levels), -1)]
