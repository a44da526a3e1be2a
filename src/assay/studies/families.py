"""Families of networks: how straight they are as groups, and how far two groups differ, over stimuli and networks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import inf, sqrt
from typing import Any

import numpy as np
import pandas as pd

from assay.core.errors import AssayError, shown
from assay.stats.differences import Difference
from assay.stats.evidence import Evidence
from assay.stats.multiplicity import holm
from assay.stats.paired import two_sided_p
from assay.stats.seeds import SeedSpread, difference_of_recipes, mean_evidence, spread_of_replicates

LAST = "last"
BOTH, STIMULI = "sequences and networks", "sequences"


def family_means(
    table: pd.DataFrame,
    families: Mapping[str, str],
    layer: str | Mapping[str, str] = LAST,
    value: str = "curvature_deg",
) -> pd.DataFrame:
    """The mean of each family at a layer, with a 95 % interval over sequences and over networks.

    With x_iv the value of network i for sequence v: x̄ ± t·s, s² = s_v²/V + σ²/n, where s_v is the standard deviation
    over the V sequences of the family's mean, and σ that over its n networks; degrees of freedom are Satterthwaite's. A
    family of one network has an interval over sequences alone, which says nothing of other networks like it. Sequences
    of one scene are alike: their mean counts as one sequence.

    Args:
        table: Rows of `assay.Straightness` for several subjects: ``subject``, ``layer``, ``sequence``, the value, and
            where sequences share scenes, ``scene``. ``run.table("straightness")`` is such a table.
        families: The family of each subject, by name; subjects without one are left out.
        layer: ``"last"``, the last layer of each subject in the order of the table; a layer that all have; or the layer
            of each subject.
        value: The column to compare, such as ``"change_deg"``.

    Returns:
        One row per family, in the order of ``families``: ``family``, ``networks``, ``sequences`` (those of one scene
        counted as one), ``mean``, ``low``, ``high``, ``sd_networks`` and ``over``: what the interval is over.

    Example:
        >>> rows = [("a1", 80.0, 90.0), ("a2", 84.0, 94.0), ("b1", 60.0, 66.0), ("b2", 62.0, 72.0)]
        >>> table = pd.DataFrame([
        ...     {"subject": name, "layer": "fc", "sequence": clip, "curvature_deg": angle}
        ...     for name, *angles in rows for clip, angle in zip("xy", angles)])
        >>> families = {"a1": "standard", "a2": "standard", "b1": "robust", "b2": "robust"}
        >>> family_means(table, families)[["family", "mean", "networks"]].values.tolist()
        [['standard', 87.0, 2], ['robust', 65.0, 2]]
    """
    rows: list[dict[str, Any]] = []
    for family, members in _members(table, families, layer, value).items():
        summary = _Family(family, members)
        nothing = Evidence(value, 0.0, items=dict.fromkeys(summary.mean.items, 0.0))
        apart = difference_of_recipes(summary.mean, nothing, (summary.spread, _NONE), (len(members), 1))
        low, high = _interval(apart)
        rows.append(
            {
                "family": family,
                "networks": len(members),
                "sequences": len(summary.mean.items),
                "mean": summary.mean.value,
                "low": low,
                "high": high,
                "sd_networks": summary.spread.error if len(members) > 1 else np.nan,
                "over": BOTH if len(members) > 1 else STIMULI,
            }
        )
    return pd.DataFrame(rows)


def compare_families(
    table: pd.DataFrame,
    families: Mapping[str, str],
    layer: str | Mapping[str, str] = LAST,
    value: str = "curvature_deg",
) -> pd.DataFrame:
    """The difference of every two families, paired over sequences, with a 95 % interval over sequences and networks.

    d̄ ± t·s, s² = s_d²/V + σ_1²/n_1 + σ_2²/n_2 (`assay.stats.seeds.difference_of_recipes`): s_d is the standard
    deviation over sequences of the difference of the families' means, σ that over the networks of a family. A family of
    one network is taken to be spread as the other is. Two single networks have an interval over sequences alone.

    Args:
        table: As for `family_means`.
        families: The family of each subject.
        layer: The layer at which to compare, as for `family_means`.
        value: The column to compare.

    Returns:
        One row per pair, in the order of ``families``: ``first``, ``second``, ``difference`` (first − second),
        ``low``, ``high``, ``p`` and ``p_holm`` (the family of tests being the rows), ``networks`` of both,
        ``sequences`` (those of one scene counted as one) and ``over``: what the interval is over.

    Example:
        >>> rows = [("a1", 80.0, 90.0), ("a2", 84.0, 94.0), ("b1", 60.0, 66.0), ("b2", 62.0, 72.0)]
        >>> table = pd.DataFrame([
        ...     {"subject": name, "layer": "fc", "sequence": clip, "curvature_deg": angle}
        ...     for name, *angles in rows for clip, angle in zip("xy", angles)])
        >>> families = {"a1": "standard", "a2": "standard", "b1": "robust", "b2": "robust"}
        >>> pair = compare_families(table, families).iloc[0]
        >>> pair["first"], pair["second"], float(pair["difference"])
        ('standard', 'robust', 22.0)
    """
    groups = [_Family(name, members) for name, members in _members(table, families, layer, value).items()]
    rows: list[dict[str, Any]] = []
    for a, b in combinations(groups, 2):
        apart = difference_of_recipes(a.mean, b.mean, *_spreads(a, b))
        low, high = _interval(apart)
        rows.append(
            {
                "first": a.name,
                "second": b.name,
                "difference": np.nan if apart is None else apart.value,
                "low": low,
                "high": high,
                "p": np.nan if apart is None else two_sided_p(apart.value, apart.error, apart.df),
                "networks": f"{a.count} v {b.count}",
                "sequences": 0 if apart is None else apart.n,
                "over": BOTH if max(a.count, b.count) > 1 else STIMULI,
            }
        )
    compared = pd.DataFrame(rows)
    if len(compared):
        compared.insert(6, "p_holm", holm(compared["p"].to_numpy()))
    return compared


_NONE = SeedSpread(0.0, inf)


class _Family:
    """A family's mean, sequence by sequence, and how far its networks are spread."""

    def __init__(self, name: str, members: dict[str, pd.Series]) -> None:
        self.name = name
        self.count = len(members)
        each = [
            Evidence(name, float(values.mean()), items={str(k): float(v) for k, v in values.items()}, n=len(values))
            for values in members.values()
        ]
        self.mean = mean_evidence(each)
        self.spread = spread_of_replicates([float(values.mean()) for values in members.values()]) or _NONE


