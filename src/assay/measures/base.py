"""Measure: one question asked of one subject. Settings in, a tidy table out."""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import pandas as pd

from assay.core.errors import AssayError, nearest
from assay.core.fingerprint import fingerprint
from assay.core.notebook import facts_as_html
from assay.core.plot import Plot
from assay.core.showing import the_report
from assay.measures.evidence import Measured
from assay.measures.settings import accept_settings
from assay.measures.table import Predictor
from assay.stats.evidence import Evidence
from assay.subject.as_subject import as_subject
from assay.subject.past import Past
from assay.subject.subject import Subject

F = TypeVar("F", bound=Callable[..., Any])
_ASK_A_SUBJECT = ("__call__", "check", "measured")


def _taking_modules(method: F) -> F:
    """A method that is asked of a subject, so that it can be asked of a bare torch module too."""

    @functools.wraps(method)
    def ask(measure: Any, subject: Any) -> Any:
        return method(measure, as_subject(subject))

    return cast(F, ask)


class MeasureType(ABCMeta):
    """The type of measures: settings that a measure does not have, or lacks, are an error that names those it has."""

    if not TYPE_CHECKING:  # type checkers go by the settings themselves

        def __call__(cls, *args, **settings):
            """Make a measure with these settings."""
            known = cls.__signature__.parameters
            varied = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
            unknown = next((name for name in settings if name not in known and not varied), None)
            listed = f"its settings are {', '.join(known) or 'none'}"
            if unknown is not None:
                raise AssayError(f"{cls.__name__} has no setting {unknown!r}: {listed}")
            try:
                cls.__signature__.bind(*args, **settings)
            except TypeError as error:
                raise AssayError(f"{cls.__name__}: {error}; {listed}") from None
            return super().__call__(*args, **settings)

        @property
        def __signature__(cls):
            whole = inspect.signature(cls.__init__)
            return whole.replace(parameters=list(whole.parameters.values())[1:])


