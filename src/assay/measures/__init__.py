"""Questions asked of one subject, and the pure functions under them."""

from assay.measures.base import Measure
from assay.measures.straightness import Straightness, curvature, turning_angles

__all__ = ["Measure", "Straightness", "curvature", "turning_angles"]
