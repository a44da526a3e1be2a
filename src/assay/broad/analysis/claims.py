"""The plan's claims, judged from contrasts by the same rule for every team and task (the plan, §5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LEVEL = 0.05
Verdict = Literal["supported", "not supported", "undecided"]
SUPPORTED: Verdict = "supported"
REFUTED: Verdict = "not supported"
UNDECIDED: Verdict = "undecided"
DIAGNOSIS = "either the task is unsuitable for this evaluation or the DL system is not performing well"


@dataclass(frozen=True)
class Claim:
    """A claim about two conditions.

    Args:
        name: The claim in a few words.
        focal: Number of the condition that the claim is about.
        other: Number of the condition that it is compared with.
        rule: When the claim is supported. ``"outperforms"``: significantly better. ``"not outperformed"``: not
            significantly worse, the plan's "comparable in quality". ``"non-inferior"``: shown to be worse by less
            than the margin.
        note: Words that come before the verdict.
        diagnosis: What the plan concludes where the claim is not supported.
    """

    name: str
    focal: int
    other: int
    rule: Literal["outperforms", "not outperformed", "non-inferior"]
    note: str = ""
    diagnosis: str = ""

    @property
    def contrast(self) -> str:
        """The contrast that decides the claim, such as ``6 v 3``."""
        return f"{self.focal} v {self.other}"


CLAIMS = (
    Claim("central", 6, 3, "outperforms"),
    Claim("comparable in quality", 6, 1, "not outperformed"),
    Claim("non-inferior", 6, 1, "non-inferior", "An extension of the plan: "),
    Claim("better than extracted features", 6, 1, "outperforms", "Not claimed by the teams, for information: "),
    Claim("deep learning helps", 6, 4, "outperforms", diagnosis=DIAGNOSIS),
    Claim("depth helps", 6, 5, "outperforms", diagnosis=DIAGNOSIS),
)


def judge(claim: Claim, contrast: Mapping[str, Any]) -> tuple[Verdict, str]:
    """Judge a claim; give the verdict, and a sentence that states it with its numbers.

    With d the advantage of the focal condition, its 95 % two-component interval [low, high] and the p value adjusted
    for the planned contrasts (Holm),

    - *outperforms* is supported when d > 0 and p < 0.05; not supported when high is below the margin, so that no
      advantage worth naming is left; undecided in between;
    - *not outperformed* is not supported when d < 0 and p < 0.05, else supported (the plan's literal wording: lack of
      evidence counts in favour);
    - *non-inferior* is supported when low > −margin, not supported when high < −margin, undecided in between.

    Args:
        claim: The claim.
        contrast: Row of the table of contrasts that decides it.

    Plan §5.1; §5.2 for the diagnoses.
    """
    if contrast["status"] != "ok":
        return UNDECIDED, f"{claim.note}Undecided whether {_statement(claim)}: {contrast['reason']}."
    d, low, high, p, margin = (float(contrast[k]) for k in ("difference", "low", "high", "p_holm", "margin"))
    if claim.rule == "outperforms":
        verdict = SUPPORTED if d > 0 and p < LEVEL else REFUTED if high < margin else UNDECIDED
    elif claim.rule == "not outperformed":
        verdict = REFUTED if d < 0 and p < LEVEL else SUPPORTED
    else:
        verdict = SUPPORTED if low > -margin else REFUTED if high < -margin else UNDECIDED
    opening = _opening(claim, verdict, margin)
    return verdict, f"{claim.note}{opening}: {_numbers(contrast)}.{_remarks(claim, verdict, contrast)}"


def _statement(claim: Claim, verdict: Verdict = SUPPORTED) -> str:
    verbs = {
        "outperforms": ("outperforms", "does not outperform"),
        "not outperformed": ("is not significantly outperformed by", "is significantly outperformed by"),
        "non-inferior": ("is not inferior to", "is inferior to"),
    }
    verb = verbs[claim.rule][verdict == REFUTED]
    return f"condition {claim.focal} {verb} condition {claim.other}"


def _opening(claim: Claim, verdict: Verdict, margin: float) -> str:
    sized = claim.rule == "non-inferior" or (claim.rule == "outperforms" and verdict == REFUTED)
    by = f" by {margin:g} or more" if sized else ""
    lead = {SUPPORTED: "Supported", REFUTED: "Not supported", UNDECIDED: "Undecided whether"}[verdict]
    return f"{lead}{' ' if verdict == UNDECIDED else ', '}{_statement(claim, verdict)}{by}"


def _numbers(row: Mapping[str, Any]) -> str:
    return (
        f"advantage {row['difference']:.4f} {row['metric']}, 95 % interval {row['low']:.4f} to "
        f"{row['high']:.4f}, Holm-adjusted p = {row['p_holm']:.2g} ({row['n_folds']} folds, "
        f"{row['n_labels']} label{'s' if row['n_labels'] > 1 else ''}, {row['n_instances']} test instances)"
    )


def _remarks(claim: Claim, verdict: Verdict, contrast: Mapping[str, Any]) -> str:
    remarks = ""
    if verdict == UNDECIDED:
        remarks += f" A single test at 5 % would find a true difference of {contrast['mdd']:.4f} four times in five."
    if claim.rule != "non-inferior":
        remarks += f" The plan's own rule (standard errors over folds): {contrast['plan_rule']}."
    if claim.diagnosis and verdict == REFUTED:
        remarks += f" By the plan, {claim.diagnosis}."
    if claim.diagnosis and verdict == UNDECIDED:
        remarks += f" If it does not, by the plan {claim.diagnosis}."
    return remarks
