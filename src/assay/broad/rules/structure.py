"""What a learner is made of: kinds of modules and of fitted attributes, whatever its settings are called."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import nn

from assay.broad.data.features import rows
from assay.broad.rules.bench import Bench
from assay.core.errors import AssayError


def parameters_that_choose(bench: Bench) -> dict[str, str]:
    """The learner's parameters that change what it is made of, each with what it is made of by default.

    Numbers and sizes of layers may be tuned; kinds of layers may not. Each parameter that the team gives is put back to
    its default, one at a time, and the learners compared after learning from the same instances.
    """
    module = bench.parts.learner
    if bench.parts.trained_from is not None:
        return {}
    own = made_of(bench.learner)
    known = inspect.signature(module.factory()).parameters
    choosing = {}
    for name, value in module.parameters.items():
        default = known[name].default if name in known else inspect.Parameter.empty
        if default is inspect.Parameter.empty or default == value or _tuple(default) == _tuple(value):
            continue
        other = replace(module, parameters={k: v for k, v in module.parameters.items() if k != name})
        try:
            by_default = made_of(other.build().fit(rows(bench.features, bench.training)))
        except (AssayError, ValueError, TypeError, RuntimeError):  # a default that does not suit these instances
            continue
        if by_default != own:
            choosing[name] = ", ".join(sorted(by_default - own)) or f"no {', '.join(sorted(own - by_default))}"
    return choosing


def made_of(learner: Any) -> frozenset[str]:
    """The kinds of parts of a fitted learner."""
    ingredients = {f"algorithm {name}" for name in _algorithms(learner)}
    for name, value in getattr(learner, "__dict__", {}).items():
        if isinstance(value, nn.Module):
            ingredients |= {type(part).__name__ for part in value.modules()}
        elif name.endswith("_"):
            ingredients.add(f"{name} ({type(value).__name__})")
    if isinstance(learner, nn.Module):
        ingredients |= {type(part).__name__ for part in learner.modules()}
    return frozenset(ingredients)


def _algorithms(learner: Any) -> set[str]:
    named = getattr(learner, "algorithm", None)
    return {named} if isinstance(named, str) else set(map(str, named)) if isinstance(named, Iterable) else set()


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
