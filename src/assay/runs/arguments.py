"""What `evaluate` accepts: subjects, measures, a seed and a place, made of what people have."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from assay.core.errors import AssayError, shown
from assay.core.folder import Folder
from assay.core.labels import numbered
from assay.core.names import require_writable
from assay.measures.base import Measure
from assay.subject.as_subject import as_subject, is_network
from assay.subject.subject import Subject

_MEASURES = "give measures such as assay.Straightness(…), one, several, or by label in a mapping"
_SUBJECTS = "give a torch module or an assay.Subject, one or several"


def as_measures(measures: Any) -> dict[str, Measure]:
    """Measures by label: those of a mapping as they are, others by their names, numbered where they share one."""
    if isinstance(measures, Measure):
        measures = [measures]
    if isinstance(measures, Mapping):
        return {_label(label): _measure(measure, f"measures[{label!r}]") for label, measure in measures.items()}
    if not isinstance(measures, Iterable) or isinstance(measures, (str, bytes)) or inspect.isclass(measures):
        raise _no_measure(measures, "measures")
    labels: dict[str, Measure] = {}
    for place, given in enumerate(measures):
        measure = _measure(given, f"measures[{place}]")
        labels[numbered(measure.name or type(measure).__name__, labels)] = measure
    return labels


def _measure(measure: Any, argument: str) -> Measure:
    if not isinstance(measure, Measure):
        raise _no_measure(measure, argument)
    return measure


def _no_measure(value: Any, argument: str) -> AssayError:
    remedy = _MEASURES
    if inspect.isclass(value) and issubclass(value, Measure):
        remedy = f"it is a class, give a measure with its settings, as {value.__name__}(…)"
    elif isinstance(value, str):
        remedy = f"names of measures belong in a plan, {_MEASURES}"
    return AssayError(f"{argument}={shown(value)} is no measure: {remedy}")


def _label(label: Any) -> str:
    if not isinstance(label, str) or not label.strip():
        raise AssayError(f"measures has the label {shown(label)}: a label must be a text that is not empty")
    require_writable(label, "the label of a measure")
    return label


def as_subjects(subjects: Any) -> Sequence[Subject] | Iterator[Subject]:
    """Subjects made of what was given: a list where all are there already, else one after the other as it is read.

    Bare modules are called by their class, numbered where two share it; in a mapping they are called by their label.
    """
    if isinstance(subjects, Subject) or is_network(subjects):
        return [as_subject(subjects, "subjects")]
    if isinstance(subjects, Mapping):
        return list(_recipes_apart(_named(label, network) for label, network in subjects.items()))
    if not isinstance(subjects, Iterable) or isinstance(subjects, (str, bytes)) or inspect.isclass(subjects):
        raise AssayError(f"subjects={shown(subjects)} is no network: {_SUBJECTS}")
    one_by_one = _recipes_apart(_each(subjects))
    return list(one_by_one) if isinstance(subjects, (Sequence, Set)) else one_by_one


def _named(label: Any, network: Any) -> Subject:
    if not isinstance(label, str) or not label.strip():
        raise AssayError(f"subjects has the label {shown(label)}: a label must be a text that is not empty")
    if is_network(network):
        return Subject(network, label)
    subject = as_subject(network, f"subjects[{label!r}]")
    if subject.name != label:
        raise AssayError(
            f"subjects[{label!r}] is called {subject.name!r}: give a list of subjects, or the label its name"
        )
    return subject


def _each(networks: Iterable[Any]) -> Iterator[Subject]:
    taken: set[str] = set()
    for place, network in enumerate(networks):
        subject = as_subject(network, f"subjects[{place}]", taken)
        if subject.name in taken:
            raise AssayError(f"two subjects are called {subject.name!r}: name them apart")
        taken.add(subject.name)
        yield subject


def _recipes_apart(subjects: Iterable[Subject]) -> Iterator[Subject]:
    """Pass subjects on, and refuse a recipe with the name of a network that is not of it: reports have one for each."""
    named: dict[str, str] = {}  # the recipe of every network
    members: dict[str, str] = {}  # a network of every recipe
    for subject in subjects:
        named[subject.name] = subject.recipe
        if subject.recipe:
            members.setdefault(subject.recipe, subject.name)
        for recipe in (subject.recipe, subject.name):
            if recipe in members and named.get(recipe, recipe) != recipe:
                raise AssayError(
                    f"recipe={recipe!r} of {members[recipe]!r} is also the name of a network that is not of this "
                    "recipe: call one of them otherwise"
                )
        yield subject


def as_seed(seed: Any) -> int:
    """A seed as a whole number; anything else is an error."""
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise AssayError(f"seed={shown(seed)} must be a whole number from 0 to 2⁶³ − 1")
    return number


def as_folder(run: Any) -> Folder:
    """The folder of a run; an error for what names no place."""
    if isinstance(run, Folder):
        return run
    if not isinstance(run, (str, os.PathLike)) or not str(run).strip():
        raise AssayError(f"run={shown(run)} is no place for a run: give the path or URL of a folder")
    return Folder(str(run))
