"""Numbers of the weights alone: compared only between networks of one architecture."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from typing import TypeVar

from assay.report.comparison import Comparison, Quantity
from assay.runs.run import Run
from assay.stats.evidence import Evidence

AnyComparison = TypeVar("AnyComparison", bound=Comparison)
_ALIKE = 0.01  # share by which the numbers of parameters of one architecture may differ


def within_architectures(comparison: AnyComparison, run: Run) -> AnyComparison:
    """The same comparison, in which norms are compared between networks of one architecture only.

    A norm of the weights grows with their number, whatever the network does. Networks count as of one architecture
    where they have as many parameters, to a hundredth, in as many layers, as the measure itself counted them: a file
    may hold a network's biases or not, as whoever wrote it folded them. Other numbers are compared between all
    networks.

    Args:
        comparison: Numbers of the networks of a run.
        run: The run.

    Returns:
        A comparison in which each norm is there once for each architecture, and which knows the architectures.
    """
    quantities: list[Quantity] = []
    known: dict[str, object] = {}
    for quantity in comparison.quantities:
        record = run.manifest.measures.get(quantity.measure)
        if record is None or record.measure != "norms":
            quantities.append(quantity)
            continue
        table = run.table(quantity.measure)
        counted = table[table["quantity"] == "parameters"]
        sizes = zip(counted["value"].astype(float), counted["n"].astype(int), strict=True)
        architectures = _kinds(dict(zip(counted["subject"].astype(str), sizes, strict=True)))
        known |= architectures
        by_architecture: dict[object, dict[str, Evidence]] = {}
        for name in quantity.of:
            by_architecture.setdefault(architectures.get(name, name), {})[name] = quantity.of[name]
        quantities += [replace(quantity, of=of) for of in by_architecture.values()]
    return replace(comparison, quantities=tuple(quantities), architectures=known)


def _kinds(sizes: dict[str, tuple[float, int]]) -> dict[str, tuple[float, int]]:
    """The size, parameters and layers, of the first network of the architecture of each."""
    kinds: dict[str, tuple[float, int]] = {}
    for name, (parameters, layers) in sizes.items():
        alike = (kind for kind in kinds.values() if kind[1] == layers and isclose(kind[0], parameters, rel_tol=_ALIKE))
        kinds[name] = next(alike, (parameters, layers))
    return kinds
