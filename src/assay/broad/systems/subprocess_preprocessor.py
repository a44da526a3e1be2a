"""A preprocessor or feature extractor in a process of its own, in any language; connected by files only."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from scipy import sparse

from assay.broad.data.dataset import Features, Inputs
from assay.broad.data.features import packed
from assay.broad.systems.command import Command


class SubprocessPreprocessor(Command):
    """A preprocessor that is a command, called in two ways, always with ``--parameters P.json``.

    - ``command fit --data FILE --model DIR`` leaves what it learned in DIR, at least one file;
    - ``command transform --model DIR --data FILE --out Y.npz`` writes one row or array for each instance.

    FILE is ``instances.jsonl``, a line for each review with its text as a JSON string; or ``instances.npz``, a sparse
    matrix of counts, or clips as a list of arrays T×C×H×W in [0, 1]. The files of features are those of
    `assay.broad.systems.subprocess_learner.SubprocessLearner`; the arguments are those of
    `assay.broad.systems.command.Command`, and `assay.broad.systems.adapter.serve` is the other side, for Python.
    """

    def fit(self, inputs: Inputs) -> Self:
        """Run the command to learn from training instances, and keep what it learned."""
        name, data = written(inputs)
        self._learn({name: data}, "--data", name)
        return self

    def transform(self, inputs: Inputs) -> Features:
        """Run the command to compute the features of instances."""
        name, data = written(inputs)
        return self._answer("transform", {name: data}, "--data", name)


def written(inputs: Inputs) -> tuple[str, bytes]:
    """Write instances for a command: the name of the file, and its bytes.

    >>> written(Inputs(["Good.", "Bad:\\nloud."], ("a", "b")))
    ('instances.jsonl', b'"Good."\\n"Bad:\\\\nloud."\\n')
    """
    items: Any = inputs.items
    if sparse.issparse(items):
        return "instances.npz", packed(items)
    if len(items) and not isinstance(items[0], str):
        return "instances.npz", packed([np.stack(list(clip.frames())) for clip in items])
    return "instances.jsonl", "".join(json.dumps(text) + "\n" for text in items).encode()
