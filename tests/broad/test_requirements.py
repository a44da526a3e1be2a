"""Every requirement of the specification is shown by a test, or out of scope with a reason; the docs say which."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "write_requirements.py"
COUNTS = {"A": 14, "B": 9, "C": 6, "D": 9, "E": 4, "F": 9, "G": 6, "H": 8, "I": 5, "J": 7, "K": 5, "L": 2, "M": 4}


@pytest.fixture(scope="module")
def docs():
    spec = importlib.util.spec_from_file_location("write_requirements", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_requirements_of_the_specification_are_listed(docs):
    assert list(docs.REQUIREMENTS) == [f"{s}{i}" for s, n in COUNTS.items() for i in range(1, n + 1)]
    assert list(docs.SECTIONS) == list(COUNTS)


def test_each_is_shown_by_a_test_or_out_of_scope_with_a_reason(docs):
    shown = docs.shown_by()
    assert set(shown) <= set(docs.REQUIREMENTS), "no test is marked with a requirement that is not listed"
    assert not set(shown) & set(docs.OUT_OF_SCOPE)
    without = [name for name in docs.REQUIREMENTS if name not in shown]
    assert without == list(docs.OUT_OF_SCOPE)
    assert all(len(reason) > 40 for reason in docs.OUT_OF_SCOPE.values())


def test_the_page_is_made_of_the_marks(docs):
    assert docs.PAGE.read_text(encoding="utf-8") == docs.page(), "run: python docs/write_requirements.py"
