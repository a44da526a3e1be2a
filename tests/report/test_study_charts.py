"""Charts of many networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from assay import AssayError
from assay.report.study_charts import (
    agreement_chart,
    by_epoch_charts,
    plot_agreement,
    plot_by_epoch,
    plot_stable,
    plot_tradeoff,
    stable_chart,
    tradeoff_chart,
)
from assay.studies import Outcome, by_epoch, metric_agreement, saving_tradeoff, stable_epochs


@pytest.fixture(scope="module")
def trajectories():
    rng = np.random.default_rng(0)
    epochs = np.arange(5, 105, 5)
    tables = []
    for i in range(12):
        left = np.exp(-epochs / rng.uniform(5, 30))
        hms, loss = 0.1 - 0.1 * left, left + rng.normal(0, 0.01, 20)
        tables.append(pd.DataFrame({"network": str(i), "epoch": epochs, "hms": hms, "loss": loss, "acc": 1 - left}))
    return pd.concat(tables)


def test_correlations_stand_beside_the_partial_ones():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 4)), columns=["mse", "accuracy", "hms", "rate"])
    whole = metric_agreement(table, ["mse", "accuracy", "hms"])
    partial = metric_agreement(table, ["mse", "accuracy", "hms"], given="rate")
    chart = agreement_chart(whole, partial)
    assert chart.groups[0] == "mse – accuracy" and [s.name for s in chart.series] == ["all networks", "given rate"]
    assert len(chart.marks) == 6 and chart.marks[0].value == whole["rho"][0]
    assert plot_agreement(whole, partial)._repr_png_()[0].startswith(b"\x89PNG")


def test_metrics_over_epochs_have_a_band(trajectories):
    table = by_epoch(trajectories, ["hms", "loss"])
    first, second = by_epoch_charts(table)
    assert first.y_label == "hms" and second.y_label == "loss"
    low, high = first.lines[0][1][0].band
    assert (low + high) / 2 == pytest.approx(table["mean"][0]) and (high - low) / 2 == pytest.approx(table["sd"][0])
    assert plot_by_epoch(table, band="interval")._repr_png_()[0].startswith(b"\x89PNG")


def test_the_share_of_stable_networks_rises(trajectories):
    stable = stable_epochs(trajectories, ["hms", "loss"])
    chart = stable_chart(stable)
    for name, points in chart.lines:
        shares = [point.y for point in points]
        assert shares == sorted(shares) and shares[0] == 0
        assert shares[-1] == stable[stable["metric"] == name]["stable_epoch"].notna().mean()
    assert plot_stable(stable)._repr_png_()[0].startswith(b"\x89PNG")


def test_signals_have_a_line_each(trajectories):
    tables = [saving_tradeoff(trajectories, signal, Outcome("acc"), count=4) for signal in ("hms", "loss")]
    chart = tradeoff_chart(*tables, performance="accuracy")
    assert [name for name, _ in chart.lines] == ["stopped by hms", "stopped by loss"]
    assert plot_tradeoff(*tables)._repr_png_()[0].startswith(b"\x89PNG")


def test_what_is_wrong_is_said(trajectories):
    with pytest.raises(AssayError, match="nothing to draw"):
        plot_agreement()
    with pytest.raises(AssayError, match="no column 'metric'"):
        plot_stable(trajectories)
    with pytest.raises(AssayError, match="band='se'"):
        plot_by_epoch(by_epoch(trajectories, ["hms"]), band="se")
