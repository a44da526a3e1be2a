"""What many networks say together: does a measure predict another, or their gap; when may training stop?"""

from assay.studies.agreement import correlation_matrix, metric_agreement, overview
from assay.studies.combined import combined_prediction
from assay.studies.controls import affordable_controls, control_columns, control_predictors, partial_correlations
from assay.studies.corpus.corpus import Corpus, accuracy
from assay.studies.corpus.data import CorpusData
from assay.studies.corpus.network_table import Columns, NetworkTable, read_network_table
from assay.studies.corpus.pgdl import PgdlCorpus, load_pgdl
from assay.studies.corpus.plan import CorpusPlan, load_corpus_plan
from assay.studies.corpus.tabled import TableCorpus, TableSource
from assay.studies.corpus.trained import TrainedCorpus, load_corpus, train_corpus
from assay.studies.discarding import discard_below_population, discard_summary
from assay.studies.families import compare_families, family_means
from assay.studies.prediction import Study, judge, predictors, study
from assay.studies.ranking import Scoring, rank
from assay.studies.scored_table import score_table
from assay.studies.search.plan import SearchPlan, load_search_plan
from assay.studies.search.search import run_search
from assay.studies.search.table import Search, read_search
from assay.studies.stability import by_epoch, stable_epochs, when_stable
from assay.studies.statistics.chance import AgainstChance, against_chance
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
from assay.studies.stopping import (
    Outcome,
    compare_signals,
    matching_threshold,
    saving_tradeoff,
    stop_when_converged,
    stopping_summary,
)
from assay.studies.study_plan import StudyPlan, load_study_plan

__all__ = [
    "STATISTICS",
    "AgainstChance",
    "Columns",
    "ConditionalMutualInformation",
    "Corpus",
    "CorpusData",
    "CorpusPlan",
    "Granulated",
    "GranulatedKendall",
    "IncompleteGridWarning",
    "KendallTau",
    "NetworkTable",
    "Outcome",
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
    "TableCorpus",
    "TableSource",
    "TrainedCorpus",
    "accuracy",
    "affordable_controls",
    "against_chance",
    "by_epoch",
    "chance_level",
    "combined_prediction",
    "compare_families",
    "compare_measures",
    "compare_signals",
    "conditional_mutual_information",
    "control_columns",
    "control_predictors",
    "correlation_matrix",
    "discard_below_population",
    "discard_summary",
    "family_means",
    "first_component",
    "granulated_kendall",
    "information_by_condition",
    "judge",
    "kendall_tau",
    "load_corpus",
    "load_corpus_plan",
    "load_pgdl",
    "load_search_plan",
    "load_study_plan",
    "matching_threshold",
    "mean",
    "metric_agreement",
    "overview",
    "partial_correlations",
    "pearson",
    "predictors",
    "product",
    "rank",
    "read_network_table",
    "read_search",
    "run_search",
    "saving_tradeoff",
    "score_measures",
    "score_table",
    "sign_error",
    "stable_epochs",
    "stop_when_converged",
    "stopping_summary",
    "study",
    "train_corpus",
    "when_stable",
]


def __dir__() -> list[str]:
    return sorted(__all__)
