"""How a report shows the results of each measure."""

from assay.report.measures import invariance, matching, numbers, perturbation, similarity, straightness
from assay.report.measures.section import MeasureSection, section_of, shows

__all__ = [
    "MeasureSection",
    "invariance",
    "matching",
    "numbers",
    "perturbation",
    "section_of",
    "shows",
    "similarity",
    "straightness",
]