@dataclass(frozen=True)
class Measure(metaclass=MeasureType):
    """A frozen dataclass of settings that can be called with a subject.

    A subclass sets ``name`` (what plans and tables call it) and ``__call__``, which returns one row per
    observation, units in the column names. It keeps no state: the same settings and subject give the same
    table, in any process. Called with a bare torch module, it measures a `Subject` made of it.

    Settings are taken as people have them (see `assay.measures.settings.accept_settings`): where a setting is annotated
    `Labelled`, `Images` or `Sequences`, a folder, file, array, data set or table serves too, and a list serves for a
    tuple. A subclass with a ``__post_init__`` of its own calls that of this class first.
    """

    name: ClassVar[str] = ""
    """What plans and tables call the measure."""
    value: ClassVar[str] = ""
    """The column of the table that holds what the measure measures."""
    quantity: ClassVar[str] = ""
    """Which quantity in the column ``value`` is the measure's own, where its table lists several."""
    higher_is: ClassVar[str] = ""
    """What a higher value of the measure means, as in "higher is more curved"."""

    looks_back: ClassVar[tuple[Past, ...]] = ()
    """What the measure looks at of a network's training: its ``initial_weights``, its ``history``, or nothing."""

    _registry = cast("dict[str, type[Measure]]", {})  # not annotated: no field, which would be sent with every class

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _ASK_A_SUBJECT:
            if name in vars(cls):
                setattr(cls, name, _taking_modules(vars(cls)[name]))
        if "__call__" in vars(cls) and "measured" not in vars(cls):
            cls.measured = Measure.measured  # type: ignore[method-assign]  # what the class itself says counts
        if cls.name:
            Measure._registry[cls.name] = cls

    def __post_init__(self) -> None:
        accept_settings(self)

    @abstractmethod
    def __call__(self, subject: Subject) -> pd.DataFrame:
        """Measure one subject, and return a table of one row per observation."""

    @_taking_modules
    def check(self, subject: Subject) -> None:
        """Raise `AssayError` where the settings do not fit the subject; cheap, measures nothing."""

    @_taking_modules
    def measured(self, subject: Subject) -> Measured:
        """Measure one subject, and keep with the table what tells how sure its numbers are, where there is any."""
        return Measured(self(subject))

    def evidence(self, measured: Measured) -> Sequence[Evidence]:
        """The few numbers by which a report compares networks.

        By default the mean of the column ``value``, of the last layer where the table has layers, without an interval.
        """
        table = measured.table
        if self.value not in table or "quantity" in table or not pd.api.types.is_numeric_dtype(table[self.value]):
            return ()
        name = self.name or type(self).__name__
        if "layer" in table:
            name = f"{name} of the last layer"
            table = table[table["layer"] == table["layer"].iloc[-1]]
        return (Evidence(name, float(table[self.value].mean()), n=len(table)),)

    def summary(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table to read first, with the uncertainty beside the value (``low``, ``high``, ``n``)."""
        return table

    def predictors(self, table: pd.DataFrame) -> Mapping[Predictor, float]:
        """The few numbers that a study of many networks takes from the table of one.

        A measure of one quantity need not say which: it is the mean of the column ``value``. One whose table lists
        several must.
        """
        name = self.name or type(self).__name__
        if self.value not in table or "quantity" in table:
            raise AssayError(f"measure {name!r} does not say what a study takes from its table: define predictors()")
        return {Predictor(name): float(table[self.value].mean())}

    def budget(self, table: pd.DataFrame) -> str:
        """What the numbers of a table rest on, in words: how many inputs were shown, and how often.

        Studies print it beside each number, since a measure that saw more inputs is less noisy. It is empty for a
        measure that shows no labelled data.
        """
        if "n" not in table or not hasattr(self, "data"):
            return ""
        draws = getattr(self, "draws", None)
        return f"{int(table['n'].max())} inputs" + (f" × {draws} draws" if isinstance(draws, int) else "")

    def plot(self, table: pd.DataFrame | Mapping[str, pd.DataFrame]) -> Plot:
        """Draw what the measure returned, with the charts that a report has of it.

        Args:
            table: What the measure returned for one network, or such tables by the names of networks, or the table of
                a run, which has them all.

        Returns:
            A figure that a notebook shows; ``plot.save("curvature.pdf")`` writes it, ``plot.figure`` is matplotlib's.

        Example:
            ```python
            measure = assay.Straightness(clips)
            measure.plot({"standard": measure(standard), "robust": measure(robust)})
            ```
        """
        return the_report().plot_tables(self, table)

    def _repr_html_(self) -> str:
        return facts_as_html(f"Measure {self.name or type(self).__name__}", self.settings)

    @property
    def code_version(self) -> str:
        """Hash of this measure's class as it is now and of the source files that its code imports."""
        return fingerprint(type(self))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of this measure by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def given(self) -> list[str]:
        """Names of the settings that are not at their default."""
        return [f.name for f in fields(self) if not _at_default(f, getattr(self, f.name))]

    @staticmethod
    def named(name: str) -> type[Measure]:
        """The class of the measure that is registered under a name."""
        if name not in Measure._registry:
            raise AssayError(f"unknown measure {name!r}{nearest(name, Measure._registry)}")
        return Measure._registry[name]

    @staticmethod
    def known() -> dict[str, type[Measure]]:
        """The classes of all registered measures by name."""
        return dict(Measure._registry)


def _at_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        default = field.default
    elif field.default_factory is not MISSING:
        default = field.default_factory()
    else:
        return False
    return fingerprint(value) == fingerprint(default)


def require_batch_size(asked: int | None) -> None:
    """Refuse a batch size below 1; None leaves the choice to the measure."""
    if asked is not None and asked < 1:
        raise AssayError(f"batch_size={asked} must be at least 1")


def batch_size(subject: Subject, asked: int | None) -> int:
    """The batch size that was asked for, or by default 32 on a CPU and 256 on a GPU."""
    return asked or (256 if subject.device.type == "cuda" else 32)
