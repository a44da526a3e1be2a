"""The reference of plans is what the settings say, and every setting says what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.measures import Measure
from assay.plans.describe import settings_of
from assay.plans.preprocess import WORDS
from assay.plans.reference import plan_reference
from assay.plans.stimuli import FACTORIES
from assay.stimuli.transforms import NAMED

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"
OURS = {name: kind for name, kind in Measure.known().items() if kind.__module__.startswith("assay.")}
DOCUMENTED = OURS | {name: made for kinds in FACTORIES.values() for name, made in kinds.items()}


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == plan_reference(), "run: python docs/write_plans.py"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_setting_has_a_meaning(name):
    assert all(setting.meaning for setting in settings_of(DOCUMENTED[name])), name


def test_every_named_transform_is_explained():
    assert set(NAMED) <= set(WORDS)


def test_every_kind_of_stimuli_that_a_measure_of_ours_needs_has_a_section():
    page = plan_reference().lower()
    needed = {s.type for kind in OURS.values() for s in settings_of(kind) if s.default is None and "list" not in s.type}
    assert "human stimuli" in needed and "object pictures" in needed
    for words in needed - {"text", "whole number", "number"}:
        section = {"test": "tests of invariance", "invariance test": "tests of invariance"}.get(words, words)
        assert f"\n### {section}\n" in page, words
