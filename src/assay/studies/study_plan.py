"""Study plans: a corpus (trained here, or PGDL's), the measures of its networks, and how these are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import nearest
from assay.measures.base import Measure
from assay.plans.plan import load_measure
from assay.plans.settings import Node, build, convert, read_yaml
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.pgdl import load_pgdl
from assay.studies.corpus.plan import KEYS, corpus_plan
from assay.studies.corpus.trained import TrainedCorpus
from assay.studies.prediction import Scoring


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
    root = read_yaml(Path(path))
    entries = dict(root.items())
    for key, node in entries.items():
        if key not in (*KEYS, "pgdl"):
            node.fail(f"unknown key{nearest(key, (*KEYS, 'pgdl'))}")
    if "measures" not in entries:
        root.fail("lacks the key 'measures'")
    corpus = _corpus(root, entries)
    measures: dict[str, Measure] = {}
    for node in entries["measures"].elements():
        label, measure = load_measure(node, corpus.train)
        if label in measures:
            node.fail(f"a second measure is called {label!r}: give it a name of its own")
        measures[label] = measure
    run = convert(entries["run"], str, {}) if "run" in entries else f"runs/{Path(path).stem}-study"
    scoring = build(Scoring, entries["scoring"]) if "scoring" in entries else Scoring()
    return StudyPlan(corpus, measures, str(Path(path).parent / run), scoring, root.value)


def _corpus(root: Node, entries: dict[str, Node]) -> Corpus:
    if "pgdl" not in entries:
        corpus = TrainedCorpus(corpus_plan(root))
        if not len(corpus):
            root.fail("has a corpus with no network: train it first (assay corpus train)")
        return corpus
    if "network" in entries:
        entries["pgdl"].fail("is there beside 'network': a corpus is one or the other")
    return load_pgdl(convert(entries["pgdl"], Path, {}))
