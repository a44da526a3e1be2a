"""Rankings: every predictor of a corpus with all statistics of its relation to the gap, the best first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from assay.core.errors import AssayError
from assay.core.limits import require_count
from assay.core.progress import report
from assay.studies.statistics.chance import FEWEST, LEVEL, against_chance
from assay.studies.statistics.cmi import ConditionalMutualInformation, IncompleteGridWarning
from assay.studies.statistics.grid import Array
from assay.studies.statistics.intervals import score_measures
from assay.studies.statistics.kendall import GranulatedKendall, KendallTau
from assay.studies.statistics.sign_error import SignError
from assay.studies.statistics.statistic import Statistic

JUDGED_BY = "cmi_distinct"
"""The statistic that measures are ranked and judged by."""
EXPECTED = {1: "rises", -1: "falls", 0: ""}
"""What a predictor is expected to do as the gap grows, in a word; nothing where the literature does not say."""
AS_EXPECTED, AGAINST, UNCLEAR, UNDECLARED = "as expected", "against expectation", "not clear", "none declared"


@dataclass(frozen=True)
class Scoring:
    """How measures are scored over the networks.

    Args:
        sizes: Of the sets of hyper-parameters that conditional mutual information is conditioned on.
        draws: Resamples of the networks for the intervals.
        seed: Of the resamples and permutations.
        permutations: Permutations of the networks for what the best measure has by chance; 0 for no such test.
        test_size: Number of test samples behind each gap, by which the sign error leaves out pairs whose gaps
            may differ by chance; by default the size of the corpus's test set.
    """

    sizes: tuple[int, ...] = (2,)
    draws: int = 1000
    seed: int = 0
    permutations: int = 500
    test_size: int | None = None

    def __post_init__(self) -> None:
        if self.draws < 0 or self.seed < 0 or not self.sizes or min(self.sizes) < 0:
            raise AssayError(
                f"sizes={self.sizes}, draws={self.draws}, seed={self.seed}: give at least one size, and none below 0"
            )
        if 0 != self.permutations < FEWEST:
            raise AssayError(f"permutations={self.permutations} must be {FEWEST} or more, or 0 for no test of chance")
        if self.test_size is not None and self.test_size < 1:
            raise AssayError(f"test_size={self.test_size} is not a number of samples: give the size of the test set")
        require_count(f"draws={self.draws}", self.draws)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The statistics to compute, by the names of their columns."""
        return {
            "cmi_distinct": ConditionalMutualInformation(sizes=self.sizes, self_pairs=False),
            "cmi": ConditionalMutualInformation(sizes=self.sizes),
            "tau": KendallTau(),
            "granulated_tau": GranulatedKendall(),
            "worst_sign_error": SignError("worst", test_size=self.test_size),
        }


