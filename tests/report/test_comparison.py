"""The first screen: what it marks as best, what it calls a difference, and how often that is wrong."""

from __future__ import annotations

import numpy as np

from assay.report.comparison import Comparison, Quantity, matrix, sentences
from assay.stats.evidence import Evidence


def clips(values: np.ndarray, quantity: str = "change of curvature", better: str = "lower") -> Evidence:
    items = {f"clip {i}": float(v) for i, v in enumerate(values)}
    return Evidence(quantity, float(np.mean(values)), "°", better, items, n=len(items))


def compared(**values: np.ndarray) -> Comparison:
    of = {name: clips(v) for name, v in values.items()}
    return Comparison((Quantity("straightness", "change of curvature", of),), tuple(of))


def test_a_sure_difference_is_said_with_its_interval_and_the_best_are_marked():
    base = np.linspace(-5, 5, 12)
    wobble = np.cos(np.arange(12))
    comparison = compared(robust=base - 20, standard=base + wobble, twin=base - wobble)
    said = sentences(comparison)
    assert len(said) == 1 and said[0].startswith(
        "Change of curvature: robust is lower than twin, which is better, by 20."
    )
    assert "paired, n = 12; −20.0° v" in said[0]
    row = matrix(comparison).rows[0]
    assert row[0] == "Change of curvature ↓" and [cell.best for cell in row[2]] == [True, False, False]
    assert comparison.level == 1 - 0.05 / 3


def test_what_is_not_sure_is_not_said():
    rng = np.random.default_rng(0)
    comparison = compared(a=rng.normal(0, 29, 12), b=rng.normal(-8, 29, 12))
    assert sentences(comparison) == ["No clear difference: change of curvature."]
    assert not any(cell.best for cell in matrix(comparison).rows[0][2])


def test_of_many_networks_the_spread_and_those_apart_are_shown():
    rng = np.random.default_rng(0)
    values = {f"network {i}": rng.normal(0, 1, 12) for i in range(99)} | {"strange": rng.normal(50, 1, 12)}
    shown = matrix(compared(**values))
    assert shown.columns[0] == "lowest" and shown.rows[0][2][-1].value.startswith("strange")


def test_equal_networks_are_called_different_in_at_most_one_report_of_twenty():
    """Reports on four networks and five numbers, all of one distribution: a false difference in 5 % at most."""
    rng = np.random.default_rng(7)
    reports, false = 400, 0
    for _ in range(reports):
        shared = rng.normal(size=(5, 10))
        quantities = tuple(
            Quantity("m", f"q{k}", {f"n{i}": clips(shared[k] + rng.normal(size=10), f"q{k}") for i in range(4)})
            for k in range(5)
        )
        comparison = Comparison(quantities, tuple(f"n{i}" for i in range(4)))
        false += any(apart.clear(comparison.level) for apart in comparison.differences.values())
    assert false / reports <= 0.05 + 2.33 * (0.05 * 0.95 / reports) ** 0.5  # p = 0.01 were it exactly 5 %


def test_a_number_that_two_measures_tell_is_shown_once(tmp_path):
    import torch

    import assay

    data = assay.stimuli.Labelled(np.random.default_rng(0).random((30, 1, 6, 6)).astype("float32"), np.arange(30) % 3)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3))
    measures = [assay.Margins(data), assay.AugmentationRobustness(data, ("flip",))]
    run = assay.evaluate(assay.Subject(net, "net"), measures, tmp_path)
    names = [q.name for q in Comparison.of_run(run).quantities]
    assert names.count("accuracy") == 1 and "drop of accuracy under augmentation" in names
