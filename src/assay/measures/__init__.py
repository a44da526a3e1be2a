"""Measures: questions asked of one subject, and the pure functions under them."""

from assay.measures.base import Measure
from assay.measures.complexity.augmentation import AugmentationRobustness
from assay.measures.complexity.clusters import ClusterSeparation, davies_bouldin_index
from assay.measures.complexity.distance import InitialDistance
from assay.measures.complexity.margin_bounds import MarginBounds
from assay.measures.complexity.margins import Margins
from assay.measures.complexity.norms import Norms
from assay.measures.complexity.pac_bayes import PacBayes
from assay.measures.complexity.sharpness import Sharpness
from assay.measures.complexity.training_speed import TrainingSpeed
from assay.measures.invariance.differences import invariance_differences
from assay.measures.invariance.firing import firing_thresholds, invariance_scores, top_proportion_mean
from assay.measures.invariance.measure import Invariance
from assay.measures.matching import ObjectMatching, match
from assay.measures.perturbation.measure import PerturbationResponse
from assay.measures.perturbation.scores import gi_score, pal_score, perturbation_cumulative_density
from assay.measures.prediction import NextFrameError, copy_last_error, next_frame_error
from assay.measures.similarity.measure import HumanSimilarity, human_similarity
from assay.measures.straightness.measure import Straightness, curvature, turning_angles

__all__ = [
    "AugmentationRobustness",
    "ClusterSeparation",
    "HumanSimilarity",
    "InitialDistance",
    "Invariance",
    "MarginBounds",
    "Margins",
    "Measure",
    "NextFrameError",
    "Norms",
    "ObjectMatching",
    "PacBayes",
    "PerturbationResponse",
    "Sharpness",
    "Straightness",
    "TrainingSpeed",
    "copy_last_error",
    "curvature",
    "davies_bouldin_index",
    "firing_thresholds",
    "gi_score",
    "human_similarity",
    "invariance_differences",
    "invariance_scores",
    "match",
    "next_frame_error",
    "pal_score",
    "perturbation_cumulative_density",
    "top_proportion_mean",
    "turning_angles",
]
