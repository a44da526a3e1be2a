"""Damaged files, by the hundred: each is refused by one sentence or read, no code runs, no cell is lost."""

from __future__ import annotations

import pytest

from fuzz import harness
from fuzz.files import QUICK


@pytest.mark.slow
def test_no_damaged_file_ends_in_a_traceback_and_nothing_is_lost():
    assert harness.check("files-quick", QUICK, seed=17, cases=120) == ""
