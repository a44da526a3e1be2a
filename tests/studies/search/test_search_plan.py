"""Search plans: what they say, and all that can be wrong with them, named at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import AssayError
from assay.studies import load_search_plan
from assay.studies.search.plan import KEYS
from assay.studies.search.space import Choice, Range, grid
from search_kit import PLAN, write_plan

WRONG = """
train: networks_of_mine:trian
space:
  width: {int: [16, 2]}
  rate: {float: [0, 0.1], log: true}
  act: 3
  depth: {int: [1, 4], stepp: 2}
  twice: [1, 1]
sampler: grip
trials: 0
seed: -1
storage: mysql://host/db
objectives:
  - {number: loss}
  - {number: loss, function: "f:g", direction: up}
  - {measure: strightness, direction: maximize}
pruning: {number: accuracy, direction: maximize}
keep: maybe
trails: 3
"""
SENTENCES = [
    "plan.yaml:19: trails: unknown key; did you mean 'trials'",
    "plan.yaml:4: space.width: goes from 16 to 2: give the smaller number first",
    "plan.yaml:5: space.rate: begins at 0 and is logarithmic: begin above 0, or leave out log",
    "plan.yaml:6: space.act: is 3, expected a list to choose from",
    "plan.yaml:7: space.depth.stepp: unknown key; did you mean 'step'?",
    "plan.yaml:8: space.twice: has 1 and 1, which are equal: give every value once",
    "plan.yaml:9: sampler: is 'grip', expected one of random, tpe, grid",
    "plan.yaml:2: train: train 'networks_of_mine:trian': 'networks_of_mine' has no 'trian'; did you mean 'train'",
    "plan.yaml:14: objectives[0]: lacks the key 'direction'",
    "plan.yaml:15: objectives[1]: has function and number of measure, function, number: give exactly one",
    "plan.yaml:15: objectives[1].direction: is 'up', expected 'maximize' or 'minimize'",
    "plan.yaml:16: objectives[2].measure.measure: unknown measure 'strightness'; did you mean 'straightness'",
    "plan.yaml:17: pruning: has no rule: give convergence, population or both",
    "plan.yaml:17: pruning.number: is 'accuracy': during training the only number told is 'loss'",
    "plan.yaml:12: storage: is no URL of a PostgreSQL database",
    "plan.yaml:11: seed: is -1, expected a whole number from 0",
    "plan.yaml:18: keep: is 'maybe', expected",
    "plan.yaml:10: trials: is 0, expected at least 1",
]


def problems_of(tmp_path, text: str) -> str:
    with pytest.raises(AssayError) as error:
        load_search_plan(write_plan(tmp_path, text))
    return str(error.value)


def test_all_problems_of_a_plan_are_named_at_once(tmp_path):
    said = problems_of(tmp_path, WRONG)
    assert not [sentence for sentence in SENTENCES if sentence not in said], said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("width:", "widht:"), "train takes no argument 'widht'; did you mean 'width'"),
        (("width:", "widht:"), "train needs the argument 'width': put it into space or fixed"),
        (("run: run", "fixed: {rate: 1}"), "space.rate: is in space and in fixed: give it once"),
        (("width:", "status:"), "space.status: is a name that the search uses itself"),
        (("width:", "seed:"), "space.seed: is a name that the search uses itself"),
        (("number: loss", "number: loss, name: width"), "objectives: has 'width', as another column of the table is"),
        (("trials: 12", ""), "the file lacks the key 'trials'"),
        (("trials: 12", "sampler: grid"), "space.rate: is a range of floating-point numbers, which a grid cannot go"),
        (("run: run", "run: s3://bucket/run"), "where no SQLite database can lie: name a local folder, or a storage"),
        (("train: networks_of_mine:train", ""), "must have one of the keys 'train' and 'network'"),
        (("number: loss", "number: loss, take: x"), "has take or layer, which choose from a measure, but no measure"),
        (("number: loss", "function: 'networks_of_mine:HERE'"), "is no function"),
        (("objectives: [{number: loss, direction: minimize}]", "objectives: []"), "objectives: is an empty list"),
        (("width: {int: [2, 16], log: true}", "width: []"), "space.width: is an empty list"),
        (("width: {int: [2, 16], log: true}", "width: [[1]]"), "space.width: has [1], which is no number, word"),
        (("width: {int: [2, 16], log: true}", "width: [2, true, 1.0]"), "has True and 1.0, which are equal"),
        (
            ("number: loss", "measure: norms, shape: [4]"),
            "objectives[0].shape: unknown key; known: 'measure', 'function', 'number', 'take', 'layer', 'name', "
            "'direction'; a setting of the measure stands in it, measure: {measure: norms, shape: …}",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, change, sentence):
    assert sentence in problems_of(tmp_path, PLAN.replace(*change))


def test_pruning_needs_a_training_that_calls_back(tmp_path):
    text = PLAN + "pruning: {number: loss, direction: minimize, population: true}\n"
    plan = write_plan(tmp_path, text)
    assert load_search_plan(plan).pruner.population.after == 25
    code = tmp_path / "networks_of_mine.py"
    code.write_text(code.read_text().replace("*, seed, callback", "*, seed"))
    with pytest.raises(AssayError, match="train takes no argument 'callback', which a search gives"):
        load_search_plan(plan)


def test_seeds_are_of_the_place_and_the_plan_alone(tmp_path):
    plan = load_search_plan(write_plan(tmp_path, PLAN))
    other = load_search_plan(write_plan(tmp_path, PLAN + "seed: 1\n"))
    more = load_search_plan(write_plan(tmp_path, PLAN.replace("trials: 12", "trials: 99")))
    seeds = [plan.seed_of(place) for place in range(200)]
    assert len(set(seeds)) == 200 and all(0 <= seed < 2**31 for seed in seeds)
    assert other.seed_of(0) != plan.seed_of(0) == more.seed_of(0)
    assert plan.made_of == more.made_of != other.made_of


def test_a_grid_is_every_combination(tmp_path):
    space = {"a": Choice((1, "x", None)), "b": Range(1, 5, whole=True, step=2)}
    combinations = grid(space)
    assert len(combinations) == 9 and combinations[4] == {"a": "x", "b": 3}
    text = PLAN.replace("{float: [1e-3, 0.1], log: true}", "[0.1]").replace("trials: 12", "sampler: grid\ntrials: 99")
    assert load_search_plan(write_plan(tmp_path, text)).trials == 15


def test_the_page_explains_every_key():
    page = (Path(__file__).parents[3] / "docs" / "search.md").read_text()
    assert not [key for key, meaning in KEYS.items() if f"| `{key}` | {meaning} |" not in page]
