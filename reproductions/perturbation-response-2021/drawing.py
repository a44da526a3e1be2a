"""The part ``figures``: drawn from the tables alone, on any machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from common import AUGMENTED, BATCH, CORPORA, PERTURBATIONS, SCORES, read

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullLocator

TITLES = {
    "fashion": "Fashion-MNIST, VGG",
    "cifar10": "CIFAR-10, fully convolutional",
    "invariance-vgg": "VGG",
    "invariance-resnet": "ResNet",
}
CHANCE = "95 % of the best of all by chance are below"
KINDS = {  # of rows, by what their names have in them
    "controls": (r"^control: ", "black"),
    "the paper's": (r"\b(?:gi|pal) |mixup|DBI|davies-bouldin|(?:mean|random|end) accuracy", "tab:blue"),
    "straightness and invariance": (r"curvature|invariance", "tab:green"),
    "other measures": (r"", "tab:gray"),
}


def figures(out: Path) -> None:
    """Draw all figures."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    forest(out)
    augmented(out)
    two_networks(out)
    batches(out)


def dots(ax: Any, table: pd.DataFrame, colors: list[str]) -> None:
    """CMI of distinct networks with its interval, and the chance of the best of all measures; controls are diamonds."""
    y = np.arange(len(table))
    value, color = 100 * table["cmi_distinct"], np.array(colors)
    spread = 100 * np.stack([value / 100 - table["cmi_distinct_low"], table["cmi_distinct_high"] - value / 100])
    ax.errorbar(value, y, xerr=spread, fmt="none", ecolor="0.75", lw=1)
    for marker, of in (("o", table["kind"] == "measure"), ("D", table["kind"] == "control")):
        ax.scatter(value[of], y[of], c=color[of], s=16, marker=marker, zorder=3)
    ax.axvline(100 * table["chance"].iloc[0], color="0.3", lw=0.9, ls="--")
    ax.set_yticks(y, table["measure"], fontsize=7)
    ax.set_ylim(-1, len(table))
    ax.spines[["top", "right"]].set_visible(False)


def forest(out: Path) -> None:
    """CMI of every measure and control on both corpora."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 11), layout="constrained")
    for ax, name in zip(axes, CORPORA, strict=True):
        table = read(out, f"{name}_ranking").dropna(subset=["cmi_distinct"]).iloc[::-1].reset_index(drop=True)
        kinds = [next(k for k, (words, _) in KINDS.items() if re.search(words, m)) for m in table["measure"]]
        dots(ax, table, [KINDS[k][1] for k in kinds])
        ax.set(xlabel="CMI × 100 over pairs of distinct networks, 95 % intervals", xlim=(0, None))
        ax.set_title(f"{TITLES[name]}: {int(table['n'].iloc[0])} networks")
    for k, (_, color) in KINDS.items():
        axes[1].scatter([], [], c=color, s=16, marker="D" if k == "controls" else "o", label=k)
    axes[1].plot([], [], color="0.3", lw=0.9, ls="--", label=CHANCE)
    axes[1].legend(loc="lower right", frameon=False)
    save(figure, out, "table_1")


def augmented(out: Path) -> None:
    """CMI of the scores of curves, and of the controls, under four perturbations."""
    table = read(out, "invariance_ranking").dropna(subset=["cmi_distinct"])
    shown = {"control: training accuracy": "black", "control: augmentation level": "black"}
    shown |= dict.fromkeys(SCORES, "tab:blue")
    figure, axes = plt.subplots(2, 4, figsize=(13, 4.6), layout="constrained", sharex=True, sharey=True)
    for row, name in zip(axes, AUGMENTED, strict=True):
        for ax, kind in zip(row, PERTURBATIONS, strict=True):
            cell = table[(table["corpus"] == name) & (table["perturbation"] == kind)].set_index("measure")
            if len(cell):
                cell = cell.reindex([*shown]).reset_index()
                cell["kind"] = cell["kind"].fillna("control")  # a control that does not vary has no row
                cell["chance"] = cell["chance"].max()
                dots(ax, cell, list(shown.values()))
                ax.scatter(100 * cell["cmi"], np.arange(len(cell)), facecolors="none", edgecolors="tab:orange", s=30)
                ax.set_title(f"{TITLES[name]}, {kind}: {int(cell['n'].max())} networks", fontsize=8)
    axes[0, 0].set_xlim(0, 100 * table["cmi_distinct_high"].max())  # shared by all
    legend = f"filled: over pairs of distinct networks; rings: as PGDL counts; dashed: {CHANCE}"
    figure.supxlabel(f"CMI × 100. Black: controls; {legend}", fontsize=9)
    save(figure, out, "table_3")


def two_networks(out: Path) -> None:
    """Curves of the two networks of equal mixup whose Gi differ most."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, pair in zip(axes, read(out, "equal_mixup").query("also == 'mixup'").to_dict("records"), strict=True):
        name = pair["corpus"]
        networks, curves = read(out, f"{name}_networks").set_index("network"), read(out, f"{name}_curves")
        for network in (pair["one"], pair["other"]):
            curve = curves.query("network == @network and perturbation == 'intra' and layer == 0")
            gap, gi, mixup = networks.loc[network, ["gap", "gi intra ℓ=0", "mixup"]]
            ax.plot(curve["magnitude"], curve["value"], label=f"gap {gap:.3f}, Gi {gi:.3f}, mixup {mixup:.3f}")
        ax.set(xlabel="α", ylabel="accuracy", title=TITLES[name])
        ax.legend(fontsize=7, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, out, "figure_2")


def batches(out: Path) -> None:
    """Seconds of a curve and CMI against the number of batches, mean and standard deviation over runs."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex=True, sharey="row")
    counts: set[int] = set()
    for (above, below), name in zip(axes.T, CORPORA, strict=True):
        for ax, table, column, factor in ((above, "batch_seconds", "seconds", 1), (below, "batches", "cmi", 100)):
            for beside, (kind, rows) in enumerate(read(out, f"{name}_{table}").groupby("perturbation", sort=False)):
                by = factor * rows.groupby("batches")[column].agg(["mean", "std"])
                x = by.index * 1.04**beside  # not on top of each other
                ax.errorbar(x, by["mean"], yerr=by["std"], marker="o", ms=4, capsize=2, label=kind)
            ax.spines[["top", "right"]].set_visible(False)
        above.set(title=TITLES[name], yscale="log")
        above.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        above.yaxis.set_major_formatter("{x:g}")
        above.yaxis.set_minor_locator(NullLocator())
        above.legend(fontsize=8, frameon=False)
        below.set(xscale="log", xlabel=f"batches of {BATCH}")
        counts |= set(by.index)
    axes[1, 0].set_xticks(sorted(counts), sorted(counts))  # of both corpora, which share the axis
    axes[1, 0].minorticks_off()
    axes[0, 0].set_ylabel("seconds of a curve")
    axes[1, 0].set_ylabel("CMI of Gi × 100")
    save(figure, out, "figure_3")


def save(figure: Any, out: Path, name: str) -> None:
    """Write a figure and close it."""
    figure.savefig(out / "figures" / f"{name}.png", dpi=120, metadata={"Software": None})
    plt.close(figure)
