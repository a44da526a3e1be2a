"""Every plan in the documentation is a plan; every file it links to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay import load_plan

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PLANS = [(p.name, text) for p in PAGES for text in re.findall(r"```yaml\n(.*?)```", p.read_text(), re.S)]


@pytest.mark.parametrize(("page", "text"), PLANS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(PLANS)])
def test_plans_in_the_documentation_load_and_their_networks_are_made(page, text, tmp_path):
    (tmp_path / "plan.yaml").write_text(text)
    plan = load_plan(tmp_path / "plan.yaml")
    assert plan.measures and all(subject.module for subject in plan.load_subjects())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
