"""Two networks of a run compared: every number they share, in pairs, with intervals that hold together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import nan

import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.report.comparison import Comparison, Quantity, sentences
from assay.runs.differences import Differences
from assay.runs.run import Run
from assay.stats.differences import Difference, difference
from assay.stats.seeds import SeedSpread


@dataclass(frozen=True)
class Pair(Comparison):
    """Two networks of a run, each by itself, whatever recipe it is of.

    Args:
        whole: All networks of the run, which may show how far seeds move a number.
    """

    whole: Comparison = field(default_factory=lambda: Comparison((), ()))

    @classmethod
    def of(cls, whole: Comparison, a: str, b: str) -> Pair:
        """The two networks of these names, and the numbers that both have."""
        quantities = tuple(
            replace(quantity, of={name: quantity.of[name] for name in (a, b)})
            for quantity in whole.quantities
            if a in quantity.of and b in quantity.of
        )
        return cls(quantities, (a, b), portraits=whole.portraits, whole=whole)

    def spread(self, quantity: Quantity) -> SeedSpread | None:
        """How far seeds move a number, by all networks of the run."""
        return self.whole.spread(next(q for q in self.whole.quantities if q.name == quantity.name))


def compare_networks(run: Run, a: str | None = None, b: str | None = None) -> Differences:
    """The differences between two networks of a run.

    Args:
        run: The run.
        a: Name of a network; may be left out, with ``b``, where the run has two.
        b: Name of another.
    """
    a, b = _two_of(run, a, b)
    pair = Pair.of(Comparison.of_run(run), a, b)
    if not pair.quantities:
        raise AssayError(f"no measure of this run has a number of both {a!r} and {b!r}; see run.failures")
    apart = {q.name: difference(q.of[a], q.of[b]) for q in pair.quantities}
    level = 1 - 0.05 / max(sum(d is not None for d in apart.values()), 1)
    rows = [_row(pair, quantity, apart[quantity.name], level) for quantity in pair.quantities]
    return Differences(a, b, pd.DataFrame(rows), tuple(sentences(pair)))


def _row(pair: Pair, quantity: Quantity, apart: Difference | None, level: float) -> dict[str, object]:
    a, b = pair.networks
    of_a, of_b = quantity.of[a], quantity.of[b]
    with_seeds = pair.differences.get((quantity.measure, quantity.name, a, b))
    low, high = (nan, nan) if apart is None else apart.interval(level)
    low_of_seeds, high_of_seeds = (nan, nan) if with_seeds is None else with_seeds.interval(pair.level)
    return {
        "quantity": quantity.name + (f" ({quantity.unit})" if quantity.unit else ""),
        "measure": quantity.measure,
        "a": of_a.value,
        "b": of_b.value,
        "difference": of_a.value - of_b.value if apart is None else apart.value,
        "low": low,
        "high": high,
        "clear": apart is not None and apart.clear(level),
        "low_over_seeds": low_of_seeds,
        "high_over_seeds": high_of_seeds,
        "clear_over_seeds": with_seeds is not None and with_seeds.clear(pair.level),
        "better": quantity.better,
        "paired": apart is not None and apart.paired,
        "n": min(of_a.n, of_b.n) if apart is None else apart.n,
    }


def _two_of(run: Run, a: str | None, b: str | None) -> tuple[str, str]:
    names = run.subjects
    if a is None and b is None and len(names) == 2:
        return names[0], names[1]
    if a is None or b is None:
        raise AssayError(f"a={a!r}, b={b!r}: name the two networks to compare, of: {', '.join(names)}")
    for argument, name in (("a", a), ("b", b)):
        if name not in names:
            raise AssayError(f"{argument}={name!r} is no network of this run{nearest(str(name), names)}")
    if a == b:
        raise AssayError(f"a and b are both {a!r}: name two networks, of: {', '.join(names)}")
    return a, b
