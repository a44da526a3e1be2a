"""The plan's claims and what contrasts say of them: the same rule for every team and task (the plan, §5.1)."""

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
    """Something said of two conditions.

    Args:
        name: In a few words.
        focal: Condition it is about.
        other: Condition it is compared with.
        rule: ``"outperforms"``: significantly better. ``"not outperformed"``: not significantly worse, the plan's
            "comparable in quality". ``"non-inferior"``: shown to be worse by less than the margin.
        note: Said before the numbers.
        diagnosis: What the plan concludes where it is not so.
    """

    name: str
    focal: int
    other: int
    rule: Literal["outperforms", "not outperformed", "non-inferior"]
    note: str = ""
    diagnosis: str = ""

    @property
    def contrast(self) -> str:
        """The contrast that decides it, such as ``6 v 3``."""
        return f"{self.focal} v {self.other}"


CLAIMS = (
    Claim("central", 6, 3, "outperforms"),
    Claim("comparable in quality", 6, 1, "not outperformed"),
    Claim("non-inferior", 6, 1, "non-inferior", "An extension of the plan: "),
    Claim("better than extracted features", 6, 1, "outperforms", "Not claimed by the teams, for information: "),
    Claim("deep learning helps", 6, 4, "outperforms", diagnosis=DIAGNOSIS),
    Claim("depth helps", 6, 5, "outperforms", diagnosis=DIAGNOSIS),
)


def judge(claim: Claim, found: Mapping[str, Any]) -> tuple[Verdict, str]:
    """The verdict on a claim, and a sentence that gives it with its numbers.

    With d the advantage of the focal condition, its 95 % two-component interval [low, high] and the p value adjusted
    for the planned contrasts (Holm),

    - *outperforms* is supported when d > 0 and p < 0.05; not supported when high is below the margin, so that no
      advantage worth naming is left; undecided in between;
    - *not outperformed* is not supported when d < 0 and p < 0.05, else supported (the plan's literal wording: lack of
      evidence counts in favour);
    - *non-inferior* is supported when low > −margin, not supported when high < −margin, undecided in between.

    Args:
        claim: Which.
        found: A row of the table of contrasts.

    Plan §5.1; §5.2 for the diagnoses.
    """
    if found["status"] != "ok":
        return UNDECIDED, f"{claim.note}Undecided whether {_said(claim)}: {found['reason']}."
    d, low, high, p, margin = (float(found[k]) for k in ("difference", "low", "high", "p_holm", "margin"))
    if claim.rule == "outperforms":
        verdict = SUPPORTED if d > 0 and p < LEVEL else REFUTED if high < margin else UNDECIDED
    elif claim.rule == "not outperformed":
        verdict = REFUTED if d < 0 and p < LEVEL else SUPPORTED
    else:
        verdict = SUPPORTED if low > -margin else REFUTED if high < -margin else UNDECIDED
    return verdict, f"{claim.note}{_opening(claim, verdict, margin)}: {_numbers(found)}.{_rest(claim, verdict, found)}"


def _said(claim: Claim, verdict: Verdict = SUPPORTED) -> str:
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
    return f"{lead}{' ' if verdict == UNDECIDED else ', '}{_said(claim, verdict)}{by}"


def _numbers(found: Mapping[str, Any]) -> str:
    return (
        f"advantage {found['difference']:.4f} {found['metric']}, 95 % interval {found['low']:.4f} to "
        f"{found['high']:.4f}, Holm-adjusted p = {found['p_holm']:.2g} ({found['n_folds']} folds, "
        f"{found['n_labels']} label{'s' if found['n_labels'] > 1 else ''}, {found['n_instances']} test instances)"
    )


def _rest(claim: Claim, verdict: Verdict, found: Mapping[str, Any]) -> str:
    said = ""
    if verdict == UNDECIDED:
        said += f" A single test at 5 % would find a true difference of {found['mdd']:.4f} four times in five."
    if claim.rule != "non-inferior":
        said += f" The plan's own rule (standard errors over folds): {found['plan_rule']}."
    if claim.diagnosis and verdict == REFUTED:
        said += f" By the plan, {claim.diagnosis}."
    if claim.diagnosis and verdict == UNDECIDED:
        said += f" If it does not, by the plan {claim.diagnosis}."
    return said
