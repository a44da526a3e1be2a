"""Every plan in the documentation is a plan; every file it links to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from safetensors.torch import save_file

import assay
from assay import Measure, load_plan
from assay.networks import vgg
from assay.plans.plan import load_measure
from assay.plans.settings import read_yaml
from assay.stimuli import load_labelled
from assay.studies import load_corpus_plan
from conftest import write_digits

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "reproductions").glob("*/README.md")),
]
MEASURES = {page.stem: page for page in PAGES if page.parent.name == "measures" and page.stem != "README"}
HEADINGS = [
    "The question", "The formula", "A picture", "An example", "What it costs", "When not to use it"
]  # fmt: skip
YAML = re.compile(r"```yaml\n(?!# [\w-]+\.yaml)(.*?)```", re.S)  # test_doc_pages.py runs the plans that are files
PLANS = [(p.name, text) for p in PAGES for text in YAML.findall(p.read_text())]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, heading in re.findall(r"\]\(([^)#: ]*)(?:#([^) ]+))?\)", page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        assert not heading or heading in anchors(linked), f"{page.name} links to {target}#{heading}"


SIZES = re.compile(r'"(--(?:corpora|experiments|observers|repetitions))"')  # how much a simulation draws


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_of_benchmarks_have_options_that_there_are_and_simulations_say_how_much_they_draw(page):
    for name, arguments in re.findall(r"`python benchmarks/(\w+)\.py ?([^`]*)`", page.read_text()):
        source = (ROOT / "benchmarks" / f"{name}.py").read_text()
        given = re.findall(r"--[\w-]+", arguments)
        assert all(f'"{option}"' in source for option in given), name
        sizes = SIZES.findall(source)
        assert not sizes or set(sizes) & set(given), f"{page.name} does not say how much {name} draws"


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("generalization.md", "study_false_alarms"),
        ("generalization.md", "cmi_intervals"),
        ("measures/invariance.md", "invariance_coverage"),
        ("perception.md", "perception_coverage"),
        ("rsa.md", "rdm_coverage"),
    ],
)
def test_numbers_of_simulations_stand_beside_the_whole_command_that_gives_them(page, command):
    assert f"`python benchmarks/{command}.py --" in (ROOT / "docs" / page).read_text()


def anchors(page):
    """The names by which the headings of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_measure_has_a_page_with_the_same_headings_and_a_small_picture():
    ours = {name for name, kind in Measure.known().items() if kind.__module__.startswith("assay.")}
    assert set(MEASURES) == ours
    for name, page in MEASURES.items():
        headings = re.findall(r"^## (.*)$", page.read_text(), re.M)
        assert headings[: len(HEADINGS)] == HEADINGS and headings[len(HEADINGS) :] in ([], ["Details"]), name
        assert f"]({name}.png)" in page.read_text() and page.with_suffix(".png").stat().st_size <= 60_000
        assert f"({name}.md)" in (page.parent / "README.md").read_text()


def test_the_citation_is_of_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == assay.__version__
