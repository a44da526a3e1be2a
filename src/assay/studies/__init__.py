"""What many networks say together: does a measure tell their generalization gap?"""

from assay.studies.combinations import first_component, mean, product
from assay.studies.corpus import Corpus, accuracy
from assay.studies.corpus_plan import CorpusData, CorpusPlan, load_corpus_plan
from assay.studies.correlation import (
    Granulated,
    GranulatedKendall,
    KendallTau,
    Pearson,
    granulated_kendall,
    kendall_tau,
    pearson,
)
from assay.studies.generalization import (
    ConditionalMutualInformation,
    IncompleteGridWarning,
    conditional_mutual_information,
    information_by_condition,
)
from assay.studies.intervals import STATISTICS, chance_level, compare_measures, score_measures
from assay.studies.pgdl import PgdlCorpus, load_pgdl
from assay.studies.prediction import Scoring, Study, predictors, rank, study
from assay.studies.sign_error import SignError, SignErrors, sign_error
from assay.studies.statistic import Statistic
from assay.studies.study_plan import StudyPlan, load_study_plan
from assay.studies.trained_corpus import TrainedCorpus, load_corpus, train_corpus

__all__ = [
    "STATISTICS",
    "ConditionalMutualInformation",
    "Corpus",
    "CorpusData",
    "CorpusPlan",
    "Granulated",
    "GranulatedKendall",
    "IncompleteGridWarning",
    "KendallTau",
    "Pearson",
    "PgdlCorpus",
    "Scoring",
    "SignError",
    "SignErrors",
    "Statistic",
    "Study",
    "StudyPlan",
    "TrainedCorpus",
    "accuracy",
    "chance_level",
    "compare_measures",
    "conditional_mutual_information",
    "first_component",
    "granulated_kendall",
    "information_by_condition",
    "kendall_tau",
    "load_corpus",
    "load_corpus_plan",
    "load_pgdl",
    "load_study_plan",
    "mean",
    "pearson",
    "predictors",
    "product",
    "rank",
    "score_measures",
    "sign_error",
    "study",
    "train_corpus",
]
