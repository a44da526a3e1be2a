"""The common part of the fuzzers sees what it is there to see."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pytest

from assay import AssayError
from fuzz import harness
from fuzz.harness import Broken, Case


class Faulty:
    """A fuzzer of one case for each thing that may go wrong, and for each that may not."""

    def prepare(self, shared):
        (shared / "seen").write_text("by all")

    def run_case(self, case: Case):
        case.note(f"sees {(case.shared / 'seen').read_text()}")
        getattr(self, os.environ["FAULT"])(case)

    def holds(self, case):
        (case.folder / "file").write_text(str(case.draw.random()))

    def refuses(self, case):
        raise AssayError("no")

    def raises(self, case):
        raise KeyError("gone")

    def loses(self, case):
        raise Broken("a cell is lost")

    def exits(self, case):
        sys.exit(0)

    def dies(self, case):
        os._exit(9)

    def hangs(self, case):
        time.sleep(3600)

    def asks_for_more(self, case):
        np.ones(2**40, np.uint8)

    def runs_code(self, case):
        case.canary.touch()


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("holds", ""),
        ("refuses", ""),
        ("raises", "KeyError: 'gone'"),
        ("loses", "Broken: a cell is lost"),
        ("exits", "SystemExit: 0"),
        ("dies", "Dies: "),
        ("hangs", "Hangs: "),
        ("asks_for_more", "MemoryError"),
        ("runs_code", "CodeRan: "),
    ],
)
def test_a_case_that_fails_is_seen_and_can_be_repeated(monkeypatch, fault, wrong):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setattr(harness, "LONGEST_S", 1.0 if fault == "hangs" else 60.0)
    shown = harness.check("faulty", Faulty(), seed=3, cases=1)
    assert bool(shown) == bool(wrong) and wrong in shown
    assert not wrong or ("sees by all" in shown and "run.py faulty --seed 3 --case 0" in shown)


def test_a_case_repeats_itself():
    drawn = []

    class Keeps(Faulty):
        def run_case(self, case):
            raise Broken(str(case.draw.random()))

    for _ in range(2):
        drawn.append(harness.check("keeps", Keeps(), seed=1, cases=3))
    assert drawn[0] == drawn[1] != harness.check("keeps", Keeps(), seed=2, cases=3)
