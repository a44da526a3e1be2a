"""Every requirement of the specification has a test that exists, or a reason why not."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
COUNTS = {"A": 14, "B": 9, "C": 6, "D": 9, "E": 4, "F": 9, "G": 6, "H": 8, "I": 5, "J": 7, "K": 5, "L": 2, "M": 4}


def test_every_requirement_is_held_by_a_test_or_out_of_scope_with_a_reason():
    page = (TESTS.parent / "docs" / "broad.md").read_text()
    rows = re.findall(r"^\| ([A-M]\d+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [f"{s}{i}" for s, n in COUNTS.items() for i in range(1, n + 1)]
    for name, held in rows:
        if held.startswith("out of scope"):
            assert len(held) > 40, name
            continue
        file, test = held.strip("`").split("::")
        assert f"def {test}(" in (TESTS / file).read_text(), f"{name}: {held}"
