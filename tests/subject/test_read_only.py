from __future__ import annotations

import warnings

import numpy as np
from torch import nn

import assay
from assay import Subject
from assay.stimuli import Labelled


def test_inputs_that_must_not_be_written_to_are_shown_without_a_warning():
    data = Labelled(np.random.default_rng(0).random((4, 3), dtype=np.float32), np.arange(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for preprocess in (None, lambda batch: batch / 2):
            Subject(nn.Linear(3, 2), preprocess=preprocess).record(data.inputs[:2])
        path = np.broadcast_to(np.float32(1), (3, 4))
        assay.curvature(path)
        assay.measures.next_frame_error(path, path)
        assay.surprisal(path, np.broadcast_to(np.int64(2), 3))
