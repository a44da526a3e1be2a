"""What a notebook shows of runs, subjects and measures."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import torch

import assay
from assay.core.progress import listening, report


def test_runs_subjects_and_measures_say_what_they_are(tmp_path):
    data = assay.stimuli.Labelled(np.random.default_rng(0).random((12, 4)).astype(np.float32), np.arange(12) % 2)
    subject = assay.Subject(torch.nn.Sequential(torch.nn.Linear(4, 2)), "<b>net</b>")
    assert "known once it was shown something" in subject._repr_html_()
    assert ">1<" in assay.Subject(subject.module, example=(4,))._repr_html_()
    assert "cannot take" in assay.Subject(subject.module, example=(5,))._repr_html_()
    run = assay.evaluate(subject, assay.Margins(data), tmp_path)
    shown = subject._repr_html_()
    assert "&lt;b&gt;net&lt;/b&gt;" in shown and "<b>net" not in shown and ">10<" in shown and ">1<" in shown
    assert "1 of 1 done" in run._repr_html_() and "margins" in run._repr_html_()
    assert "12 inputs of 4 in 2 classes" in assay.Margins(data)._repr_html_()


def test_a_notebook_shows_progress_without_widgets_and_nothing_else_does(monkeypatch):
    """A stand-in for IPython: what it shows is one piece of HTML that is replaced, for each cell of the notebook."""
    shown = []
    handle = SimpleNamespace(update=lambda html: shown.append(html))
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or handle)
    shell = SimpleNamespace(kernel=object(), execution_count=1)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("assay.core.progress_bars.time", SimpleNamespace(monotonic=iter(range(100)).__next__))
    report("<cells>", 1, 3)
    report("<cells>", 3, 3)
    assert 'max="3"' in shown[-1] and "&lt;cells&gt;" in shown[-1] and "3 of 3" in shown[-1]
    report("frames", 5)
    assert "frames: 5" in shown[-1] and "cells" not in shown[-1]  # what is done makes room
    with listening(lambda *_: None):
        report("frames", 6)
    assert "frames: 5" in shown[-1]
    shell.kernel, count = None, len(shown)  # IPython in a terminal
    report("frames", 7)
    assert len(shown) == count
