"""assay shows stimuli to networks, records what every layer does, and turns that into evidence.

Everything here is loaded when it is first used, so that ``import assay`` and ``assay --help`` take a moment.
"""

import typing as _typing

__version__ = "0.1.0"

# The public names, each with the module that defines it.
_HOME = {
    "ALL": "assay.subject.layers",
    "AssayError": "assay.core.errors",
    "AugmentationRobustness": "assay.measures.complexity.augmentation",
    "ClusterSeparation": "assay.measures.complexity.clusters",
    "Discrimination": "assay.measures.straightness.discrimination",
    "HumanSimilarity": "assay.measures.similarity.measure",
    "InitialDistance": "assay.measures.complexity.distance",
    "Invariance": "assay.measures.invariance.measure",
    "MarginBounds": "assay.measures.complexity.margin_bounds",
    "Margins": "assay.measures.complexity.margins",
    "Measure": "assay.measures.base",
    "NextFrameError": "assay.measures.prediction",
    "Norms": "assay.measures.complexity.norms",
    "ObjectMatching": "assay.measures.matching",
    "PacBayes": "assay.measures.complexity.pac_bayes",
    "PerturbationResponse": "assay.measures.perturbation.measure",
    "Plan": "assay.plans.plan",
    "PredNet": "assay.networks.prednet",
    "Resources": "assay.runs.executor",
    "Run": "assay.runs.run",
    "RunningRdm": "assay.measures.similarity.rdm",
    "Sharpness": "assay.measures.complexity.sharpness",
    "Straightness": "assay.measures.straightness.measure",
    "Subject": "assay.subject.subject",
    "TrainingSpeed": "assay.measures.complexity.training_speed",
    "axb_probability": "assay.measures.straightness.observer",
    "bootstrap_rdms": "assay.measures.similarity.inference",
    "category_rdm": "assay.measures.similarity.rdm",
    "choose_layers": "assay.subject.layers",
    "compare_rdms": "assay.measures.similarity.compare",
    "conditional_mutual_information": "assay.studies.statistics.cmi",
    "curvature": "assay.measures.straightness.measure",
    "davies_bouldin_index": "assay.measures.complexity.clusters",
    "evaluate": "assay.runs.evaluate",
    "examine": "assay.plans.examination",
    "firing_thresholds": "assay.measures.invariance.firing",
    "from_rsatoolbox": "assay.stimuli.rdms",
    "gi_score": "assay.measures.perturbation.scores",
    "human_similarity": "assay.measures.similarity.measure",
    "invariance_differences": "assay.measures.invariance.differences",
    "invariance_scores": "assay.measures.invariance.firing",
    "linear_cka": "assay.measures.similarity.alignment",
    "load_plan": "assay.plans.plan",
    "match": "assay.measures.matching",
    "mds": "assay.stats.scaling",
    "noise_ceiling": "assay.measures.similarity.ceiling",
    "pal_score": "assay.measures.perturbation.scores",
    "perceptual_curvature": "assay.measures.straightness.perception",
    "perceptual_curvatures": "assay.measures.straightness.perception",
    "permutation_test": "assay.measures.similarity.permutation",
    "perturbation_cumulative_density": "assay.measures.perturbation.scores",
    "plot_agreement": "assay.report.study_charts",
    "plot_by_epoch": "assay.report.study_charts",
    "plot_discrimination": "assay.report.perception_figures",
    "plot_mds": "assay.report.rdm_figures",
    "plot_perceptual_curvature": "assay.report.perception_figures",
    "plot_rdm": "assay.report.rdm_figures",
    "plot_scores": "assay.report.rdm_figures",
    "plot_stable": "assay.report.study_charts",
    "plot_tradeoff": "assay.report.study_charts",
    "procrustes_distance": "assay.measures.similarity.alignment",
    "random_trajectory": "assay.measures.straightness.discrimination",
    "rdm": "assay.measures.similarity.rdm",
    "robust_accuracy": "assay.measures.robustness",
    "similarity_between_subjects": "assay.measures.similarity.ceiling",
    "simulate_observer": "assay.measures.straightness.discrimination",
    "surprisal": "assay.measures.straightness.surprisal",
    "text_surprisal": "assay.measures.straightness.surprisal",
    "to_rsatoolbox": "assay.stimuli.rdms",
    "top_proportion_mean": "assay.measures.invariance.firing",
    "turning_angles": "assay.measures.straightness.measure",
}
_ROOMS = ("broad", "networks", "stimuli", "studies", "training")
__all__ = [
    "ALL",
    "AssayError",
    "AugmentationRobustness",
    "ClusterSeparation",
    "Discrimination",
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
    "Plan",
    "PredNet",
    "Resources",
    "Run",
    "RunningRdm",
    "Sharpness",
    "Straightness",
    "Subject",
    "TrainingSpeed",
    "axb_probability",
    "bootstrap_rdms",
    "broad",
    "category_rdm",
    "choose_layers",
    "compare_rdms",
    "conditional_mutual_information",
    "curvature",
    "davies_bouldin_index",
    "evaluate",
    "examine",
    "firing_thresholds",
    "from_rsatoolbox",
    "gi_score",
    "human_similarity",
    "invariance_differences",
    "invariance_scores",
    "linear_cka",
    "load_plan",
    "match",
    "mds",
    "networks",
    "noise_ceiling",
    "pal_score",
    "perceptual_curvature",
    "perceptual_curvatures",
    "permutation_test",
    "perturbation_cumulative_density",
    "plot_agreement",
    "plot_by_epoch",
    "plot_discrimination",
    "plot_mds",
    "plot_perceptual_curvature",
    "plot_rdm",
    "plot_scores",
    "plot_stable",
    "plot_tradeoff",
    "procrustes_distance",
    "random_trajectory",
    "rdm",
    "robust_accuracy",
    "similarity_between_subjects",
    "simulate_observer",
    "stimuli",
    "studies",
    "surprisal",
    "text_surprisal",
    "to_rsatoolbox",
    "top_proportion_mean",
    "training",
    "turning_angles",
]