def _spreads(a: _Family, b: _Family) -> tuple[tuple[SeedSpread, SeedSpread], tuple[int, int]]:
    """How far the networks of two families are spread, and how many there are of each.

    A single network does not show how far it is from others like it: taken to be as far as those of the other family,
    it adds to one and the same estimate, with its degrees of freedom.
    """
    if min(a.count, b.count) > 1 or max(a.count, b.count) == 1:
        return (a.spread, b.spread), (a.count, b.count)
    known = a.spread if a.count > 1 else b.spread
    return (SeedSpread(known.error * sqrt(1 / a.count + 1 / b.count), known.df), _NONE), (1, 1)


def _members(
    table: pd.DataFrame, families: Mapping[str, str], layer: str | Mapping[str, str], value: str
) -> dict[str, dict[str, pd.Series]]:
    """The values of each network of each family by scene, over the sequences that all networks have."""
    for column in ("subject", "layer", "sequence", value):
        if column not in table:
            remedy = (
                "give run.table('straightness'), or join the tables of networks with table.assign(subject=name)"
                if column == "subject"
                else "give rows of assay.Straightness"
            )
            raise AssayError(f"the table has no column {column!r}: {remedy}")
    known = list(dict.fromkeys(table["subject"]))
    if missing := [name for name in families if name not in known]:
        raise AssayError(f"families has {shown(missing[0])}, the table has {', '.join(map(str, known[:8]))}")
    values: dict[str, pd.Series] = {}
    for name in families:
        rows = table[table["subject"] == name]
        at = layer.get(name, LAST) if isinstance(layer, Mapping) else layer
        at = rows["layer"].iloc[-1] if at == LAST else at
        of_layer = rows[rows["layer"] == at].dropna(subset=[value])
        if of_layer.empty:
            raise AssayError(f"{name!r} has no value of {value} at layer {shown(at)}")
        if of_layer["sequence"].duplicated().any():
            raise AssayError(
                f"{name!r} has several rows of a sequence at layer {shown(at)}: give those of one condition"
            )
        values[name] = of_layer.set_index("sequence")[value]
    common = set.intersection(*(set(one.index) for one in values.values())) if values else set()
    scenes = _scenes(table)
    if (count := len({scenes[sequence] for sequence in common})) < 2:
        raise AssayError(
            f"the networks have {len(common)} sequences of {count} scenes in common: intervals need two scenes or more"
        )
    groups: dict[str, dict[str, pd.Series]] = {}
    for name, family in families.items():
        shared = values[name][[s for s in values[name].index if s in common]]
        groups.setdefault(family, {})[name] = shared.groupby(shared.index.map(scenes), sort=False).mean()
    return groups


def _scenes(table: pd.DataFrame) -> dict[Any, Any]:
    """The scene of each sequence; a sequence is its own where the table names none."""
    scene = table["scene"].fillna(table["sequence"]) if "scene" in table else table["sequence"]
    return dict(zip(table["sequence"], scene, strict=True))


def _interval(apart: Difference | None) -> tuple[float, float]:
    return (float("nan"), float("nan")) if apart is None else apart.interval()
