"""What a notebook shows of runs, subjects and measures."""

from __future__ import annotations

import numpy as np
import torch

import assay


def test_runs_subjects_and_measures_say_what_they_are(tmp_path):
    data = assay.stimuli.Labelled(np.random.default_rng(0).random((12, 4)).astype(np.float32), np.arange(12) % 2)
    subject = assay.Subject(torch.nn.Sequential(torch.nn.Linear(4, 2)), "<b>net</b>")
    assert "known once it was shown something" in subject._repr_html_()
    run = assay.evaluate(subject, assay.Margins(data), tmp_path)
    shown = subject._repr_html_()
    assert "&lt;b&gt;net&lt;/b&gt;" in shown and "<b>net" not in shown and ">10<" in shown and ">1<" in shown
    assert "1 of 1 done" in run._repr_html_() and "margins" in run._repr_html_()
    assert "12 inputs of 4 in 2 classes" in assay.Margins(data)._repr_html_()
