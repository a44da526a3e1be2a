"""Check the plan of a corpus or a study before anything is trained or measured: all that would stop it, at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.core.errors import AssayError
from assay.core.fingerprint import remembering
from assay.core.folder import Folder
from assay.core.names import counted
from assay.core.progress import report
from assay.core.user_code import code_in
from assay.measures.base import Measure
from assay.plans.check import check_fit, require_writable
from assay.plans.kinds import other_command
from assay.plans.plan import KEYS
from assay.plans.problems import Collector
from assay.plans.settings import Node
from assay.runs.cells import DONE, FOLDER, CellKey
from assay.runs.evaluate import cell_fingerprint
from assay.runs.examples import Examples
from assay.runs.pixel_range import PixelRanges
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.known_accuracy import accuracy_doubts
from assay.studies.corpus.tabled import TableCorpus
from assay.studies.corpus.trained import TrainedCorpus
from assay.studies.study_plan import StudyPlan, read_study_plan
from assay.subject.subject import Subject

_COMMANDS = ("assay corpus train", "assay corpus study")
_NAMED = 3  # networks in a sentence about a measure


@dataclass(frozen=True)
class CheckedStudy:
    """The plan of a study in which nothing was found wrong that would stop it.

    Args:
        plan: What the plan says.
        untrained: Names of the networks that are still to be trained.
        done: How many cells of the study are done.
        failing: Why cells will fail, by the name of the network and the label of the measure; only where a measure
            need not fit every network.
        notes: What need not be wrong, and likely is, in sentences (`assay.runs.pixel_range`).
    """

    plan: StudyPlan
    untrained: list[str] = field(default_factory=list)
    done: int = 0
    failing: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        corpus, measures = self.plan.corpus, len(self.plan.measures)
        networks = len(corpus) + len(self.untrained)
        names = corpus.hyperparameters
        of = f"{counted(len(names), 'hyper-parameter')} ({', '.join(names)})"
        if self.untrained:
            would = f"would train {len(self.untrained)} of {counted(networks, 'network')} over {of}"
            return f"{would}, and then take {counted(measures, 'measure')} of each" if measures else would
        if not measures:
            return f"would do nothing: {counted(networks, 'network')} over {of} are trained, and no measures are asked"
        cells = f"{networks * measures} cells, {self.done} of them done"
        judged = f", judge {counted(len(corpus.known.columns), 'predictor')} of the table beside them" * isinstance(
            corpus, TableCorpus
        )
        return (
            f"would measure {counted(networks, 'network')} by {counted(measures, 'measure')} ({cells}){judged}, and "
            f"score all by the gap over {of}"
        )


def is_study_plan(root: Node) -> bool:
    """Whether a file looks like a plan of ``assay corpus train`` or ``assay corpus study``, by its keys."""
    return isinstance(root.value, dict) and other_command([*map(str, root.value)], KEYS) in _COMMANDS


def check_study_plan(
    path: str | Path, run: str | None = None, pairs: bool = True, root: Node | None = None
) -> CheckedStudy:
    """Read a plan, load each of its networks in turn, and raise all problems that are found, each with its place.

    Every network whose weights do not fit is named, with the tensors that are missing, unexpected or of another shape.
    Networks that are still to be trained are built. Nothing is trained or measured, and nothing is written.

    Args:
        path: The plan's file.
        run: Folder of the run, instead of the one that the plan names.
        pairs: Whether every measure must fit every network; without this, a cell whose measure does not fit fails.
        root: What the file holds, where it has been read.
    """
    path, problems = Path(path), Collector()
    with code_in(path.parent, changed_anew=True):
        plan = read_study_plan(path, problems, may_train=True, root=root)
        if plan is None:
            problems.raise_any()
            raise AssertionError("a plan without a corpus has a problem")
        plan = plan if run is None else replace(plan, run=run)
        with problems.watching(f"{path}: run"):
            require_writable(Folder(plan.run))
        untrained = _untrained(plan.corpus, plan.place, problems)
        networks = len(plan.corpus) + len(untrained)
        if plan.measures and networks < 2:
            problems.sentences.append(f"{plan.place}: {counted(networks, 'network')}: a study needs at least two")
        pixels = PixelRanges(plan.measures.values())
        done, failing = _check_networks(plan, untrained, problems, pixels)
        if pairs:
            problems.sentences += _by_measure(failing, plan)
        doubts = []
        if not untrained and not problems.sentences:
            doubts = accuracy_doubts(plan.corpus, plan.corpus.subject(plan.corpus.networks[0]))
    problems.raise_any()
    return CheckedStudy(plan, untrained, done, failing, [*doubts, *pixels.sentences])


def _untrained(corpus: Corpus, place: str, problems: Collector) -> list[str]:
    """The networks that are still to be trained, which must be such that they can be."""
    if not isinstance(corpus, TrainedCorpus) or not corpus.untrained:
        return []
    with problems.watching(place):
        require_writable(corpus.folder)
    with problems.watching(place):
        corpus.require_trainable()
    return corpus.untrained


def _check_networks(
    plan: StudyPlan, untrained: list[str], problems: Collector, pixels: PixelRanges
) -> tuple[int, dict[tuple[str, str], str]]:
    """Load every network and check whether the measures fit it: the number of cells that are done, and why some fail.

    What is wrong with the networks themselves goes to ``problems``, of all networks, however many they are.
    """
    corpus, examples = plan.corpus, Examples(plan.measures.values())
    present = set(Folder(plan.run).names(FOLDER, DONE))
    names = [*corpus.networks, *untrained]
    failing: dict[tuple[str, str], str] = {}
    done = 0
    with remembering():
        for number, name in enumerate(names):
            report("networks checked", number, len(names))
            try:
                subject = _subject(corpus, name, untrained)
            except AssayError as error:
                problems.sentences.append(f"{plan.place}: {error}")
                continue
            pixels.look_at(subject)
            for label, measure in plan.measures.items():
                if name in untrained and measure.looks_back:  # its training will leave what the measure looks at
                    continue
                try:
                    check_fit(measure, examples.lend(subject, measure))
                    done += bool(present) and _key(subject, label, measure, examples).done in present
                except AssayError as error:
                    failing[name, label] = str(error)
    report("networks checked", len(names), len(names))
    return done, failing


def _subject(corpus: Corpus, name: str, untrained: list[str]) -> Subject:
    if isinstance(corpus, TrainedCorpus) and name in untrained:
        return corpus.initial_subject(name)
    return corpus.subject(name)


def _key(subject: Subject, label: str, measure: Measure, examples: Examples) -> CellKey:
    return CellKey(subject.name, label, cell_fingerprint(subject, measure, 0, examples))


def _by_measure(failing: dict[tuple[str, str], str], plan: StudyPlan) -> list[str]:
    """A sentence for every measure and reason for which it does not fit some networks."""
    networks: dict[tuple[str, str], list[str]] = {}
    for (name, label), why in failing.items():
        networks.setdefault((label, why.replace(repr(name), "")), []).append(name)
    sentences = []
    for (label, _), names in networks.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        why = failing[names[0], label]
        sentences.append(f"{plan.measure_places[label]}: {', '.join(names[:_NAMED])}{more} × {label}: {why}")
    return sentences
