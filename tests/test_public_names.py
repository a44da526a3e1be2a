"""What completion and help show of assay reads well: only public names, each with a sentence that stands alone."""

from __future__ import annotations

import inspect
import types
from functools import cached_property
from typing import Any

import pytest

import assay

ROOMS = {"assay": assay, **{f"assay.{name}": getattr(assay, name) for name in assay._ROOMS}}
DESCRIBED = (property, cached_property, staticmethod, classmethod, types.FunctionType)


def members(kind: type) -> dict[str, Any]:
    """The public methods and properties of a class that assay wrote."""
    found = {}
    for name in dir(kind):
        owner = next(base for base in kind.__mro__ if name in vars(base)) if not name.startswith("_") else object
        if owner.__module__.startswith("assay.") and isinstance(vars(owner)[name], DESCRIBED):
            found[name] = vars(owner)[name]
    return found


@pytest.mark.parametrize("place", ROOMS)
def test_completion_lists_the_public_names_and_no_others(place):
    room = ROOMS[place]
    listed = [name for name in dir(room) if not name.startswith("__")]
    assert listed == sorted(room.__all__) and not [name for name in listed if name.startswith("_")]
    assert not {"annotations", "Any", "TYPE_CHECKING"} & vars(room).keys()


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_name_has_a_docstring_whose_first_line_stands_alone(place):
    poor = []
    for name in ROOMS[place].__all__:
        thing = getattr(ROOMS[place], name)
        described = {name: thing} if callable(thing) or inspect.ismodule(thing) else {}
        if inspect.isclass(thing):
            described |= {f"{name}.{member}": value for member, value in members(thing).items()}
        for label, value in described.items():
            first = (inspect.getdoc(getattr(value, "__func__", value)) or "").partition("\n")[0]
            if len(first) < 20 or first[-1] not in ".?…" or first[0].islower():
                poor.append(f"{label}: {first}")
    assert not poor


def test_runs_subjects_and_measures_are_completed_with_what_people_look_for():
    assert {"table", "summary", "plot", "compare", "report", "failures", "measures", "subjects"} <= members(
        assay.Run
    ).keys()
    assert {"plot", "summary", "settings"} <= members(assay.Straightness).keys()
    assert {"layers", "record", "split"} <= members(assay.Subject).keys()
