"""What the networks of a corpus were trained and tested on, as a plan writes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.reading import is_there, reading, visible
from assay.plans.data import Size, labelled_data
from assay.stimuli.labelled import Labelled
from assay.stimuli.pictures import Color
from assay.stimuli.streaming import part_of

_TEST = ("test", "val", "validation")
_ALL = 2**40  # inputs, more than any data set has


@dataclass(frozen=True)
class CorpusData:
    """The data on which the networks of a corpus are trained and tested.

    Args:
        path: Where the data are: a folder of IDX files (MNIST, Fashion-MNIST); an ``.npz`` file with ``train_images``,
            ``train_labels``, ``test_images`` and ``test_labels``; a folder with ``train`` and ``test`` (or ``val``),
            each with a folder of pictures for every class; or a ``.csv`` file of paths, labels and ``split``.
        train: Number of training inputs to draw at random, with the plan's seed; all by default.
        test: Number of test inputs to draw in the same way; all by default.
        size: Side to which the central square of pictures in files is resized, or height and width.
        color: ``grey`` or ``rgb``, to convert pictures in files to.
        stream: Whether to read pictures of class folders only when they are shown, for data larger than memory; those
            of Parquet files (``train-….parquet``) always are.
    """

    path: Path
    train: int | None = None
    test: int | None = None
    size: Size | None = None
    color: Color | None = None
    stream: bool = False

    def load(self, seed: int) -> tuple[Labelled, Labelled]:
        """Load the training set and the test set."""
        train, test = self.load_train(seed), self.load_test(seed)
        if test is None:
            raise AssayError(f"{self.path} has no part {_TEST[0]!r}: networks are trained and then tested")
        return train, test

    def load_train(self, seed: int) -> Labelled:
        """Load the training set; all of the data where they have no parts."""
        return _sample(self._part("train" if "train" in self._parts else None), self.train, seed)

    def load_test(self, seed: int) -> Labelled | None:
        """Load the test set; None where there is none."""
        part = next((name for name in _TEST if name in self._parts), None)
        if part is None and self.test is not None:
            raise AssayError(
                f"test={self.test} inputs are asked for, and {self.path} has no part {_TEST[0]!r}: leave it out"
            )
        return None if part is None else _sample(self._part(part), self.test, seed)

    def require_there(self) -> None:
        """Refuse data that are not there."""
        if not is_there(self.path):
            raise AssayError(f"{self.path} does not exist")

    @cached_property
    def _parts(self) -> set[str]:
        """The names of the parts that the data have: of their arrays, files, folders, or words in a column."""
        self.require_there()
        with reading(self.path, "labelled data"):
            if self.path.suffix == ".npz":
                with np.load(self.path, allow_pickle=False) as arrays:
                    return {name.removesuffix("_images") for name in arrays if name.endswith("_images")}
            if self.path.suffix == ".csv":
                return set(pd.read_csv(self.path).get("split", pd.Series(dtype=str)).astype(str))
            if not self.path.is_dir():
                return set()
            if any(self.path.glob("*-idx?-ubyte*")):
                return {"train", "test"}
            files = {part_of(file) for file in visible(self.path.glob("*.parquet"), self.path)}
            return files | {place.name for place in self.path.iterdir() if place.is_dir()}

    def _part(self, split: str | None) -> Labelled:
        return labelled_data(self.path, split, self.size, self.color, limit=_ALL, stream=self.stream)


def _sample(data: Labelled, count: int | None, seed: int) -> Labelled:
    if count is not None and not 0 < count <= len(data):
        raise AssayError(f"{count} of {data.source} are asked for, which has {len(data)}")
    return data if count is None else data.sample(count, seed)
