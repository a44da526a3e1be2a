"""The plan's claims, judged from contrasts by the same rule for every team and task (the plan, §5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

LEVEL = 0.05
Verdict = Literal["supported", "not supported", "undecided"]
SUPPORTED: Verdict = "supported"
REFUTED: Verdict = "not supported"
UNDECIDED: Verdict = "undecided"
Rule = Literal["outperforms", "comparable", "non-inferior"]
DIAGNOSIS = "either the task is unsuitable for this evaluation or the DL system is not performing well"
PHRASES: dict[Rule, dict[Verdict, str]] = {
    "outperforms": {
        SUPPORTED: "outperforms {other}",
        REFUTED: "does not outperform {other} by {margin:g} or more",
        UNDECIDED: "is not shown to outperform {other}",
    },
    "comparable": {
        SUPPORTED: "is comparable with {other}",
        UNDECIDED: "is not shown to be comparable with {other}",
    },
    "non-inferior": {
        SUPPORTED: "does not lose {margin:g} or more to {other}",
        REFUTED: "loses more than {margin:g} to {other}",
        UNDECIDED: "is not shown to lose less than {margin:g} to {other}",
    },
}
OUTPERFORMED = "is outperformed by {other}"
OUTPERFORMED_UNADJUSTED = "does worse than {other} before Holm's adjustment"


@dataclass(frozen=True)
class Claim:
    """A claim about two conditions.

    Args:
        name: The claim in a few words.
        focal: Number of the condition that the claim is about.
        other: Number of the condition that it is compared with.
        against: The other condition in words.
        rule: When the claim is supported: see `verdict_on`.
        note: A sentence on whose claim it is, where it is not the teams'.
        diagnosis: What the plan concludes where the claim is not supported.
    """

    name: str
    focal: int
    other: int
    against: str
    rule: Rule
    note: str = ""
    diagnosis: str = ""

    @property
    def contrast(self) -> str:
        """The contrast that decides the claim, such as ``6 v 3``."""
        return f"{self.focal} v {self.other}"


_FEATURES = "hand-engineered features"
CLAIMS = (
    Claim("central", 6, 3, "the shallow baseline", "outperforms"),
    Claim("comparable in quality", 6, 1, _FEATURES, "comparable"),
    Claim("non-inferior", 6, 1, _FEATURES, "non-inferior", "An extension of the plan."),
    Claim("better than extracted features", 6, 1, _FEATURES, "outperforms", "Not claimed by the teams."),
    Claim("deep learning helps", 6, 4, "its classifier without learning", "outperforms", diagnosis=DIAGNOSIS),
    Claim("depth helps", 6, 5, "its first layer alone", "outperforms", diagnosis=DIAGNOSIS),
)


@dataclass(frozen=True)
class Judgement:
    """What is concluded about a claim.

    Args:
        verdict: Whether the claim is supported.
        sentence: Team, one clause, and the numbers that decide.
        detail: Everything else that a reader may ask: tests, sizes, the plan's own rule, its diagnosis.
    """

    verdict: Verdict
    sentence: str
    detail: str


def verdict_on(rule: Rule, contrast: Mapping[str, Any]) -> Verdict:
    """Judge a contrast that was computed by the rule of a claim.

    With d the advantage of the focal condition, [low, high] its 95 % two-component interval, p its p value adjusted for
    the planned contrasts (Holm) and δ the margin declared before the run,

    - *outperforms* is supported when d > 0 and p < 0.05. It is not supported when low ≤ 0 and high < δ: no advantage is
      shown, and none worth naming is left.
    - *comparable*, the plan's "not significantly outperformed", is not supported when high < 0. It is supported when
      high ≥ 0 and low > −δ, so that the data exclude every loss of δ or more.
    - *non-inferior* is supported when low > −δ, and not supported when high < −δ.

    With few groups, where errors of the variance and of the difference go together, low > −δ must hold for the 97.5 %
    interval (`excludes_margin`).

    Everything else is undecided. The last two rest on the interval of their own contrast: there an adjustment for many
    tests would turn lack of evidence into support.

    Plan §5.1.
    """
    d, low, high, margin = (float(contrast[k]) for k in ("difference", "low", "high", "margin"))
    if rule == "outperforms":
        if d > 0 and float(contrast["p_holm"]) < LEVEL:
            return SUPPORTED
        return REFUTED if low <= 0 and high < margin else UNDECIDED
    if rule == "comparable" and high < 0:
        return REFUTED
    if excludes_margin(float(contrast["noninferior_p"]), bool(contrast["few_groups"])):
        return SUPPORTED
    return REFUTED if high < -margin else UNDECIDED


def excludes_margin(p: float, few_groups: bool) -> bool:
    """Whether a one-sided p excludes a difference of the margin, as the 95 % interval does; with few groups 97.5 %.

    Args:
        p: One-sided p of non-inferiority, or the larger of the two of equivalence.
        few_groups: Whether the groups are few or very unequal.

    Example:
        >>> excludes_margin(0.02, few_groups=False), excludes_margin(0.02, few_groups=True)
        (True, False)
    """
    return p < LEVEL / (4 if few_groups else 2)


def judge(claim: Claim, contrast: Mapping[str, Any], team: str) -> Judgement:
    """Judge a claim, and say why.

    Args:
        claim: The claim.
        contrast: Row of the table of contrasts that decides it.
        team: Name of the team.

    Plan §5.1; §5.2 for the diagnoses.
    """
    place = _place(str(contrast["task"]))
    if contrast["status"] != "ok":
        sentence = f"{team} cannot be compared with {claim.against} {place}: {contrast['reason']}."
        return Judgement(UNDECIDED, sentence, claim.note)
    verdict = verdict_on(claim.rule, contrast)
    clause = _phrase(claim.rule, verdict, contrast).format(other=claim.against, margin=contrast["margin"])
    d, low, high = (_signed(contrast[k]) for k in ("difference", "low", "high"))
    numbers = f"{d} {contrast['metric']} (95 %: {low} to {high})"
    detail = [claim.note, _test(claim, verdict, contrast), _sizes(contrast), *_remarks(claim, verdict, contrast)]
    return Judgement(verdict, f"{team} {clause} {place}: {numbers}.", " ".join(part for part in detail if part))


def _phrase(rule: Rule, verdict: Verdict, row: Mapping[str, Any]) -> str:
    """The clause that follows from a verdict and its interval, and says no more than they do."""
    if rule != "non-inferior" and verdict == REFUTED and row["high"] < 0:
        # "Outperformed" is said as "outperforms" is: after the adjustment for all planned contrasts.
        return OUTPERFORMED if row["p_holm"] < LEVEL else OUTPERFORMED_UNADJUSTED
    if rule == "comparable" and verdict == SUPPORTED and row["low"] > 0:
        return "is at least comparable with {other}"
    return PHRASES[rule][verdict]


def _signed(number: float) -> str:
    """A number with its sign, a minus where it is below 0."""
    return f"{number:+.4f}".replace("-", "−")


def _place(task: str) -> str:
    """Where a contrast was measured: ``on text``, ``on text (Food)``."""
    kind, _, rating = task.partition(":")
    return f"on {kind} ({rating})" if rating else f"on {kind}"


def _test(claim: Claim, verdict: Verdict, row: Mapping[str, Any]) -> str:
    """The test that the verdict rests on, with what needs explaining about it."""
    chance = ""
    if row["p"] < LEVEL <= row["p_holm"]:
        chance = " Its own interval excludes 0, but among so many contrasts that may be chance."
    adjusted = f"p = {row['p_holm']:.2g}, adjusted for {row['n_family']} planned contrasts (Holm).{chance}"
    if claim.rule == "outperforms":
        return adjusted
    sentence = (
        f"Tested with the margin of {row['margin']:g} {row['metric']} declared before the run, not adjusted for "
        f"other contrasts: p = {row['noninferior_p']:.2g} for a loss of the margin or more."
    )
    if row["few_groups"]:
        sentence += " With few groups it must be below 0.0125."
    if claim.rule == "comparable" and verdict == REFUTED:
        if row["low"] > -row["margin"]:
            sentence += " The interval lies wholly between a loss of the margin and no loss."
        sentence += f" Against no difference, {adjusted}"
    return sentence


def _sizes(row: Mapping[str, Any]) -> str:
    labels = f"{row['n_labels']} label{'s' if row['n_labels'] > 1 else ''}"
    counted = f"{row['n_instances']:,} test instances"
    if row["n_distinct"] < row["n_instances"]:
        counted += f" of {row['n_distinct']:,} distinct ones"
    if not pd.isna(row["n_groups"]):
        counted += f" in {row['n_groups']:,} groups"
    return f"{row['n_folds']} folds, {labels}, {counted}; {row['df']:.0f} degrees of freedom."


def _remarks(claim: Claim, verdict: Verdict, row: Mapping[str, Any]) -> list[str]:
    remarks = []
    if row["few_groups"]:
        remarks.append(
            "Few or very unequal groups: the interval allows for those of the test set, but where systems were trained "
            "on the same groups it is still too narrow."
        )
    if verdict == UNDECIDED:
        remarks.append(f"A single test at 5 % would find a true difference of {row['mdd']:.4f} four times in five.")
    if claim.rule != "non-inferior":
        remarks.append(f"The plan's own rule (standard errors over folds): {row['plan_rule']}.")
    # Where the plan's own rule, or the interval, sees an advantage, the plan's diagnosis would contradict it.
    if claim.diagnosis and row["low"] <= 0 and row["plan_rule"] != f"{claim.focal} is better":
        if verdict == REFUTED:
            remarks.append(f"By the plan, {claim.diagnosis}.")
        if verdict == UNDECIDED:
            remarks.append(f"If it does not outperform it, by the plan {claim.diagnosis}.")
    return remarks
