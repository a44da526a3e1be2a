"""Every plan in the documentation is a plan; every file it links to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from safetensors.torch import save_file

import assay
from assay import load_plan
from assay.networks import vgg
from assay.plans.plan import load_measure
from assay.plans.settings import read_yaml
from assay.stimuli import load_labelled
from assay.studies import load_corpus_plan
from conftest import write_digits

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
    *sorted((ROOT / "docs").glob("*.md")),
]
PLANS = [(p.name, text) for p in PAGES for text in re.findall(r"```yaml\n(.*?)```", p.read_text(), re.S)]


@pytest.fixture
def files(tmp_path):
    """What plans of the documentation name: labelled digits, the weights of a small network."""
    write_digits(tmp_path / "digits.npz")
    save_file(vgg(channels=1).state_dict(), tmp_path / "vgg.safetensors")
    return tmp_path


@pytest.mark.parametrize(("page", "text"), PLANS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(PLANS)])
def test_plans_in_the_documentation_load_and_their_networks_are_made(page, text, files):
    path = files / "plan.yaml"
    path.write_text(text)
    root = read_yaml(path)
    if "subjects" in root.value:
        plan = load_plan(path)
        assert plan.measures and all(subject.module for subject in plan.load_subjects())
        return
    assert "pgdl" in root.value or load_corpus_plan(path).combinations()
    data = load_labelled(files / "digits.npz")
    assert all(load_measure(node, data)[1].predictors for node in root["measures"].elements())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_citation_is_of_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == assay.__version__
