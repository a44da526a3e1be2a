"""Tables and figures of the ResNets that `networks.py` trained.

python adversarial.py --runs runs/networks --out .
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
from families import chart
from scipy import stats

from assay.report.document import LineChart, Point
from assay.report.plots import plotted
from assay.studies import compare_families, family_means

log = logging.getLogger("adversarial")
LAYERS = ("pixels", "conv1", "layer1", "layer2", "layer3", "avgpool", "fc")
UNTRAINED = "untrained"


def family(record: dict[str, Any]) -> str:
    """The name of how a network was trained."""
    if record["norm"] == "none":
        return "standard"
    radius = record["epsilon"]
    return f"L2 {radius:g}" if record["norm"] == "l2" else f"L∞ {radius * 255:g}/255"


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """One row for each network; for each network, epoch, size, kind of frames, layer and sequence; and each attack."""
    networks, curvature, attacks = [], [], []
    for file in sorted(folder.glob("*.done")):
        record = json.loads(file.read_text())
        name, kind = record["network"], family(record)
        lines = [json.loads(line) for line in file.with_suffix(".jsonl").read_text().splitlines()]
        last = max(line["epoch"] for line in lines)
        for line in lines:
            rows = pd.DataFrame(line["curvature"]).assign(subject=name, family=kind, epoch=line["epoch"])
            curvature.append(rows.assign(accuracy=line["accuracy"], last=line["epoch"] == last))
        networks.append(
            {key: record[key] for key in ("network", "norm", "epsilon", "seed", "status")}
            | {"family": kind, "accuracy": lines[-1]["accuracy"], "train_accuracy": record["train_accuracy"]}
        )
        attacks += [{"network": name, "family": kind, **row} for row in record["robust"]]
    order = {kind: number for number, kind in enumerate(dict.fromkeys(family(r) for r in _ordered(folder)))}
    table = pd.DataFrame(networks).sort_values(
        ["family", "seed"], key=lambda c: c.map(order) if c.name == "family" else c
    )
    return table.reset_index(drop=True), pd.concat(curvature, ignore_index=True), pd.DataFrame(attacks)


def _ordered(folder: Path) -> list[dict[str, Any]]:
    """The networks: standard, then L2, then L∞, by radius."""
    records = [json.loads(file.read_text()) for file in folder.glob("*.done")]
    return sorted(records, key=lambda r: (["none", "l2", "linf"].index(r["norm"]), r["epsilon"]))


def families_of(table: pd.DataFrame) -> dict[str, str]:
    """The family of each network, in the order of the table."""
    return dict(zip(table["network"], table["family"], strict=True))


def with_untrained(curvature: pd.DataFrame, networks: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """The networks at their end, and beside them those of the standard recipe as they were before training."""
    standard = networks.loc[networks["family"] == "standard", "network"]
    before = curvature[(curvature["epoch"] == 0) & curvature["subject"].isin(standard)]
    before = before.assign(subject=before["subject"] + " before")
    table = pd.concat([curvature[curvature["last"]], before], ignore_index=True)
    return table, {f"{name} before": UNTRAINED for name in standard} | families_of(networks)


def with_change(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one size and kind of frames, with the change from the pixels of the same frames."""
    pixels = rows[rows["layer"] == "pixels"].set_index(["subject", "sequence"])["curvature_deg"]
    of_rows = pixels.loc[list(zip(rows["subject"], rows["sequence"], strict=True))]
    return rows.assign(change_deg=rows["curvature_deg"].to_numpy() - of_rows.to_numpy())


