"""The findings of a study in sentences: each follows from a test that holds for all measures at once."""

from __future__ import annotations

from typing import Any

import pandas as pd

from assay.core.names import counted
from assay.report.document import Findings
from assay.studies.controls import CONTROL
from assay.studies.ranking import AGAINST, JUDGED_BY, UNDECLARED
from assay.studies.statistics.chance import LEVEL

Item = tuple[str, str, str]
_BEST, _CHANCE, _BETTER = (
    "Which measure predicts the gap best?",
    "Is that more than chance?",
    "Is it better than the others?",
)
_SHOWN = 5  # names in a sentence
_NONE_SCORED = "no measure is there, and finite, in all networks"


def study_findings(
    ranking: pd.DataFrame, comparisons: pd.DataFrame, about: dict[str, Any], combined: pd.DataFrame | None = None
) -> Findings:
    """What a study found, as questions and answers.

    Args:
        ranking: What `assay.studies.rank` returned.
        comparisons: The best measure compared with each other (`assay.studies.compare_measures`); may be empty.
        about: What `assay.studies.judge` says of the corpus.
        combined: What all measures together explain (`assay.studies.combined_prediction`); may be missing.
    """
    controls = ranking[ranking["kind"] == "control"] if "kind" in ranking else ranking[:0]
    ranking = ranking.drop(index=controls.index).reset_index(drop=True)
    if JUDGED_BY not in ranking or not ranking[JUDGED_BY].notna().any():
        column = ranking.get(f"{JUDGED_BY}_status", pd.Series([_NONE_SCORED])).fillna(_NONE_SCORED)
        items: list[Item] = [("open", _BEST, f"Not to be said: {column.iloc[0]}.")]
    else:
        items = [*_best(ranking, about, controls), _better(ranking, comparisons), *_directions(ranking)]
        items += [*_controls(ranking, controls, comparisons, about), *_together(combined)]
    unscored = ranking[ranking[JUDGED_BY].isna()] if JUDGED_BY in ranking else ranking[:0]
    if len(unscored):
        names = ", ".join(f"{r.measure} ({r.status})" for r in unscored.itertuples())
        items.append(("bad", "What could not be scored?", names))
    if about["left_out"]:
        left_out = f"{len(about['left_out'])} did not reach the training criterion: {', '.join(about['left_out'])}."
        items.append(("bad", "Which networks were left out?", left_out))
    if about["incomplete"]:
        items.append(("bad", "Is the grid complete?", f"{about['incomplete']}."))
    return Findings(tuple(items))


def is_good(row: Any) -> bool:
    """Whether a measure predicts the gap better than the best of all measures asked does by chance."""
    return bool(row.get("p_max", float("nan")) <= LEVEL)


def counts(ranking: pd.DataFrame) -> tuple[int, int, int]:
    """How many measures a ranking has, how many of these are scored, and how many controls it has."""
    measures = ranking[ranking["kind"] != "control"] if "kind" in ranking else ranking
    scored = int(measures[JUDGED_BY].notna().sum()) if JUDGED_BY in measures else 0
    return len(measures), scored, len(ranking) - len(measures)


def _best(ranking: pd.DataFrame, about: dict[str, Any], controls: pd.DataFrame) -> list[Item]:
    best, n = ranking.iloc[0], int(ranking["n"].iloc[0])
    low, high = best[f"{JUDGED_BY}_low"], best[f"{JUDGED_BY}_high"]
    spread = "" if pd.isna(low) else f" ({low:.3f} to {high:.3f})"
    by_chance = "p_max" in ranking and not is_good(best)
    answer = "None can be told from chance. The highest score has " * by_chance + (
        f"{best['measure']}: CMI {best[JUDGED_BY]:.3f}{spread} of distinct networks given {_given(about, 'any')}, "
        f"{best['cmi']:.3f} as PGDL scores it; Kendall's τ {best['tau']:.2f}; {n} networks."
    )
    if "p_max" not in ranking:
        unknown = "Not tested: study the corpus again, with permutations."
        return [("open", _BEST, answer), ("open", _CHANCE, unknown)]
    tested = ranking[ranking["p_max"].notna()]
    above = tested[tested["p_max"] <= LEVEL]
    together = measures_and_controls(len(tested), int(controls["p_max"].notna().sum()))
    beyond = f" more than {_given(about, 'some')}" * (max(about["sizes"]) > 0)
    luck = (
        f"{len(above)} of {_scored(ranking)} are: the best of {together} that say nothing{beyond} "
        f"would reach a CMI of {tested['chance'].iloc[0]:.3f} in 5 % of such corpora of {n} "
        f"networks ({about['permutations']} permutations). p of the best, for all of these at once: "
        f"{best['p_max']:.3f}."
    )
    return [
        ("good" if is_good(best) else "open", _BEST, answer),
        ("good" if len(above) else "open", _CHANCE, luck),
    ]


def _given(about: dict[str, Any], which: str) -> str:
    """The hyper-parameters that a score is given, in words: any two, some one, or none."""
    sizes = " or ".join(str(s) for s in about["sizes"])
    if not any(about["sizes"]):
        return "no hyper-parameter"
    return f"{which} {sizes} hyper-parameter{'s' * (tuple(about['sizes']) != (1,))}"


