"""Two networks of a run, compared number by number."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import assay
from assay import AssayError
from assay.stimuli import Labelled

RANDOM = np.random.default_rng(0)
LABELS = np.arange(200) % 2
DATA = Labelled((RANDOM.normal(size=(200, 6)) + 2 * LABELS[:, None]).astype(np.float32), LABELS)


def network(weight: float) -> torch.nn.Module:
    """Classifies by the sum of the inputs, the better the more of them it looks at."""
    net = torch.nn.Sequential(torch.nn.Linear(6, 2))
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].weight[1, :] = torch.tensor([1.0, *[weight] * 5])
        net[0].bias.copy_(torch.tensor([0.0, -1.0 - 5 * weight]))
    return net


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    networks = {"wide": network(1.0), "<narrow>": network(0.0), "third": network(0.5)}
    return assay.evaluate(networks, assay.Margins(DATA), tmp_path_factory.mktemp("pair"))


def test_the_table_has_the_paired_difference_of_every_number(run):
    differences = run.compare("wide", "<narrow>")
    row = differences.table.set_index("quantity").loc["accuracy"]
    accuracies = run.table("margins").query("quantity == 'accuracy' and layer == ''").set_index("subject")["value"]
    assert row["a"] == accuracies["wide"] and row["b"] == accuracies["<narrow>"]
    assert row["difference"] == pytest.approx(row["a"] - row["b"]) and row["low"] < row["difference"] < row["high"]
    assert row["clear"] and row["paired"] and row["n"] == 200 and row["better"] == "higher"
    assert repr(differences).startswith("Differences('wide', '<narrow>', ")
    assert str(differences).splitlines() == list(differences.sentences)


def test_the_other_way_round_every_sign_is_changed(run):
    one, other = run.compare("wide", "third").table, run.compare("third", "wide").table
    for column, back in (("difference", "difference"), ("low", "high"), ("high_over_seeds", "low_over_seeds")):
        np.testing.assert_allclose(one[column], -other[back])
    assert one["clear"].tolist() == other["clear"].tolist()


def test_what_a_notebook_shows_is_escaped_and_has_no_numbers_that_are_not_known(run):
    shown = run.compare("wide", "<narrow>")._repr_html_()
    assert "&lt;narrow&gt;" in shown and "<narrow>" not in shown and "nan" not in shown


def test_networks_that_are_not_there_are_named(run):
    with pytest.raises(AssayError, match="a='wild' is no network or recipe of this run; did you mean 'wide'"):
        run.compare("wild", "third")
    with pytest.raises(AssayError, match="name the two networks or recipes to compare, of: wide, <narrow>, third"):
        run.compare()
    with pytest.raises(AssayError, match="stand for the same network"):
        run.compare("wide", "wide")


def test_the_two_networks_of_a_run_need_not_be_named(tmp_path):
    two = assay.evaluate({"a": network(1.0), "b": network(0.2)}, assay.Margins(DATA), tmp_path)
    assert (two.compare().a, two.compare().b) == ("a", "b")


def test_networks_of_one_recipe_are_compared_as_one(tmp_path):
    weights = {"wide": (0.9, 1.0, 0.8), "narrow": (0.0, 0.05, 0.1)}
    subjects = [
        assay.Subject(network(w), f"{recipe} {i}", recipe=recipe)
        for recipe in weights
        for i, w in enumerate(weights[recipe])
    ]
    run = assay.evaluate(subjects, assay.Margins(DATA), tmp_path)
    differences = run.compare()
    row = differences.table.set_index("quantity").loc["accuracy"]
    values = run.table("margins").query("quantity == 'accuracy' and layer == ''")["value"].to_numpy()
    assert (differences.a, differences.b) == ("wide", "narrow")
    assert row["a"] == pytest.approx(values[:3].mean()) and row["b"] == pytest.approx(values[3:].mean())
    assert row["clear"] and row["low_over_seeds"] < row["difference"] < row["high_over_seeds"]
    assert run.compare("wide 0", "narrow").a == "wide 0"
    with pytest.raises(AssayError, match="stand for the same network"):
        run.compare("wide 0", "wide")
