"""Study plans: a corpus (trained here, anybody's or PGDL's), the measures of its networks, how these are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.measures.base import Measure
from assay.plans.plan import STAND_IN, read_measures
from assay.plans.problems import Collector
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml
from assay.stimuli.labelled import Labelled
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.data import CorpusData
from assay.studies.corpus.pgdl import load_pgdl
from assay.studies.corpus.plan import KEYS, CorpusPlan, corpus_plan
from assay.studies.corpus.tabled import TableCorpus, TableSource
from assay.studies.corpus.trained import TrainedCorpus
from assay.studies.ranking import Scoring
from assay.studies.sizes import defined_sizes, notes_on_sizes


@dataclass(frozen=True)
class StudyPlan:
    """Which measures to take of which networks, and how to score them.

    Args:
        corpus: The networks.
        measures: The measures of each network, by label; those that need data get the training set unless the plan
            names other data.
        run: Where the run is written.
        scoring: How the measures are scored.
        text: The plan as written.
        place: File, line and key of the corpus, for errors.
        measure_places: File, line and key of each measure, by label.
    """

    corpus: Corpus
    measures: dict[str, Measure]
    run: str
    scoring: Scoring
    text: Mapping[str, Any]
    place: str = ""
    measure_places: Mapping[str, str] = field(default_factory=dict)


def load_study_plan(path: str | Path) -> StudyPlan:
    """Read and check a plan whose corpus is already trained; paths in it are relative to its file."""
    problems = Collector()
    plan = read_study_plan(path, problems)
    problems.raise_any()
    assert plan is not None  # else there was a problem
    return plan


def read_study_plan(
    path: str | Path, problems: Collector, *, may_train: bool = False, root: Node | None = None
) -> StudyPlan | None:
    """Read a plan as far as it can be understood; all that is wrong with it goes to ``problems``.

    Args:
        path: The plan's file; paths in it are relative to it.
        problems: Collects what is wrong.
        may_train: Whether networks may still have to be trained, and the plan may measure nothing of them afterwards.
        root: What the file holds, where it has been read.

    Returns:
        The plan; None where its corpus cannot be understood.
    """
    path = Path(path)
    root = root or read_yaml(path)
    known = (*KEYS, "pgdl")
    trains_only = may_train and isinstance(root.value, dict) and "grid" in root.value and "measures" not in root.value
    reading = Reading(root, known, () if trains_only else ("measures",), problems)
    corpus: Corpus | None = None
    data = STAND_IN
    if reading.entries:
        corpus, data = _corpus(reading, known)
    measures = read_measures(reading, data)
    run = reading.folder("run", f"runs/{path.stem}-study")
    scoring = reading.take("scoring", lambda node: build(Scoring, node), Scoring())
    if corpus is None:
        return None
    if not len(corpus) and not may_train:
        with problems.watching():
            root.fail("has a corpus with no network: train it first (assay corpus train)")
    written = root.value.get("scoring")
    if isinstance(corpus, TableCorpus) and not (isinstance(written, dict) and "sizes" in written):
        with problems.watching(reading.entries["corpus"].where):
            grid = corpus.table[corpus.hyperparameters]
            sizes = defined_sizes(corpus.table["gap"], grid)
            scoring = replace(scoring, sizes=sizes)
            corpus.read = replace(corpus.read, notes=(*corpus.notes, *notes_on_sizes(sizes, grid)))
    key = "pgdl" if "pgdl" in reading.entries else "network" if isinstance(corpus, TrainedCorpus) else "corpus"
    return StudyPlan(
        corpus,
        {label: measure for label, (measure, _) in measures.items()},
        run,
        scoring,
        root.value,
        reading.entries[key].where,
        {label: where for label, (_, where) in measures.items()},
    )


def _corpus(reading: Reading, known: tuple[str, ...]) -> tuple[Corpus | None, Labelled]:
    """The corpus of a plan, None where something is wrong with it, and its training data as far as they are read."""
    root, entries, problems = reading.node, reading.entries, reading.problems
    if isinstance(root.value.get("corpus"), dict):
        return _table_corpus(reading)
    if "pgdl" in entries:
        with problems.watching():
            if "network" in entries:
                entries["pgdl"].fail("is there beside 'network': a corpus is one or the other")
            corpus = load_pgdl(convert(entries["pgdl"], Path, {}))
            return corpus, corpus.train
        return None, STAND_IN
    data = reading.take("data", lambda node: build(CorpusData, node), None)
    plan: CorpusPlan | None = None
    with problems.watching():
        plan = corpus_plan(root, known)
    if data is not None:
        with problems.watching(entries["data"].where):
            data.require_there()
            if plan is not None:
                trained = TrainedCorpus(plan)
                return trained, trained.train
    return None, STAND_IN


def _table_corpus(reading: Reading) -> tuple[TableCorpus | None, Labelled]:
    """The corpus of a table of networks that were trained elsewhere, and its training data."""
    root, entries, problems = reading.node, reading.entries, reading.problems
    for key in ("network", "grid", "training", "pgdl", "device", "at_once", "seed"):
        if key in entries:
            with problems.watching():
                entries[key].fail(
                    "is there beside a table of networks ('corpus'), which are trained already: leave it out"
                )
    source = reading.take("corpus", lambda node: build(TableSource, node), None)
    data = reading.take("data", lambda node: build(CorpusData, node), None)
    if "data" not in entries:
        with problems.watching():
            root.fail("lacks the key 'data': what the networks were trained on, which measures show them")
    corpus: TableCorpus | None = None
    train = STAND_IN
    if source is not None:
        with problems.watching(entries["corpus"].where):
            corpus = TableCorpus(source, data or CorpusData(Path()), root.file, root.file.stem)
    if data is not None:
        with problems.watching(entries["data"].where):
            train = data.load_train(0) if corpus is None else corpus.train
            if corpus is not None:
                _ = corpus.test  # which a study looks at only when all is measured
    if corpus is None or train is STAND_IN:
        return None, train
    with problems.watching(entries["corpus"].where):
        corpus.require_arguments()
        return corpus, train
    return None, train