def accuracy_at_equal_radius(curvature: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation of test accuracy and curvature over networks and epochs of one family.

    Families differ in accuracy too. Within a family accuracy rises while a network learns, at one and the same ε.
    """
    rows = []
    outputs = curvature[(curvature["size"] == 32) & (curvature["frames"] == "natural") & (curvature["layer"] == "fc")]
    for kind, of_kind in outputs[outputs["epoch"] > 0].groupby("family", sort=False):
        points = of_kind.groupby(["subject", "epoch"])[["accuracy", "curvature_deg"]].mean()
        by_network = [
            stats.spearmanr(one["accuracy"], one["curvature_deg"]).statistic for _, one in points.groupby("subject")
        ]
        least, most = points["accuracy"].min(), points["accuracy"].max()
        rows.append(
            {"family": kind, "networks": len(by_network), "epochs": len(points) // len(by_network)}
            | {"lowest_accuracy": least, "highest_accuracy": most}
            | {
                "mean_rho": sum(by_network) / len(by_network),
                "lowest_rho": min(by_network),
                "highest_rho": max(by_network),
            }
        )
    return pd.DataFrame(rows)


def by_layer_chart(means: pd.DataFrame) -> LineChart:
    """Curvature across stages, one line per family."""
    lines = []
    for kind, rows in means.groupby("family", sort=False):
        points = tuple(
            Point(float(LAYERS.index(row["layer"])), row["mean"], None, row["layer"], "")
            for row in rows.to_dict("records")
        )
        lines.append((str(kind), points))
    return LineChart(
        "Curvature across layers, means over sequences and networks",
        "pixels (0), conv1, stages 1 to 3, mean over the picture, output (6)",
        "curvature, degrees",
        tuple(lines),
        x_range=(0.0, len(LAYERS) - 1.0),
    )


def by_epoch(curvature: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and curvature at the output after every epoch that was measured, means over networks."""
    outputs = curvature[(curvature["size"] == 32) & (curvature["frames"] == "natural") & (curvature["layer"] == "fc")]
    return outputs.groupby(["family", "epoch"], sort=False)[["accuracy", "curvature_deg"]].mean().reset_index()


def accuracy_chart(means: pd.DataFrame) -> LineChart:
    """Curvature at the output against accuracy while networks learn: one line per family, a point per epoch."""
    lines = [
        (
            str(kind),
            tuple(
                Point(row["accuracy"], row["curvature_deg"], None, f"epoch {row['epoch']}", "")
                for row in rows.sort_values("epoch").to_dict("records")
            ),
        )
        for kind, rows in means.groupby("family", sort=False)
    ]
    return LineChart(
        "Curvature at the output and accuracy while networks learn, means over networks after 0 to 15 epochs",
        "accuracy on the test pictures",
        "curvature, degrees",
        tuple(lines),
    )


def main() -> None:
    """Write every table and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path())
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder, figures = given.out / "tables", given.out / "figures"
    networks, curvature, attacks = read(given.runs)
    ended, families = with_untrained(curvature, networks)
    natural = ended[ended["frames"] == "natural"]
    tables: dict[str, pd.DataFrame] = {"adversarial_networks": networks}
    robust = attacks.groupby(["family", "norm", "epsilon"], sort=False)["accuracy"].agg(["mean", "std", "count"])
    tables["adversarial_robust_accuracy"] = robust.reset_index()

    sizes, layers, controls = [], [], []
    for size, rows in natural.groupby("size"):
        changes = family_means(with_change(rows), families, "fc", "change_deg")[["mean", "low", "high"]]
        sizes.append(
            pd.concat([family_means(rows, families, "fc"), changes.add_prefix("change_")], axis=1).assign(size=size)
        )
        pixels = rows[rows["layer"] == "pixels"].groupby("sequence")["curvature_deg"].mean().mean()
        sizes.append(pd.DataFrame([{"family": "pixels", "mean": pixels, "size": size}]))
    small = natural[natural["size"] == 32]
    for layer in LAYERS:
        layers.append(family_means(small, families, layer).assign(layer=layer))
    for control in ("pixel_fade", "contrast_fade"):
        controls.append(family_means(ended[ended["frames"] == control], families, "fc").assign(frames=control))
    tables["fig3_output"] = pd.concat(sizes, ignore_index=True)
    tables["fig3_pairs"] = compare_families(small, families, "fc")
    for size in (64, 128, 224):
        tables[f"fig3_pairs_{size}"] = compare_families(natural[natural["size"] == size], families, "fc")
    tables["fig4_layers"] = pd.concat(layers, ignore_index=True)
    pairs = [compare_families(small, families, layer).assign(layer=layer) for layer in LAYERS[1:]]
    of_standard = pd.concat(pairs, ignore_index=True)
    tables["fig4_pairs"] = of_standard[(of_standard[["first", "second"]] == "standard").any(axis=1)].drop(
        columns="p_holm"
    )
    tables["controls"] = pd.concat(controls, ignore_index=True)
    tables["fig7_accuracy_at_equal_radius"] = accuracy_at_equal_radius(curvature)
    tables["fig7_epochs"] = by_epoch(curvature)
    output = small[small["layer"] == "fc"].groupby("subject")["curvature_deg"].mean()
    tables["fig7_networks"] = networks.assign(curvature_deg=networks["network"].map(output))

    for size in (32, 224):
        at_size = tables["fig3_output"][tables["fig3_output"]["size"] == size]
        pixels = float(at_size.loc[at_size["family"] == "pixels", "mean"].iloc[0])
        of_networks = at_size[at_size["family"] != "pixels"]
        heading = (
            f"Curvature at the output, {size} px (bars: 95 % intervals over sequences and networks; dashed: pixels)"
        )
        plotted(chart(of_networks, "family", "networks", pixels, heading)).save(figures / f"fig3_{size}.png")
    plotted(by_layer_chart(tables["fig4_layers"])).save(figures / "fig4.png")
    plotted(accuracy_chart(tables["fig7_epochs"])).save(figures / "fig7.png")
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
        log.info("\n%s\n%s", name, table.head(40).to_string(index=False, float_format="%.2f"))


if __name__ == "__main__":
    main()
