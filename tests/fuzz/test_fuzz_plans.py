"""Mutated plans of every kind are refused in sentences, or are right; thousands, run too, with ``make fuzz``."""

from __future__ import annotations

import random
import warnings

import pytest

from assay import AssayError
from fuzz.plan_mutations import mutated, written
from fuzz.plan_world import make_world, right_plans
from fuzz.plans import read

CASES = 150


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    place = tmp_path_factory.mktemp("plans")
    make_world(place, trained=False)
    return place


def test_the_plans_that_are_mutated_are_right(world):
    for kind, plan in right_plans():
        if kind != "study":  # whose corpus is not trained here
            (world / "plan.yaml").write_text(written(plan))
            read(kind, world / "plan.yaml", checked=False)


def test_mutated_plans_are_refused_in_sentences(world):
    refused = 0
    for number in range(CASES):
        kind, data = mutated(random.Random(f"plans in the tests {number}"), right_plans())
        (world / "plan.yaml").write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(kind, world / "plan.yaml", checked=False)
        except AssayError as error:
            refused += 1
            assert all(len(line) < 2000 for line in str(error).splitlines()), f"case {number}: {error}"
        except Exception as error:
            raise AssertionError(f"case {number}, {kind}: {data[:2000]!r}") from error
    assert refused > CASES / 4
