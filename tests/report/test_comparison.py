"""The first screen: what it marks as best, what it calls a difference, and how often that is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import assay
from assay.report import first_screen as screen
from assay.report.architectures import within_architectures
from assay.report.comparison import Comparison, Quantity
from assay.report.document import Items, Text
from assay.report.first_screen import first_screen, matrix, sentences
from assay.stats.evidence import Evidence
from assay.studies.portraits import Portraits, Replicates


def clips(values: np.ndarray, quantity: str = "change of curvature", better: str = "lower") -> Evidence:
    items = {f"clip {i}": float(v) for i, v in enumerate(values)}
    return Evidence(quantity, float(np.mean(values)), "°", better, items, n=len(items))


def portraits(sd: float, *quantities: str) -> Portraits:
    recipes = {recipe: Replicates(0.0, sd, 13) for recipe in ("vgg", "resnet", "perceptron")}
    return Portraits(seeds={name: recipes for name in quantities}, trained=39)


def compared(sd: float = 0.5, recipes: dict[str, str] | None = None, **values: np.ndarray) -> Comparison:
    of = {name: clips(v) for name, v in values.items()}
    quantity = Quantity("straightness", "change of curvature", of)
    return Comparison((quantity,), tuple(of), recipes or {}, portraits(sd, quantity.name))


def test_a_sure_difference_is_said_with_its_interval_and_the_best_are_marked():
    base = np.linspace(-5, 5, 12)
    wobble = np.cos(np.arange(12))
    comparison = compared(robust=base - 20, standard=base + wobble, twin=base - wobble)
    said = sentences(comparison)
    assert len(said) == 1 and said[0].startswith("Change of curvature: robust is lower than twin by 20.")
    assert "paired, n = 12; −20.0° v" in said[0]
    row = matrix(comparison).rows[0]
    assert row[0] == "Change of curvature\u00a0↓" and [cell.best for cell in row[2]] == [True, False, False]
    assert comparison.level == 1 - 0.05 / 3


def test_what_is_not_sure_is_not_said():
    rng = np.random.default_rng(0)
    comparison = compared(a=rng.normal(0, 29, 12), b=rng.normal(-8, 29, 12))
    assert sentences(comparison) == ["No clear difference: change of curvature (a minus b: −7.70° to 39.5°)."]
    assert not any(cell.best for cell in matrix(comparison).rows[0][2])


def test_of_what_does_not_differ_five_intervals_are_given_and_the_rest_named():
    base = np.linspace(-5, 5, 12)
    names = [f"number {i}" for i in range(7)]
    quantities = tuple(
        Quantity("mine", name, {"a": clips(base, name), "b": clips(base + np.cos(base + i), name)})
        for i, name in enumerate(names)
    )
    (said,) = sentences(Comparison(quantities, ("a", "b"), {}, portraits(3.0, *names)))
    assert said.count("a minus b: ") == 5 and said.count("number") == 7 and "; nor in number" in said


def shown_first(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts and sentences of a first screen."""
    monkeypatch.setattr(Comparison, "of_run", lambda run: comparison)
    monkeypatch.setattr(screen, "within_architectures", lambda compared, run: compared)
    blocks = first_screen(None)
    return [b.text for b in blocks if isinstance(b, Text)] + [
        s for b in blocks if isinstance(b, Items) for s in b.items
    ]


def test_networks_of_one_recipe_are_said_to_be_of_one(monkeypatch):
    base = np.linspace(-5, 5, 12)
    comparison = compared(recipes=dict.fromkeys("abc", "plain"), a=base, b=base + 1, c=base + 2)
    (said,) = shown_first(comparison, monkeypatch)
    assert said.startswith("All 3 networks are of one recipe, plain") and "●" not in matrix(comparison).note


def test_a_heading_on_these_very_networks_stands_above_what_does_not_differ_between_them(monkeypatch):
    base = np.linspace(-5, 5, 12)
    of = {"a": clips(base), "b": clips(base + np.cos(base))}
    heading, said = shown_first(Comparison((Quantity("mine", "change", of),), ("a", "b")), monkeypatch)
    assert heading.startswith("What differs between these very networks, of 1 difference looked at.")
    assert said.startswith("No clear difference, even between these very networks: change (a minus b: ")


def test_the_heading_says_which_networks_belong_to_which_recipe(monkeypatch):
    base = np.linspace(-5, 5, 12)
    recipes = {"p1": "plain", "p2": "plain"}
    heading, *_ = shown_first(compared(3.0, recipes, p1=base, p2=base + 1, other=base + 2), monkeypatch)
    assert heading.startswith("Nothing differs clearly, of 1 difference looked at. Recipes: plain (p1, p2), other.")


def test_marks_of_the_best_are_explained_where_there_can_be_any():
    base = np.linspace(-5, 5, 12)
    assert "●" not in matrix(compared(a=base)).note
    assert "a row in which none is clearly worse has no ●" in matrix(compared(a=base, b=base)).note


