"""All problems of a plan of a broad evaluation are named at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from assay import AssayError
from assay.broad import load_broad_plan
from assay.plans.problems import Problems

TWINS = Path(__file__).parents[2] / "reproductions" / "broad-evaluation-2010" / "twins-small.yaml"
GOOD = {
    "secret": "not a secret, but long",
    "text": {"generated": {"count": 60, "restaurants": 5}},
    "evaluators": {"text": {"extractor": "bag_of_words", "classifier": "logistic"}},
    "teams": [
        {
            "letter": "s",
            "name": "Small",
            "text": {"preprocessor": "bag_of_words", "learner": "sparse_autoencoder", "classifier": "logistic"},
        }
    ],
}


def write(folder: Path, plan: dict) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    return path


def test_all_problems_are_named_with_those_of_the_data(tmp_path):
    team = GOOD["teams"][0]
    plan = GOOD | {
        "folde": "x",
        "video": {"holywood2": "data"},
        "text": {"csv": "nowhere.csv"},
        "protocol": {"k": "three", "phases": "end"},
        "evaluators": {"text": {"extractor": "bag_of_word", "classifier": "logistic"}, "sound": {}},
        "teams": [
            team | {"letter": "SS"},
            team | {"nam": "x", "text": team["text"] | {"learner": {"modul": "isa"}}},
            {"letter": "t", "name": "None"},
        ],
        "measures": ["norm", "norms"],
    }
    with pytest.raises(Problems) as error:
        load_broad_plan(write(tmp_path, plan), with_data=True)
    expected = [
        "folde: unknown key; did you mean 'folder'?",
        "video: is one of generated, hollywood2, folder",
        "video: the evaluators have no modules for video",
        "text.csv: ",
        "protocol.k: is 'three', expected a whole number",
        "protocol.phases: unknown key; did you mean 'phase'?",
        "evaluators.text.extractor: ",
        "evaluators.sound: 'sound' is not 'video' or 'text'",
        "teams[0]: team 'Small': letter='SS'",
        "teams[1].nam: unknown key",
        "teams[1].text.learner.modul: unknown key; did you mean 'module'?",
        "teams[1].text.learner: lacks the key 'module'",
        "teams[2]: lacks both 'video' and 'text'",
        "measures[0].measure: unknown measure 'norm'",
    ]
    said = error.value.sentences
    for sentence in expected:
        assert any(sentence in one for one in said), (sentence, said)
    assert len(said) == len(expected), said


def test_the_home_folder_is_expanded_and_the_default_is_beside_the_plan(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = write(tmp_path, GOOD)
    assert load_broad_plan(path).folder == str(tmp_path / "runs" / "plan")
    assert load_broad_plan(write(tmp_path, GOOD | {"folder": "~/x"})).folder == str(tmp_path / "home" / "x")


def test_the_example_has_no_problem():
    plan = load_broad_plan(TWINS)
    assert [team.letter for team in plan.teams] == ["n", "s"] and list(plan.measures) == ["invariance"]


@pytest.mark.requirement("M2")
def test_the_plan_may_list_what_changed_since_the_last_edition(tmp_path):
    for changes in ("The learner's seed was fixed.", ["A new classifier.", "More reviews."]):
        plan = load_broad_plan(write(tmp_path, GOOD | {"changes": changes}))
        assert plan.written["changes"] == changes
    with pytest.raises(AssayError, match="changes: is a mapping, expected a list"):
        load_broad_plan(write(tmp_path, GOOD | {"changes": {"first": 1}}))


def test_code_of_teams_is_found_and_not_run(tmp_path, monkeypatch):
    """Not even the package around it; a throwing import is for the worker to meet."""
    (tmp_path / "team_code").mkdir()
    (tmp_path / "team_code" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "team_code" / "deep.py").write_text("raise RuntimeError('imported')\nclass Deep: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    team = GOOD["teams"][0]
    good = GOOD | {"teams": [team | {"text": team["text"] | {"learner": "team_code.deep:Deep"}}]}
    plan = load_broad_plan(write(tmp_path, good))
    assert plan.teams[0].parts["text"].described["learner"]["source"]
    assert str(tmp_path / "plan.yaml") in plan.private
    for name, sentence in (("team_code.dep:Deep", "cannot import"), ("team_code.deep:", "give")):
        bad = GOOD | {"teams": [team | {"text": team["text"] | {"learner": name}}]}
        with pytest.raises(AssayError, match=sentence):
            load_broad_plan(write(tmp_path, bad))


def test_a_seed_that_could_be_guessed_is_named_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("SEED", "too short")
    with pytest.raises(AssayError, match=r"plan.yaml:1: secret: the secret seed has 9 characters: .* 16 or more"):
        load_broad_plan(write(tmp_path, GOOD | {"secret": "env:SEED"}))


def test_documents_of_a_team_are_found_beside_the_plan(tmp_path):
    documents = {"architecture": "figure.pdf", "example": "https://example.org/it", "source": ""}
    plan = load_broad_plan(write(tmp_path, GOOD | {"teams": [GOOD["teams"][0] | {"documents": documents}]}))
    found = plan.documents(plan.teams[0])
    assert found == {"architecture": str(tmp_path / "figure.pdf"), "example": "https://example.org/it"}