def _better(ranking: pd.DataFrame, comparisons: pd.DataFrame) -> Item:
    """How many measures a best one that is good is better than, by paired differences that hold for all pairs."""
    if not len(comparisons):
        return ("open", _BETTER, "Not compared.")
    if not is_good(ranking.iloc[0]):
        return ("open", _BETTER, f"Not asked: {_not_good(ranking)}, and by luck alone some measure is above others.")
    worse = comparisons[(comparisons["difference"] > 0) & (comparisons["p_max"] <= LEVEL)]
    controls = int(comparisons["other"].str.startswith(CONTROL).sum())
    measures = len(comparisons) - controls
    constant = int((ranking["status"] == "constant").sum())
    apart = f"; left out: {constant} that no network differs in" * (constant > 0)
    said = (
        f"{ranking['measure'].iloc[0]} is better than {len(worse)} of {len(comparisons)} others "
        f"({measures_and_controls(measures, controls)}{apart}): paired differences over the same resamples of "
        "networks, with p ≤ 0.05 for all pairs of them at once."
    )
    rest = comparisons[~comparisons.index.isin(worse.index)]
    if len(worse) and len(rest):
        said += f" Not told apart from it: {_listed(rest['other'].tolist())}."
    return ("good" if len(worse) else "open", _BETTER, said)


def _not_good(ranking: pd.DataFrame) -> str:
    """Why the best measure is not called good, as part of a sentence."""
    best = ranking["measure"].iloc[0]
    return f"{best} {'cannot be told from' if 'p_max' in ranking else 'was not tested against'} chance"


def _directions(ranking: pd.DataFrame) -> list[Item]:
    """Which of the measures that are better than chance point the other way than the literature expects."""
    if "direction" not in ranking or "p_max" not in ranking:
        return []
    good = ranking[ranking["p_max"] <= LEVEL]
    if not len(good) or (good["direction"] == UNDECLARED).all():
        return []
    against = good[good["direction"] == AGAINST]
    if not len(against):
        return [("open", "In the direction that is expected?", "None of them is clearly against it.")]
    named = [
        f"{r.measure} ({'falls' if r.expected == 'rises' else 'rises'} with the gap, expected: {r.expected})"
        for r in against.itertuples()
    ]
    return [("bad", "In the direction that is expected?", f"Against it: {_listed(named)}.")]


def _controls(
    ranking: pd.DataFrame, controls: pd.DataFrame, comparisons: pd.DataFrame, about: dict[str, Any]
) -> list[Item]:
    """Whether a control predicts the gap as well as the best measure, and what the best says at equal controls."""
    if not len(controls):
        return []
    best, control = ranking.iloc[0], controls.iloc[0]
    named = str(control["measure"]).removeprefix(CONTROL)
    said = f"The best control is {named}: CMI {control[JUDGED_BY]:.3f}, τ {control['tau']:.2f}."
    pair = comparisons[comparisons["other"] == control["measure"]]
    good = is_good(best)
    beaten = good and len(pair) and pair["difference"].iloc[0] > 0 and pair["p_max"].iloc[0] <= LEVEL
    above = int((ranking[JUDGED_BY] > control[JUDGED_BY]).sum())
    said += f" {above} of {_scored(ranking)} have more CMI"
    if not good:
        said += f"; whether that is more than luck is not asked: {_not_good(ranking)}."
    else:
        said += f"; {best['measure']} is better than it." if beaten else "; the best of them is not told apart from it."
    if "partial_rho" in ranking and not pd.isna(best["partial_rho"]):
        low, high = best["partial_rho_low"], best["partial_rho_high"]
        ends = "" if pd.isna(low) or pd.isna(high) else f" ({low:.2f} to {high:.2f})"
        equal = f" ({about['controls']})" if "controls" in about else ""  # a study of before says nothing of them
        said += f" At equal controls{equal} its rank correlation with the gap is {best['partial_rho']:.2f}{ends}."
        if "partial_p_max" in ranking and ranking["partial_p_max"].notna().any():
            kept = int((ranking["partial_p_max"] <= LEVEL).sum())
            said += f" {kept} of {_scored(ranking)} are then correlated with it more than the largest is by chance."
        elif "partial_p_max" in ranking:
            said += " These networks are too few to say whether that is more than chance."
    grade = "good" if beaten else "open"
    return [(grade, "Is it more than training accuracy or a hyper-parameter says?", said)]


def _together(combined: pd.DataFrame | None) -> list[Item]:
    """What all measures together explain beyond the controls."""
    if combined is None or not len(combined):
        return []
    rows = combined.set_index("of")
    explained = {name: f"{r.r2:.2f} ({r.low:.2f} to {r.high:.2f})" for name, r in rows.iterrows()}
    adds = bool(rows["low"]["difference"] > 0)
    said = (
        f"In networks left out, ridge regression on the controls alone explains R² {explained['controls']} of the gap, "
        f"on all {rows['columns']['measures']} measures that every network has {explained['measures']}, on both "
        f"{explained['controls and measures']}; beyond the controls: {explained['difference']}."
    )
    return [("good" if adds else "open", "Do all measures together say more than the controls?", said)]


def _scored(measures: pd.DataFrame) -> str:
    """How many measures are scored, which those that are not are set apart from."""
    _, scored, _ = counts(measures)
    return f"{scored} {'measures' if scored == len(measures) else 'scored measures'}"


def measures_and_controls(measures: int, controls: int) -> str:
    """How many measures and controls are looked at together, in words; controls only where there are some."""
    together = counted(measures, "measure")
    return f"{together} and {counted(controls, 'control')}" if controls else together


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
