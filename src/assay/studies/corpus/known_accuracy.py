"""Whether networks that were trained elsewhere do on the data here what their table says of them."""

from __future__ import annotations

from assay.core.errors import AssayError
from assay.studies.corpus.corpus import Corpus, accuracy
from assay.subject.subject import Subject

SHOWN = 256
_FURTHEST = 0.2  # three standard errors of a share of so many inputs, and as much again for one that has learned on


def accuracy_doubts(corpus: Corpus, subject: Subject) -> list[str]:
    """A sentence where a network is right far less often than its table says; none where that is not known, or not so.

    The likely cause is that its inputs are not prepared as they were in training.

    Args:
        corpus: The networks, with the column ``train_accuracy`` where it is known.
        subject: One of them.
    """
    if "train_accuracy" not in corpus.table:
        return []
    rows = corpus.table.set_index(corpus.table["network"].astype(str))
    known = float(rows["train_accuracy"].get(subject.name, float("nan")))
    some = corpus.train.sample(SHOWN)
    try:
        right = accuracy(subject, some)
    except AssayError:  # its outputs may be no classes, and nothing asked of it may need them
        return []
    if not known - right > _FURTHEST:
        return []
    return [
        f"{subject.name} is right on {right:.0%} of {len(some)} training inputs here, and the table says {known:.0%}: "
        "are inputs prepared as in training (preprocess), and labels numbered as there?"
    ]
