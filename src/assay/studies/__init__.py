"""What many networks say together: does a measure predict their generalization gap?"""

from assay.studies.corpus.corpus import Corpus, accuracy
from assay.studies.corpus.pgdl import PgdlCorpus, load_pgdl
from assay.studies.corpus.plan import CorpusData, CorpusPlan, load_corpus_plan
from assay.studies.corpus.trained import TrainedCorpus, load_corpus, train_corpus
from assay.studies.prediction import Scoring, Study, predictors, rank, study
from assay.studies.search.plan import SearchPlan, load_search_plan
from assay.studies.search.search import run_search
from assay.studies.search.table import Search, read_search
from assay.studies.statistics.cmi import (
    ConditionalMutualInformation,
    IncompleteGridWarning,
    conditional_mutual_information,
    information_by_condition,
)
from assay.studies.statistics.combinations import first_component, mean, product
from assay.studies.statistics.intervals import STATISTICS, chance_level, compare_measures, score_measures
from assay.studies.statistics.kendall import (
    Granulated,
    GranulatedKendall,
    KendallTau,
    Pearson,
    granulated_kendall,
    kendall_tau,
    pearson,
)
from assay.studies.statistics.sign_error import SignError, SignErrors, sign_error
from assay.studies.statistics.statistic import Statistic
from assay.studies.study_plan import StudyPlan, load_study_plan

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
    "Search",
    "SearchPlan",
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
    "load_search_plan",
    "load_study_plan",
    "mean",
    "pearson",
    "predictors",
    "product",
    "rank",
    "read_search",
    "run_search",
    "score_measures",
    "sign_error",
    "study",
    "train_corpus",
]


def __dir__() -> list[str]:
    return sorted(__all__)