if _typing.TYPE_CHECKING:
    from assay import broad, networks, stimuli, studies, training
    from assay.core.errors import AssayError
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
    from assay.measures.prediction import NextFrameError
    from assay.measures.robustness import robust_accuracy
    from assay.measures.similarity.alignment import linear_cka, procrustes_distance
    from assay.measures.similarity.ceiling import noise_ceiling, similarity_between_subjects
    from assay.measures.similarity.compare import compare_rdms
    from assay.measures.similarity.inference import bootstrap_rdms
    from assay.measures.similarity.measure import HumanSimilarity, human_similarity
    from assay.measures.similarity.permutation import permutation_test
    from assay.measures.similarity.rdm import RunningRdm, category_rdm, rdm
    from assay.measures.straightness.discrimination import Discrimination, random_trajectory, simulate_observer
    from assay.measures.straightness.measure import Straightness, curvature, turning_angles
    from assay.measures.straightness.observer import axb_probability
    from assay.measures.straightness.perception import perceptual_curvature, perceptual_curvatures
    from assay.measures.straightness.surprisal import surprisal, text_surprisal
    from assay.networks.prednet import PredNet
    from assay.plans.examination import examine
    from assay.plans.plan import Plan, load_plan
    from assay.report.perception_figures import plot_discrimination, plot_perceptual_curvature
    from assay.report.rdm_figures import plot_mds, plot_rdm, plot_scores
    from assay.report.study_charts import plot_agreement, plot_by_epoch, plot_stable, plot_tradeoff
    from assay.runs.evaluate import evaluate
    from assay.runs.executor import Resources
    from assay.runs.run import Run
    from assay.stats.scaling import mds
    from assay.stimuli.rdms import from_rsatoolbox, to_rsatoolbox
    from assay.studies.statistics.cmi import conditional_mutual_information
    from assay.subject.layers import ALL, choose_layers
    from assay.subject.subject import Subject


def __getattr__(name: str) -> _typing.Any:
    import importlib

    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"assay.{name}")
    else:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
