"""Study plans: a corpus (trained here, anybody's or PGDL's), the measures of its networks, how these are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.measures.base import Measure
from assay.plans.plan import STAND_IN, read_measures
from assay.plans.problems import Collector
from assay.plans.reading import Reading
from assay.plans.settings import Node, build, convert, read_yaml
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.data import CorpusData
from assay.studies.corpus.pgdl import load_pgdl
from assay.studies.corpus.plan import KEYS, corpus_plan
from assay.studies.corpus.tabled import TableCorpus, TableSource
from assay.studies.corpus.trained import TrainedCorpus
from assay.studies.ranking import Scoring
from assay.studies.sizes import defined_sizes


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
    """

    corpus: Corpus
    measures: dict[str, Measure]
    run: str
    scoring: Scoring
    text: Mapping[str, Any]


def load_study_plan(path: str | Path) -> StudyPlan:
    """Read and check a plan whose corpus is already trained; paths in it are relative to its file."""
    path = Path(path)
    root = read_yaml(path)
    known = (*KEYS, "pgdl")
    reading = Reading(root, known, ("measures",))
    problems = reading.problems
    corpus: Corpus | None = None
    if reading.entries:
        with problems.watching():
            corpus = _corpus(root, reading.entries, known)
    measures = read_measures(reading, STAND_IN if corpus is None else corpus.train)
    run = reading.folder("run", f"runs/{path.stem}-study")
    scoring = reading.take("scoring", lambda node: build(Scoring, node), Scoring())
    if isinstance(corpus, TableCorpus) and "sizes" not in (root.value.get("scoring") or {}):
        sizes = defined_sizes(corpus.table["gap"], corpus.table[corpus.hyperparameters])
        scoring = replace(scoring, sizes=sizes)
    problems.raise_any()
    assert corpus is not None  # else there was a problem
    return StudyPlan(corpus, {label: measure for label, (measure, _) in measures.items()}, run, scoring, root.value)


def _corpus(root: Node, entries: Mapping[str, Node], known: tuple[str, ...]) -> Corpus:
    if isinstance(root.value.get("corpus"), dict):
        return _table_corpus(root, entries)
    if "pgdl" not in entries:
        corpus = TrainedCorpus(corpus_plan(root, known))
        if not len(corpus):
            root.fail("has a corpus with no network: train it first (assay corpus train)")
        return corpus
    if "network" in entries:
        entries["pgdl"].fail("is there beside 'network': a corpus is one or the other")
    return load_pgdl(convert(entries["pgdl"], Path, {}))


def _table_corpus(root: Node, entries: Mapping[str, Node]) -> TableCorpus:
    """The corpus of a table of networks that were trained elsewhere."""
    for key in ("network", "grid", "training", "pgdl", "device", "at_once", "seed"):
        if key in entries:
            entries[key].fail("is there beside a table of networks ('corpus'), which are trained already: leave it out")
    if "data" not in entries:
        root.fail("lacks the key 'data': what the networks were trained on, which measures show them")
    source = build(TableSource, entries["corpus"])
    data = build(CorpusData, entries["data"])
    problems, corpus = Collector(), None
    with problems.watching(entries["corpus"].where):
        corpus = TableCorpus(source, data, root.file, root.file.stem)
    problems.raise_any()
    assert corpus is not None  # else there was a problem
    return corpus