def rank(
    predictors: pd.DataFrame,
    gap: pd.Series,
    hyperparameters: pd.DataFrame,
    scoring: Scoring | None = None,
    directions: Mapping[str, int] | None = None,
    cells: Array | None = None,
) -> pd.DataFrame:
    """Every predictor with all statistics of its relation to the gap, the highest CMI of distinct networks first.

    Args:
        predictors: One row per network and one column per predictor: *all* that were asked, as chance is that of the
            best of them.
        gap: The gap of each network, or another target.
        hyperparameters: The hyper-parameters of each network, one column each.
        scoring: How predictors are scored.
        directions: Whether a predictor is expected to rise (1) or fall (−1) with the gap; those not named have no
            expectation. The sign error is of the predictor so turned that it should rise.
        cells: The cell of each network, where networks of equal hyper-parameters differ in more than chance; by default
            each combination of hyper-parameters is one.

    Returns:
        One row per predictor: ``measure``; ``n`` networks; ``status``: ``ok``, ``missing in k networks: name, …``,
        ``infinite in`` or ``missing or infinite in`` them (nothing is scored), or ``constant``; every statistic of
        `Scoring` with the ends of its interval; ``p_max``, the p of ``cmi_distinct`` against the best of all predictors
        by chance, and ``chance``, what 95 % of such best ones stay below (`against_chance`); ``expected``, ``rises`` or
        ``falls``; and ``direction``, whether its granulated τ (τ where it has none) has the expected sign: ``as
        expected``, ``against expectation``, ``not clear`` (its interval holds 0, or its ``p_max`` is above 0.05 or
        missing) or ``none declared``.
    """
    scoring = scoring or Scoring()
    names = [str(column) for column in predictors]
    table = pd.DataFrame({"measure": names, "n": len(predictors), "status": "ok"}).set_index("measure")
    for column in predictors:
        if lacking := _lacking(predictors[column]):
            table.loc[column, "status"] = lacking
        elif predictors[column].nunique() == 1:
            table.loc[column, "status"] = "constant"
    signs = {name: (directions or {}).get(name, 0) for name in names}
    whole = {str(c): predictors[c].to_numpy() for c in predictors if np.isfinite(predictors[c]).all()}
    turned = {name: values if signs[name] >= 0 else -values for name, values in whole.items()}
    parts = len(scoring.statistics) + 1
    for i, (name, statistic) in enumerate(scoring.statistics.items()):
        report("scoring", i, parts)
        if not whole:
            break
        values = turned if name == "worst_sign_error" else whole
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IncompleteGridWarning)  # said once, in the report
                scored = score_measures(
                    values,
                    gap.to_numpy(),
                    hyperparameters,
                    statistic,
                    draws=scoring.draws,
                    seed=scoring.seed,
                    cells=cells,
                ).set_index("measure")
                if name == JUDGED_BY and scoring.permutations:
                    tested = against_chance(
                        whole, gap.to_numpy(), hyperparameters, statistic, scoring.permutations, scoring.seed, cells
                    )
                    scored = scored.join(tested.table.set_index("measure")["p_max"]).assign(chance=tested.chance())
        except AssayError as error:
            table[f"{name}_status"] = str(error)
            continue
        for column, into in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            table[into] = scored[column]
        for column in ("p_max", "chance"):
            if column in scored:
                table[column] = scored[column]
    table["expected"] = [EXPECTED[signs[name]] for name in names]
    table["direction"] = list(_directions(table, signs))
    by = [name for name in (JUDGED_BY, "tau") if name in table]
    return table.reset_index().sort_values(by, ascending=False, na_position="last", key=np.abs).reset_index(drop=True)


def _lacking(values: pd.Series) -> str:
    """In which networks a predictor has no finite number, the first of them by name; empty where it has one in all."""
    bad = values[~np.isfinite(values)]
    if not len(bad):
        return ""
    missing = bad.isna()
    what = "missing" if missing.all() else "missing or infinite" if missing.any() else "infinite"
    return f"{what} in {len(bad)} network{'s' * (len(bad) > 1)}: {bad.index[0]}{', …' * (len(bad) > 1)}"


def _directions(table: pd.DataFrame, signs: Mapping[str, int]) -> Iterable[str]:
    """Whether each predictor that predicts the gap does so in the direction that is expected of it.

    The interval of a τ is of one predictor: of many that say nothing, several point somewhere. A verdict therefore
    takes a predictor that is better than the best of all asked is by chance.
    """
    good = table["p_max"] <= LEVEL if "p_max" in table else pd.Series(False, index=table.index)
    column = "granulated_tau" if "granulated_tau" in table else "tau"
    for name, sign in signs.items():
        ends = (
            table.loc[[name], [f"{column}_low", f"{column}_high"]].to_numpy(dtype=np.float64)
            if column in table
            else None
        )
        low, high = (np.nan, np.nan) if ends is None else ends[0]
        if not sign:
            yield UNDECLARED
        elif good[name] and (low > 0 or high < 0):
            yield AS_EXPECTED if (low > 0) == (sign > 0) else AGAINST
        else:
            yield UNCLEAR
