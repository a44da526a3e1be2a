"""The skeletons of CONTRIBUTING.md are whole files that do what the page says they do."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
FILES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), re.S))


@pytest.fixture
def skeletons(tmp_path, monkeypatch):
    """The page's files, where Python finds them."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in FILES:
        sys.modules.pop(name, None)


def test_the_skeletons_do_what_the_page_says(skeletons):
    assert len(FILES) == 4
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert done.attempted > 10 and done.failed == 0
