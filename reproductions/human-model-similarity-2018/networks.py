"""Write the tables of the run of networks.yaml: every layer, and what stands out of each network.

assay run networks.yaml
python networks.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import assay

HERE = Path(__file__).parent
MEASURE = "human-similarity"


def by_layer(run: assay.Run) -> pd.DataFrame:
    """All rows of all networks, without pictures; those that are the same for all networks once."""
    table = run.table(MEASURE).drop(columns=["rdm", "thumbnails", "n", "people"])
    of_networks = table["kind"].isin(["layer", "all"])
    shared = table[table["kind"].isin(["baseline", "ceiling"]) & (table["subject"] == table["subject"].iloc[0])]
    return pd.concat([table[of_networks], shared.assign(subject="")], ignore_index=True).round(5)


def brief(table: pd.DataFrame) -> pd.DataFrame:
    """One row per network: all layers, the last and the highest; then baselines and the ceiling."""
    rows = []
    for network, own in table[table["subject"] != ""].groupby("subject", sort=False):
        layers = own[own["kind"] == "layer"]
        together = own[own["kind"] == "all"].iloc[0]
        last, best = layers.iloc[-1], layers.loc[layers["hms"].idxmax()]
        rows.append(
            {
                "": network,
                "all layers: hms": _interval(together, "hms", "low", "high"),
                "last layer: hms": _interval(last, "hms", "low", "high"),
                "highest layer: hms": f"{_interval(best, 'hms', 'low', 'high')} at {best['layer']}",
                "layers": str(len(layers)),
                "all layers: subject_mean": _interval(together, "subject_mean", "subject_low", "subject_high"),
            }
        )
    for row in table[table["subject"] == ""].to_dict("records"):
        single = _interval(row, "subject_mean", "subject_low", "subject_high")
        mean = "" if row["kind"] == "ceiling" else _interval(row, "hms", "low", "high")
        rows.append({"": f"{row['kind']}: {row['layer']}", "all layers: hms": mean, "all layers: subject_mean": single})
    return pd.DataFrame(rows).fillna("")


def markdown(table: pd.DataFrame) -> str:
    """A table as Markdown."""
    lines = [f"| {' | '.join(table.columns)} |", "|---" * len(table.columns) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in table.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def _interval(row: object, value: str, low: str, high: str) -> str:
    numbers = (row[column] for column in (value, low, high))  # type: ignore[index]
    return "{:.3f} ({:.3f} to {:.3f})".format(*numbers).replace("-", "−")


if __name__ == "__main__":
    run = assay.Run(HERE / "runs" / "networks")
    layers = by_layer(run)
    for folder in ("tables", "figures"):
        (HERE / folder).mkdir(exist_ok=True)
    run.plot(MEASURE).save(HERE / "figures" / "networks.png")
    layers.to_csv(HERE / "tables" / "networks.csv", index=False)
    (HERE / "tables" / "networks.md").write_text(markdown(brief(layers)), encoding="utf-8")
