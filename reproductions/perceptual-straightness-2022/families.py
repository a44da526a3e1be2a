"""Write the tables and figures of the run of families.yaml: curvature at the output, and along biological models.

PYTHONPATH=../human-model-similarity-2018 assay run families.yaml
python families.py

Where `prednets.py` has been run, its networks are compared too, trained with untrained, level by level.

Networks that resize the frames are compared with the pixels as they are shown them, too: a small picture is straighter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml

import assay
from assay import Straightness, Subject
from assay.networks import RetinaV1, VOne
from assay.report.document import DotChart, Mark, Series
from assay.report.plots import plotted
from assay.stimuli.sequences import Sequences, load_sequences
from assay.stimuli.transforms import Grey, Resize, transform_named
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
    for name in dict.fromkeys(table["subject"]):
        of_model = table[table["subject"] == name]
        for layer in dict.fromkeys(of_model["layer"]):
            at = family_means(of_model, {name: name}, layer).iloc[0]
            change = family_means(of_model, {name: name}, layer, "change_deg").iloc[0]
            numbers = {"curvature_deg": at["mean"], "low": at["low"], "high": at["high"]}
            numbers |= {"change_deg": change["mean"], "change_low": change["low"], "change_high": change["high"]}
            rows.append({"model": name, "stage": layer} | numbers)
    return pd.DataFrame(rows)


def as_published(folder: Path) -> pd.DataFrame:
    """Biological models as they were published: frames of 256 pixels for the retina, frequencies up to 6 for VOne."""
    models = {
        "retina and V1, frames of 256 px": (RetinaV1(256), load_sequences(folder, 256, "grey")),
        "VOne, sf_max=6": (VOne(sf_max=6), load_sequences(folder, 224, "rgb")),
    }
    return pd.concat(
        [Straightness(clips)(Subject(model, name)).assign(subject=name) for name, (model, clips) in models.items()],
        ignore_index=True,
    )


def from_own_pixels(natural: pd.DataFrame, plan: dict[str, Any], folder: Path) -> pd.DataFrame:
    """How far each network's last layer is from the frames in the size and colour in which it is shown them."""
    clips = load_sequences(folder, plan["measures"][0]["sequences"]["size"], "rgb")
    known: dict[str, pd.Series] = {}
    rows = []
    for subject in plan["subjects"]:
        steps = transform_named(subject.get("preprocess", "none"))
        kept = [step for step in getattr(steps, "steps", (steps,)) if isinstance(step, (Grey, Resize))]
        if str(kept) not in known:
            seen = {clip.name: _seen(clip, kept) for clip in clips}
            shown = Straightness(Sequences.of(**seen))(Subject(torch.nn.Identity(), "pixels"))
            known[str(kept)] = shown[shown["layer"] == "pixels"].set_index("sequence")["curvature_deg"]
        own = known[str(kept)]
        of_network = natural[natural["subject"] == subject["name"]]
        last = of_network[of_network["layer"] == of_network["layer"].iloc[-1]]
        last = last.assign(from_own_deg=last["curvature_deg"] - last["sequence"].map(own))
        change = family_means(last, {subject["name"]: subject["name"]}, value="from_own_deg").iloc[0]
        rows.append({"own_pixels": own.mean()} | {f"from_own_{key}": change[key] for key in ("mean", "low", "high")})
    return pd.DataFrame(rows)


def _seen(clip: Any, steps: list[Any]) -> np.ndarray[Any, Any]:
    """The frames of a clip after the steps of a preprocessing that change their size or colour."""
    frames = torch.from_numpy(np.stack(list(clip.frames())))
    for step in steps:
        frames = step(frames)
    return frames.clamp(0, 1).numpy()


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
    plan = yaml.safe_load((HERE / "families.yaml").read_text())
    folder = HERE / plan["measures"][0]["sequences"]["folder"]
    own = from_own_pixels(natural, plan, folder)
    biological = pd.concat([natural[natural["subject"].isin(BIOLOGICAL)], as_published(folder)], ignore_index=True)
    tables = {
        "fig2_families": pd.concat([means.drop(columns=["sd_networks", "networks"]), changes, own, *fades], axis=1),
        "fig2_pairs": pd.concat(pairs, ignore_index=True).drop(columns="p_holm"),
        "fig5_biological": by_stage(biological),
    }
    if (HERE / "runs/prednets").is_dir():
        tables |= predictive(HERE / "runs/prednets")
    for name, rows in tables.items():
        rows.to_csv(HERE / "tables" / f"{name}.csv", index=False, float_format="%.6g")
    heading = "Curvature at the last layer (bars: 95 % intervals over 11 sequences; dashed: pixels, 224 px)"
    plotted(chart(means, "network", "sequences", pixels, heading)).save(HERE / "figures/fig2.png")


if __name__ == "__main__":
    main()
