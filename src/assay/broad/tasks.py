"""Tasks: what is to be predicted from which data, and what a system may know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Array, Dataset, Inputs, Modality
from assay.broad.data.partition import Partition, first_labels, generator, partition_given, partition_stratified
from assay.broad.metrics import METRICS, Metric
from assay.core.errors import AssayError
from assay.core.fingerprint import fingerprint

METRIC_OF: dict[Modality, str] = {"video": "MAP", "text": "RMSE"}


@dataclass(frozen=True, eq=False)
class Task:
    """One performance task as the evaluators know it.

    Args:
        name: Name of the task: ``video``, or ``text:`` and the rating.
        dataset: All instances, of one rating if it is text.
        partition: Which instances are trained on, tuned on and tested on.
        seed: The secret seed, from which the order is drawn in which systems see the instances.
    """

    name: str
    dataset: Dataset
    partition: Partition
    seed: str = ""

    @property
    def modality(self) -> Modality:
        """Whether the task is of video or of text."""
        return self.dataset.modality

    @property
    def metric(self) -> Metric:
        """The metric of the task: mean average precision for video, root mean squared error for text."""
        return METRICS[METRIC_OF[self.modality]]

    def for_systems(self) -> View:
        """The task as runs may see it, without any label of a test instance, in an order that says nothing.

        Names of files, lines and folders, and the order of instances, may all tell what an instance shows. Here
        instances come in an order drawn from the secret seed, and are called by their number in it.
        """
        known = np.full(self.dataset.targets.shape, np.nan, dtype=np.float32)
        rows = np.concatenate([self.partition.training, self.partition.validation])
        known[rows] = self.dataset.targets[rows]
        content = fingerprint(self.name, inputs_hash(self.dataset.inputs), known, self.partition.hash, self.labels)
        order = generator(self.seed, f"order of {self.name}").permutation(len(self.dataset))
        place = np.argsort(order)
        taken = self.dataset.inputs.take(order)
        neutral = Partition(
            tuple(place[fold] for fold in self.partition.folds),
            np.sort(place[self.partition.validation]),
            np.sort(place[self.partition.test]),
        )
        return View(
            self.name, self.modality, Inputs(taken.items, neutral_ids(len(taken))), known[order], self.labels, neutral,
            content, self.partition.hash, np.argsort(np.argsort(place[self.partition.test])),
        )  # fmt: skip

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, or of the rating."""
        return self.dataset.labels

    def truth(self) -> tuple[Array, Array | None]:
        """Targets and groups of the test instances."""
        groups = self.dataset.groups
        test = self.partition.test
        return self.dataset.targets[test], None if groups is None else groups[test]


@dataclass(frozen=True, eq=False)
class View:
    """A task as a run sees it: all inputs, labels of training and validation instances only (others are NaN).

    Args:
        name: Name of the task.
        modality: ``"video"`` or ``"text"``.
        inputs: The instances, in neutral order and under neutral ids.
        known: Labels of the instances, NaN for those of the test set.
        labels: Names of the classes, or of the rating.
        partition: The partition, by the numbers of this order.
        hash: Hash of the content of data and partition.
        partition_hash: Hash of the partition as the evaluators know it.
        test_order: For each test instance in the evaluators' order, its place among the test instances here.
    """

    name: str
    modality: Modality
    inputs: Inputs
    known: Array
    labels: tuple[str, ...]
    partition: Partition
    hash: str
    partition_hash: str
    test_order: Array

    @property
    def metric(self) -> Metric:
        """The metric of the task."""
        return METRICS[METRIC_OF[self.modality]]

    def y(self, rows: Array, label: int) -> Array:
        """What is to be predicted of the given training or validation instances: their value of one label."""
        values: Array = self.known[rows, label]
        if np.isnan(values).any():
            raise AssayError(f"task {self.name}: labels of test instances were asked for")
        return values > 0 if self.modality == "video" else values


def neutral_ids(count: int) -> tuple[str, ...]:
    """Ids that say nothing of the instances.

    >>> neutral_ids(2)
    ('instance-000000', 'instance-000001')
    """
    return tuple(f"instance-{i:06d}" for i in range(count))


def inputs_hash(inputs: Inputs) -> str:
    """Hash of the content of what systems see."""
    items: Any = inputs.items
    if sparse.issparse(items):
        content: Any = (items.data, items.indices, items.indptr)
    elif items and not isinstance(items[0], str):
        content = [clip.fingerprint for clip in items]
    else:
        content = "\0".join(items)
    return fingerprint(content, "\0".join(inputs.ids))


def make_tasks(
    video: tuple[Dataset, Dataset] | None,
    text: Dataset | None,
    secret: str,
    k: int = 10,
    p: float = 0.7,
    n: int = 10_000,
    ratings: Sequence[str] | None = None,
    validation_cap: int | None = None,
) -> list[Task]:
    """Make the tasks of the plan: one for video, one for every rating of the text (Fig. 3).

    Args:
        video: Training and test set of video; None for no such task.
        text: All reviews; each rating gets a partition of its own, of the reviews that have it. None for no such task.
        secret: Seed of the partitions.
        k: Number of folds.
        p: Share of the text that is the training set.
        n: Number of reviews that make the folds.
        ratings: Which ratings of the text are predicted; all by default.
        validation_cap: The largest number of left-over reviews to tune on; None for all.
    """
    tasks = []
    if video is not None:
        training, test = video
        if training.labels != test.labels:
            raise AssayError(f"{training.name}: training and test set have different classes")
        both = _joined(training, test)
        first = np.arange(len(training))
        concepts = first_labels(both.targets)
        partition = partition_given(first, np.arange(len(training), len(both)), concepts, k, secret)
        tasks.append(Task("video", both, partition, secret))
    if text is not None:
        for rating in ratings or text.labels:
            if rating not in text.labels:
                raise AssayError(f"{text.name} has the ratings {', '.join(text.labels)}, not {rating!r}")
            rated = text.only(rating)
            partition = partition_stratified(rated.targets[:, 0], k, p, n, f"{secret}/{rating}", validation_cap)
            tasks.append(Task(f"text:{rating}", rated, partition, secret))
    return tasks


def _joined(a: Dataset, b: Dataset) -> Dataset:
    items: Any = [*a.inputs.items, *b.inputs.items]
    groups = None
    if a.groups is not None and b.groups is not None:
        groups = np.concatenate([a.groups, b.groups])
    inputs = Inputs(items, (*(f"training/{i}" for i in a.inputs.ids), *(f"test/{i}" for i in b.inputs.ids)))
    return Dataset(a.name, a.modality, inputs, np.concatenate([a.targets, b.targets]), a.labels, groups)
