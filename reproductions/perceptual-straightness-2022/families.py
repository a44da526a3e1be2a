"""Write the tables and figures of the run of families.yaml: curvature at the output, and along biological models.

PYTHONPATH=../human-model-similarity-2018 assay run families.yaml
python families.py

Where `prednets.py` has been run, its networks are compared too, trained with untrained, level by level.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import assay
from assay.report.document import DotChart, Mark, Series
from assay.report.plots import plotted
from assay.studies import compare_families, family_means

HERE = Path(__file__).parent
BIOLOGICAL = ("retina and V1", "periphery", "VOne", "VOne, fresh noise")
PAIRS = (
    ("ResNet-4b, FGSM", "ResNet-4b, standard"),
    ("ResNet-4b, PGD", "ResNet-4b, standard"),
    ("ResNet-20, CIFAR-10", "ResNet-20, untrained"),
    ("EfficientNet-Lite0, ImageNet", "EfficientNet-Lite0, untrained"),
    ("EfficientNet-Lite0, ImageNet", "EfficientNet-Lite0, pixels as they are"),
    ("VOne, fresh noise", "VOne"),
)


def output(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """The mean of each network at its last layer, with its interval over sequences."""
    names = dict.fromkeys(table["subject"])
    return family_means(table, {name: name for name in names}, value=value).rename(columns={"family": "network"})


def by_stage(table: pd.DataFrame) -> pd.DataFrame:
    """Curvature at every stage of the biological models, and its change from the pixels, over sequences."""
    rows = []
    for name in BIOLOGICAL:
        of_model = table[table["subject"] == name]
        for layer in dict.fromkeys(of_model["layer"]):
            at = family_means(of_model, {name: name}, layer).iloc[0]
            change = family_means(of_model, {name: name}, layer, "change_deg").iloc[0]
            numbers = {"curvature_deg": at["mean"], "low": at["low"], "high": at["high"]}
            numbers |= {"change_deg": change["mean"], "change_low": change["low"], "change_high": change["high"]}
            rows.append({"model": name, "stage": layer} | numbers)
    return pd.DataFrame(rows)


def predictive(folder: Path) -> dict[str, pd.DataFrame]:
    """Curvature at every level of the PredNets, trained, untrained and the difference, over sequences and networks."""
    table = pd.concat([pd.read_csv(file) for file in sorted(folder.glob("*.csv"))], ignore_index=True)
    table["subject"] = table["network"] + " " + table["state"]
    states = dict(zip(table["subject"], table["state"], strict=True))
    rows = []
    for (condition, layer), of_layer in table[table["layer"] != "pixels"].groupby(["condition", "layer"], sort=False):
        means = family_means(of_layer, states, layer).set_index("family")
        pair = compare_families(of_layer, states, layer).iloc[0]
        sign = 1 if pair["first"] == "trained" else -1
        low, high = sorted((sign * pair["low"], sign * pair["high"]))
        numbers = {f"{state}_{key}": row[key] for state, row in means.iterrows() for key in ("mean", "low", "high")}
        numbers |= {"difference": sign * pair["difference"], "difference_low": low, "difference_high": high}
        rows.append({"frames": condition, "layer": layer} | numbers | {"networks": means["networks"].iloc[0]})
    return {"prednets": pd.DataFrame(rows)}


def chart(means: pd.DataFrame, names: str, count: str, pixels: float, heading: str) -> DotChart:
    """Curvature at the last layer, one mark per row of a table, beside that of the pixels.

    Args:
        means: One row per mark, with ``mean``, ``low`` and ``high``.
        names: Column with the names of the marks.
        count: Column with what each is a mean of, such as ``sequences``.
        pixels: Curvature of the frames themselves.
        heading: What the bars and the line are.
    """
    marks = tuple(
        Mark(number, 0, row["mean"], (row["low"], row["high"]), f"{row[count]} {count}")
        for number, row in enumerate(means.to_dict("records"))
    )
    return DotChart(
        heading,
        "curvature, degrees",
        tuple(means[names]),
        (Series("networks", 0),),
        marks,
        f"{heading}: {len(means)} marks",
        reference=pixels,
        rows=True,
        spread=False,
    )


def main() -> None:
    """Write every table and figure."""
    table = assay.Run(HERE / "runs/families").table("straightness")
    natural = table[table["condition"] == "natural"]
    means = output(natural, "curvature_deg")
    changes = output(natural, "change_deg")[["mean", "low", "high"]].add_prefix("change_")
    pixels = float(natural.loc[natural["layer"] == "pixels", "curvature_deg"].mean())
    fades = [
        output(table[table["condition"] == kind], "curvature_deg")["mean"].rename(kind)
        for kind in ("pixel_fade", "contrast_fade")
    ]
    pairs = [compare_families(natural, {a: a, b: b}) for a, b in PAIRS]
    tables = {
        "fig2_families": pd.concat([means.drop(columns=["sd_networks", "networks"]), changes, *fades], axis=1),
        "fig2_pairs": pd.concat(pairs, ignore_index=True).drop(columns="p_holm"),
        "fig5_biological": by_stage(natural),
    }
    if (HERE / "runs/prednets").is_dir():
        tables |= predictive(HERE / "runs/prednets")
    for name, rows in tables.items():
        rows.to_csv(HERE / "tables" / f"{name}.csv", index=False, float_format="%.6g")
    heading = "Curvature at the last layer (bars: 95 % intervals over 11 sequences; dashed: pixels, 224 px)"
    plotted(chart(means, "network", "sequences", pixels, heading)).save(HERE / "figures/fig2.png")


if __name__ == "__main__":
    main()
