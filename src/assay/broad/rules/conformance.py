"""Check on a few instances whether a system keeps to the rules, with one sentence for each requirement.

The plan, §3.2 (validation); done as scikit-learn checks its estimators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.broad.data.dataset import Inputs, Modality
from assay.broad.rules.bench import Bench, Check
from assay.broad.rules.rules import RULES
from assay.broad.systems.team import Parts
from assay.core.errors import AssayError
from assay.stimuli.clips import Clip

LEAST = 24  # the smallest number of instances a system can be checked with


def check_system(
    parts: Parts,
    inputs: Inputs,
    documents: Mapping[str, str] | None = None,
    modality: Modality | None = None,
    learned_from: Inputs | None = None,
) -> list[Check]:
    """Check a team's preprocessor, learner and classifier on a few instances.

    The parts learn from two thirds of the instances; the rest stand for test instances. No label is needed: the
    classifier learns made-up ones. Whatever a part does wrong becomes a sentence, and so does an exception.

    Args:
        parts: The team's preprocessor, learner and classifier.
        inputs: At least 24 instances; a few tens are enough.
        documents: Places of the team's artifacts, by the names in `assay.broad.rules.rules.DOCUMENTS`.
        modality: ``"video"`` or ``"text"``; by default, what the instances are.
        learned_from: Instances that the preprocessor learns from, where it needs more of them to give as many columns
            as in a run; None for the two thirds.
    """
    if len(inputs) < LEAST:
        raise AssayError(f"inputs: {len(inputs)} instances are too few to check a system with, give at least {LEAST}")
    if modality is None:
        modality = "video" if isinstance(inputs.items[0], Clip) else "text"
    bench = Bench(parts, inputs, documents or {}, modality, learned_from)
    return [bench.check(requirement, test) for requirement, test in RULES]


def format_checks(checks: Sequence[Check]) -> str:
    """Format checks as text, one line for each.

    >>> print(format_checks([Check("J1", "pass", "3 layers"), Check("J4", "non-conforming", "no example")]))
    J1  pass            3 layers
    J4  non-conforming  no example
    """
    return "\n".join(f"{c.requirement:3} {c.status:15} {c.sentence}" for c in checks)
