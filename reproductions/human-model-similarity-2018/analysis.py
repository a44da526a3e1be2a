"""Tables and figures of the population that `population.py` trained.

python analysis.py --runs runs/population --same runs/same --live runs/live --long runs/long --brain kriegeskorte92
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from population import SIDE, resized
from torch import nn

import assay
from assay import ObjectMatching, Subject
from assay.measures.similarity.measure import human_similarity
from assay.stats.paired import t_interval
from assay.stimuli.human import HumanStimuli, as_human_stimuli
from assay.stimuli.objects import novel_objects
from assay.studies import (
    Outcome,
    by_epoch,
    compare_signals,
    correlation_matrix,
    discard_below_population,
    discard_summary,
    metric_agreement,
    overview,
    saving_tradeoff,
    stable_epochs,
    stop_when_converged,
    stopping_summary,
    when_stable,
)

log = logging.getLogger("analysis")
METRICS = ["mse", "accuracy", "hms"]
FACTORS = [f"accuracy_{factor}" for factor in ("rotation", "light", "color", "mix")]
OUTCOMES = (Outcome("mse", "lower"), Outcome("accuracy", "higher"))
WINDOW, SD = 25, 0.01
SHUFFLES = 1000


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The trajectories of all networks, and one row for each network with its hyper-parameters and how it ended."""
    lines = [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    ends = [json.loads(file.read_text()) for file in sorted(folder.glob("*.done"))]
    networks = pd.DataFrame(ends).drop(columns="losses").rename(columns={"name": "network"})
    trajectories = pd.DataFrame(lines)
    return trajectories[trajectories["network"].isin(networks["network"])], networks


def at_the_end(trajectories: pd.DataFrame, networks: pd.DataFrame) -> pd.DataFrame:
    """One row per network: what was measured last, and the hyper-parameters. Diverged networks have no values."""
    last = trajectories.sort_values("epoch").groupby("network").tail(1).drop(columns=["epoch", "loss", "measure_s"])
    table = networks[["network", "status", "epochs", "sequences", "batch_size", "learning_rate", "filter_size", "loss"]]
    table = table.merge(last, on="network", how="left")
    table.loc[table["status"] == "diverged", [*METRICS, *FACTORS]] = np.nan
    return table


def shuffled(rdms: dict[str, np.ndarray[Any, Any]], people: HumanStimuli, table: pd.DataFrame) -> pd.DataFrame:
    """HMS and its correlation with the other metrics when the stimuli of the people's RDM are shuffled.

    What is left of a correlation then has nothing to do with what people see in the stimuli.
    """
    rng = np.random.default_rng(0)
    names = [name for name in table.dropna(subset=METRICS)["network"] if name in rdms]
    vectors = np.stack([rdms[name] for name in names])
    others = table.set_index("network").loc[names]
    square = assay.stimuli.RdmSet(people.mean[None]).matrices[0]
    upper = np.triu_indices(len(square), 1)
    rows = []
    for number in range(SHUFFLES):
        order = rng.permutation(len(square))
        hms = np.asarray(human_similarity(vectors, square[np.ix_(order, order)][upper][None]))
        ranks = [pd.Series(hms).corr(pd.Series(others[m].to_numpy()), method="spearman") for m in ("mse", "accuracy")]
        rows.append(
            {"shuffle": number, "hms": hms.mean(), "highest_hms": hms.max(), "mse": ranks[0], "accuracy": ranks[1]}
        )
    return pd.DataFrame(rows)


def against_shuffled(null: pd.DataFrame, final: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """What was found beside what shuffled people give, with the share of shuffles that give at least as much."""
    rho = {row["first"] if row["second"] == "hms" else row["second"]: row["rho"] for row in whole.to_dict("records")}
    found = {
        "hms": final["hms"].mean(),
        "highest_hms": final["hms"].max(),
        "mse": rho["mse"],
        "accuracy": rho["accuracy"],
    }
    names = {
        "hms": "mean hms",
        "highest_hms": "highest hms",
        "mse": "rho of mse and hms",
        "accuracy": "rho of accuracy and hms",
    }
    rows = []
    for column, value in found.items():
        shuffled_values = null[column].abs() if column in ("mse", "accuracy") else null[column]
        low, high = null[column].quantile([0.025, 0.975])
        p = (1 + (shuffled_values >= abs(value)).sum()) / (1 + len(null))
        rows.append({"quantity": names[column], "found": value, "shuffled_low": low, "shuffled_high": high, "p": p})
    return pd.DataFrame(rows)


def pixels(people: HumanStimuli) -> pd.DataFrame:
    """HMS and matching of the pictures themselves, as the networks were shown them."""
    shown = resized(people).images.array
    found = {"hms": float(human_similarity(assay.rdm(shown.reshape(len(shown), -1)), people))}
    matched = ObjectMatching(novel_objects(50, SIDE, changes=2), layer="0")(
        Subject(nn.Sequential(nn.Flatten()), "pixels")
    )
    for row in matched.to_dict("records"):
        found["accuracy" if row["factor"] == "all" else f"accuracy_{row['factor']}"] = row["accuracy"]
    return pd.DataFrame([{"group": "pixels", "metric": metric, "mean": value} for metric, value in found.items()])


def paired(first: pd.Series, second: pd.Series, name: str) -> dict[str, Any]:
    """The mean of a difference over networks, with its 95 % interval."""
    differences = (first - second).dropna().to_numpy()
    low, high = t_interval(differences)
    return {"metric": name, "difference": differences.mean(), "low": low, "high": high, "n": len(differences)}


def by_training(trajectories: pd.DataFrame, final: pd.DataFrame) -> pd.DataFrame:
    """How each metric of a network differs after training from before it."""
    before = trajectories[trajectories["epoch"] == 0].set_index("network")
    after = final.set_index("network")
    return pd.DataFrame([paired(after[metric], before[metric], metric) for metric in [*METRICS, *FACTORS]])


def live(folder: Path) -> pd.DataFrame:
    """What stopping saved and lost while it was done, beside the same networks trained by the same workers to the end.

    Seconds are those of the whole search, with all its measurements; there is one search of each kind, so they have no
    interval.
    """
    searches = {}
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        ends = pd.DataFrame([json.loads(path.read_text()) for path in place.glob("*.done")])
        searches[place.name] = ends.set_index("name").sort_index()
    full = searches["never"]
    rows = []
    for rule, ends in searches.items():
        saved = 1 - ends["epochs_run"] / full["epochs_run"]
        row = {
            "rule": rule,
            "networks": len(ends),
            "seconds": ends["at_s"].max(),
            "seconds_saved": 1 - ends["at_s"].max() / full["at_s"].max(),
            "epochs_saved": 1 - ends["epochs_run"].sum() / full["epochs_run"].sum(),
            "stopped": float((saved > 0).mean()),
        }
        for metric in METRICS:
            lost = paired(ends[metric], full[metric], metric)
            row |= {metric: ends[metric].mean()}
            row |= {f"{metric}_{key}": lost[key] for key in ("difference", "low", "high")} if rule != "never" else {}
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write every table and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--same", type=Path)
    parser.add_argument("--live", type=Path)
    parser.add_argument("--long", type=Path)
    parser.add_argument("--brain", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path())
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder, figures = given.out / "tables", given.out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    figures.mkdir(exist_ok=True)
    trajectories, networks = read(given.runs)
    people = as_human_stimuli(given.brain)
    final = at_the_end(trajectories, networks)
    tables = {"population": final, "trajectories": trajectories}

    untrained = trajectories[trajectories["epoch"] == 0].assign(group="untrained")
    shown = overview(final, [*METRICS, *FACTORS], by="hms", count=10)
    before = overview(untrained, [*METRICS, *FACTORS]).assign(group="untrained")
    copied = pd.DataFrame(
        [{"group": "copy the last frame", "metric": "mse", "mean": trajectories["copy_last_mse"].mean()}]
    )
    tables["table1"] = pd.concat([shown, before, pixels(people), copied], ignore_index=True)

    columns = [*METRICS, "learning_rate"]
    whole = metric_agreement(final, columns)
    tables["table2"] = whole
    tables["table2_given_learning_rate"] = metric_agreement(final, METRICS, given="learning_rate")
    hyper = ["learning_rate", "epochs", "sequences", "batch_size", "filter_size"]
    final["updates"] = final["epochs"] * (final["sequences"] // final["batch_size"])
    tables["table2_given_all"] = metric_agreement(final, METRICS, given=[*hyper, "updates"])
    tables["hyper_parameters"] = metric_agreement(final, [*METRICS, *hyper])
    log.info("%s", correlation_matrix(whole).round(3))

    rdms = {path.stem: np.load(path) for path in given.runs.glob("*.npy")}
    null = shuffled(rdms, people, final)
    tables["shuffled"] = (
        null.drop(columns="shuffle").quantile([0.025, 0.5, 0.975]).rename_axis("quantile").reset_index()
    )

    tables["against_shuffled"] = against_shuffled(null, final, whole)
    tables["by_training"] = by_training(trajectories, final)

    learning = trajectories[trajectories["epoch"] > 0]
    stable = stable_epochs(learning, ["hms", "accuracy", "mse", "loss"], WINDOW, SD)
    tables["fig4_stable"] = when_stable(stable)
    summaries, pairs, discards = [], [], []
    for outcome in OUTCOMES:
        for signal in ("hms", "accuracy", "loss"):
            stopped = stop_when_converged(learning, signal, outcome, WINDOW, SD)
            summaries.append(stopping_summary(stopped).assign(performance=outcome.performance))
        pairs.append(compare_signals(learning, "hms", "loss", outcome).assign(performance=outcome.performance))
        for signal, better in (("hms", "higher"), ("loss", "lower")):
            discarded = discard_below_population(learning, signal, outcome, epoch=30, better=better)  # type: ignore[arg-type]
            discards.append(discard_summary(discarded, outcome).assign(signal=signal, performance=outcome.performance))
    tables["fig6_stopping"] = pd.concat(summaries, ignore_index=True)
    tables["fig6_hms_or_loss"] = pd.concat(pairs, ignore_index=True)
    tables["fig6_discarding"] = pd.concat(discards, ignore_index=True)
    if given.live:
        tables["live"] = live(given.live)
    if given.long:
        tables["published_configuration"] = read(given.long)[0][["network", "epoch", "mse", "copy_last_mse", "hms"]]
    if given.same:
        alike, ended = read(given.same)
        last = at_the_end(alike, ended)
        beside = paired(last["mse"], last["copy_last_mse"], "mse, from copying the last frame")
        tables["same_configuration"] = pd.DataFrame(
            [beside | {"better": int((last["mse"] < last["copy_last_mse"]).sum())}]
        )
        tables["fig5_same_configuration"] = by_epoch(alike, METRICS)
        assay.plot_by_epoch(tables["fig5_same_configuration"]).save(figures / "fig5.png")

    assay.plot_agreement(whole, tables["table2_given_learning_rate"]).save(figures / "table2.png")
    assay.plot_stable(stable).save(figures / "fig4.png")
    tradeoffs = [saving_tradeoff(learning, signal, OUTCOMES[0]) for signal in ("hms", "loss")]
    assay.plot_tradeoff(*tradeoffs).save(figures / "fig6.png")
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
        log.info("\n%s\n%s", name, table.head(24).to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    main()
