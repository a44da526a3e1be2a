"""How a report shows the results of each measure."""

from assay.report.measures import invariance, numbers, perturbation, similarity, straightness
from assay.report.measures.section import MeasureSection, section_of, shows

__all__ = [
    "MeasureSection",
    "invariance",
    "numbers",
    "perturbation",
    "section_of",
    "shows",
    "similarity",
    "straightness",
]