def test_norms_are_compared_between_networks_of_one_architecture_only(tmp_path):
    def perceptron(width: int, bias: bool = True) -> torch.nn.Module:
        last = torch.nn.Linear(width, 2, bias=bias)
        return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), last)

    torch.manual_seed(0)
    widths = {"a": 8, "b": 8, "wide": 64}
    subjects = [assay.Subject(perceptron(width), name) for name, width in widths.items()]
    run = assay.evaluate(subjects, assay.Norms(shape=(4,)), tmp_path)
    whole = Comparison.of_run(run)
    within = within_architectures(whole, run)
    assert {(a, b) for *_, a, b in within.differences} == {("a", "b")} != {(a, b) for *_, a, b in whole.differences}
    assert sentences(within) and all("wide" not in said for said in sentences(within))
    folded = assay.evaluate(
        [*subjects, assay.Subject(perceptron(64, bias=False), "folded")], assay.Norms(shape=(4,)), tmp_path / "more"
    )
    pairs = {(a, b) for *_, a, b in within_architectures(Comparison.of_run(folded), folded).differences}
    assert pairs == {("a", "b"), ("wide", "folded")}, "448 and 450 parameters: a bias is stored with one of them"
    differences = run.compare("a", "wide")
    assert not any("norm" in said for said in differences.sentences) and len(differences.table) == len(whole.quantities)


def test_networks_of_one_architecture_are_named_where_they_differ_clearly():
    noise = np.random.default_rng(0).normal(size=40)
    values = {"twin": 40 + noise, "trained": 20 + noise[::-1], "another kind": 90 + noise}
    comparison = compared(**values)
    assert "another kind" in sentences(comparison)[0]
    known = replace(comparison, architectures={"twin": (10, 2), "trained": (10, 2), "another kind": (99, 7)})
    assert "trained is lower than twin by 20" in sentences(known)[0]
    near = replace(compared(**{**values, "twin": 20 + noise}), architectures=known.architectures)
    assert "another kind" in sentences(near)[0], "the twins do not differ clearly"


def test_of_many_networks_the_spread_and_those_apart_are_shown():
    rng = np.random.default_rng(0)
    values = {f"network {i}": rng.normal(0, 1, 12) for i in range(99)} | {"strange": rng.normal(50, 1, 12)}
    shown = matrix(compared(**values))
    assert shown.columns[0] == "lowest" and shown.rows[0][2][-1].value.startswith("strange")


def false_reports(rng: np.random.Generator, reports: int, replicates: int) -> float:
    """How often a report on four equal recipes calls any of five numbers different.

    Of every number, the seed moves a network by 1, a clip all networks alike by 1, and a clip each network by 1; one
    network a recipe is judged by three other recipes with 13 reference networks each, several by themselves.
    """
    false = 0
    for _ in range(reports):
        known = {
            f"q{k}": {f"r{r}": Replicates(0.0, float(rng.normal(size=13).std(ddof=1)), 13) for r in range(3)}
            for k in range(5)
        }
        recipes = {f"n{i}.{j}": f"n{i}" for i in range(4) for j in range(replicates)}
        shared = rng.normal(size=(5, 10))
        quantities = tuple(
            Quantity("m", f"q{k}", {n: clips(shared[k] + rng.normal() + rng.normal(size=10), f"q{k}") for n in recipes})
            for k in range(5)
        )
        comparison = Comparison(quantities, tuple(recipes), recipes, Portraits(seeds=known))
        false += any(apart.clear(comparison.level) for apart in comparison.differences.values())
    return false / reports


@pytest.mark.parametrize(("many", "few"), [(5, 5), (12, 5), (8, 1)])
def test_recipes_of_unequal_spread_and_number_are_not_called_different(many, few):
    """Two recipes of one mean, whose networks are 9 and 1 apart; a single one is judged by references like itself."""
    rng = np.random.default_rng(1)
    reports, false = 300, 0
    seeds = {f"r{i}": Replicates(0.0, float(sd), 13) for i, sd in enumerate((1, 1, 9, 9))}
    for _ in range(reports):
        quantities = []
        for k in range(5):
            values = np.r_[rng.normal(0, 1, many), rng.normal(0, 9, few)]
            of = {f"n{i}": clips(v + rng.normal(0, 0.1, 10), f"q{k}") for i, v in enumerate(values)}
            quantities.append(Quantity("m", f"q{k}", of))
        recipes = {f"n{i}": "many" if i < many else "few" for i in range(many + few)}
        comparison = Comparison(
            tuple(quantities), tuple(recipes), recipes, Portraits(seeds={f"q{k}": seeds for k in range(5)})
        )
        false += any(apart.clear(comparison.level) for apart in comparison.differences.values())
    assert false / reports <= 0.05 + 2.33 * (0.05 * 0.95 / reports) ** 0.5


@pytest.mark.parametrize("replicates", [1, 5])
def test_equal_recipes_are_called_different_in_at_most_one_report_of_twenty(replicates):
    reports = 200
    false = false_reports(np.random.default_rng(7), reports, replicates)
    assert false <= 0.05 + 2.33 * (0.05 * 0.95 / reports) ** 0.5  # p = 0.01 were it exactly 5 %


