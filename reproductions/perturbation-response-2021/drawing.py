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
KINDS = {  # of measures, by what their names have in them
    "the paper's": (r"\b(?:gi|pal) |mixup|DBI|(?:mean|random) accuracy", "tab:blue"),
    "straightness and invariance": (r"curvature|invariance", "tab:green"),
    "others": (r"", "tab:gray"),
}


def figures(out: Path) -> None:
    """Draw all figures."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    forest(out)
    augmented(out)
    two_networks(out)
    batches(out)


def dots(ax: Any, table: pd.DataFrame, **colors: Any) -> None:
    """Columns of measures, with intervals; dotted, what a measure that knows nothing stays below."""
    y = np.arange(len(table))
    for below, (column, color) in enumerate(colors.items()):
        spread = np.stack([table[column] - table[f"{column}_low"], table[f"{column}_high"] - table[column]])
        ax.errorbar(100 * table[column], y - 0.25 * below, xerr=100 * spread, fmt="none", ecolor="0.75", lw=1)
        ax.scatter(100 * table[column], y - 0.25 * below, c=color, s=16, zorder=3)
    ax.axvline(100 * table["cmi_chance"].iloc[0], color="0.4", lw=0.8, ls=":", label="95 % of random orders")
    ax.set_yticks(y, table["measure"], fontsize=7)
    ax.set_xlim(left=0)
    ax.spines[["top", "right"]].set_visible(False)


def forest(out: Path) -> None:
    """CMI of every measure on both corpora."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 10), layout="constrained")
    for ax, name in zip(axes, CORPORA, strict=True):
        table = read(out, f"{name}_ranking").dropna(subset=["cmi"]).sort_values("cmi")
        kind = [next(k for k, (words, _) in KINDS.items() if re.search(words, m)) for m in table["measure"]]
        dots(ax, table, cmi=[KINDS[k][1] for k in kind])
        ax.set(xlabel="conditional mutual information × 100, as PGDL counts", ylim=(-1, len(table)))
        ax.set_title(f"{TITLES[name]}: {int(table['n'].iloc[0])} networks")
    for k, (_, color) in KINDS.items():
        axes[1].scatter([], [], c=color, s=16, label=k)
    axes[1].legend(loc="lower right", frameon=False)
    save(figure, out, "table_1")


def augmented(out: Path) -> None:
    """CMI of the scores of curves under four perturbations, of networks with and without augmentation."""
    table = read(out, "invariance_ranking").dropna(subset=["cmi"])
    figure, axes = plt.subplots(2, 4, figsize=(13, 4), layout="constrained", sharex=True, sharey=True)
    for row, name in zip(axes, AUGMENTED, strict=True):
        for ax, kind in zip(row, PERTURBATIONS, strict=True):
            cell = table[(table["corpus"] == name) & (table["perturbation"] == kind)].set_index("measure")
            cell = cell.loc[[score for score in SCORES if score in cell.index]].reset_index()
            if len(cell):
                dots(ax, cell, cmi="tab:blue", cmi_distinct="tab:orange")
                ax.set_title(f"{TITLES[name]}, {kind}: {int(cell['n'].iloc[0])} networks", fontsize=8)
    legend = "blue: as PGDL counts, dotted: 95 % of random orders are below; orange: without self-pairs"
    figure.supxlabel(f"CMI × 100; {legend}", fontsize=9)
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
