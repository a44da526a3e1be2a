"""The quick version of benchmarks/study_false_alarms.py: what predicts nothing is not called good, what does is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from study_false_alarms import KINDS, Corpus, false_alarms, found

LEVELS = (3, 2, 2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_one_false_alarm_in_fifteen_corpora(kind):
    """At a level of 5 %, two or more have a chance of 17 %; the test's own level is far below it."""
    assert false_alarms(LEVELS, 12, kind, corpora=15, permutations=39) <= 1


def test_the_rule_before_called_noise_good():
    assert sum(Corpus(LEVELS, 20, KINDS[0], seed).good_before() for seed in range(5)) >= 3


def test_a_measure_that_predicts_the_gap_is_found():
    assert found((3, 3, 2, 2), 12, 0.95, corpora=5, permutations=39) >= 4