def test_a_difference_that_seeds_make_too_is_not_called_one():
    base = np.linspace(-5, 5, 12)
    assert sentences(compared(sd=0.5, a=base, b=base + 6 + 0.1 * np.cos(base)))[0].startswith("Change of curvature: a")
    assert sentences(compared(sd=3.0, a=base, b=base + 6 + 0.1 * np.cos(base))) == [
        "No clear difference: change of curvature (a minus b: −14.4° to 2.47°)."
    ]


def test_recipes_are_compared_by_their_networks():
    base = np.linspace(-5, 5, 12)
    shifts = {"robust": (-20.0, -21.0, -19.0, -20.0, -20.0), "standard": (0.0, 1.0, -1.0, 0.0, 0.0)}
    values = {f"{recipe} {i}": base + x for recipe, of in shifts.items() for i, x in enumerate(of)}
    recipes = {name: name.split()[0] for name in values}
    comparison = compared(sd=100.0, recipes=recipes, **values)
    assert list(comparison.differences) == [("straightness", "change of curvature", "robust", "standard")]
    (apart,) = comparison.differences.values()
    assert apart.value == -20.0
    assert apart.error == pytest.approx(0.2**0.5)  # both recipes have a variance of 1/2 over five networks
    assert apart.df == pytest.approx(8)  # the clips pair without any rest
    assert "5 and 5 networks; −20.0° v 0.000°" in sentences(comparison)[0]
    assert [cell.best for cell in matrix(comparison).rows[0][2]] == [True] * 5 + [False] * 5


def test_without_a_spread_over_seeds_only_these_networks_are_spoken_of():
    base = np.linspace(-5, 5, 12)
    of = {"a": clips(base), "b": clips(base + 6 + np.cos(base))}
    comparison = Comparison((Quantity("mine", "change of curvature", of),), tuple(of))
    (said,) = sentences(comparison)
    assert said.startswith("It is not known how far another seed moves") and "Change of curvature: a is lower" in said
    assert not comparison.differences


def test_a_number_that_two_measures_give_is_shown_once(tmp_path):
    data = assay.stimuli.Labelled(np.random.default_rng(0).random((30, 1, 6, 6)).astype("float32"), np.arange(30) % 3)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3))
    measures = [assay.Margins(data), assay.AugmentationRobustness(data, ("flip",))]
    run = assay.evaluate(assay.Subject(net, "net"), measures, tmp_path)
    names = [q.name for q in Comparison.of_run(run).quantities]
    assert names.count("accuracy") == 1
    _, drop = run.evidence("augmentation")["net"]
    assert np.isnan(drop.value) and drop.status == "its accuracy is that of chance"


def test_numbers_of_different_stimuli_stand_apart_and_those_without_an_error_claim_nothing(tmp_path):
    rng = np.random.default_rng(0)
    sets = [assay.stimuli.Labelled(rng.random((60, 1, 6, 6)).astype("float32"), np.arange(60) % 3) for _ in range(2)]
    nets = [assay.Subject(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3)), n) for n in "ab"]
    measures = {"on train": assay.Margins(sets[0]), "on test": assay.Margins(sets[1], bootstrap=0)}
    comparison = Comparison.of_run(assay.evaluate(nets, measures, tmp_path))
    called = [quantity.called for quantity in comparison.quantities]
    assert called[:2] == ["accuracy (on train)", "median margin at the input, in units of the data's spread (on train)"]
    assert {measure for measure, *_ in comparison.differences} == {"on train"}


def test_what_a_measure_says_with_other_settings_is_another_number(tmp_path):
    """Of the same stimuli: numbers that differ stand apart, and those that are equal are one."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
    gratings = assay.stimuli.Gratings(6, orientations=6, phases=20)
    of = {
        "one": {"near_max": 1}, "three": {"near_max": 3}, "three again": {"near_max": 3}, "all": {"top": 1.0},
        "first": {"layers": ["1"]},
    }  # fmt: skip
    measures = {name: assay.Invariance(gratings, bootstrap=0, **settings) for name, settings in of.items()}
    run = assay.evaluate(assay.Subject(net, "net"), measures, tmp_path)
    called = [q.called for q in Comparison.of_run(run).quantities if "phase" in q.name]
    assert called == [
        "invariance to phase, last layer (one)", "invariance to phase, last layer (three)",
        "invariance to phase, last layer, p = 1", "invariance to phase, last of the layers chosen",
    ]  # fmt: skip


def test_networks_without_an_interval_are_said_to_be_left_out():
    rng = np.random.default_rng(0)
    of = {name: clips(rng.normal(0, 9, 12)) for name in "ab"}
    of |= {"c": clips(np.array([3.0])), "d": clips(np.array([np.nan]))}  # of d there is nothing to compare
    quantity = Quantity("straightness", "change of curvature", of)
    said = sentences(Comparison((quantity,), tuple(of), {}, portraits(0.5, quantity.name)))
    assert said[-1] == "Without an interval, and so not compared: change of curvature (c)."
