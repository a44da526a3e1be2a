"""A corpus of anybody's networks: a table with a row for each, a factory that makes them, files of their weights."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from assay.core.checkpoints import read_tensors, require_checkpoint
from assay.core.errors import AssayError, nearest
from assay.core.reading import is_file
from assay.core.user_code import code_in, import_named
from assay.plans.places import path_in
from assay.plans.problems import Collector
from assay.stimuli.labelled import Labelled
from assay.stimuli.transforms import transform_named
from assay.studies.corpus.corpus import Corpus
from assay.studies.corpus.data import CorpusData
from assay.studies.corpus.network_table import FILES, Columns, read_network_table
from assay.subject.source import KINDS, SubjectSource, read_history
from assay.subject.subject import Subject

ROW = "row"
_OTHER_KINDS = ("timm:", "hf:")
_NAMED = 3  # files in a sentence


@dataclass(frozen=True)
class TableSource:
    """Networks that were trained elsewhere, as the key ``corpus`` of a plan describes them.

    Patterns are paths in which ``{column}`` stands for what the row of a network has in that column, as it is written
    there; they are relative to the plan's file.

    Args:
        table: CSV file with one row per network: ``network``, hyper-parameters, and ``gap`` or ``train_accuracy`` and
            ``test_accuracy``; see `assay.studies.read_network_table`.
        source: What makes a network: ``module:factory``, ``timm:name`` or ``hf:name``. A factory is given the columns
            that it has arguments for, by name; the whole row as a mapping if it has an argument ``row``; and
            ``classes`` and ``channels`` of the data if it asks for them.
        weights: Pattern of the files of weights, safetensors or torch files of tensors only; by default the table's
            column ``weights``.
        initial_weights: Pattern of the weights before training; by default the column of that name, if there is one.
        history: Pattern of CSV files with the loss of each epoch; by default the column of that name, if there is one.
        hyperparameters: The columns in which the networks differ by design; guessed by default.
        predictors: The columns that are judged beside what is measured; by default all other columns of numbers.
        network: The column that names each network, if it is not called so.
        gap: The column of the gap, if it is not called so.
        train_accuracy: The column of the training accuracy, if it is not called so.
        test_accuracy: The column of the test accuracy, if it is not called so.
        args: Arguments of the factory that are the same for all networks.
        preprocess: What is done to pictures before the networks see them, such as ``imagenet``; nothing by default.
        device: Device on which the networks run.
        dtype: Precision, such as ``bfloat16``.
        channels_last: Whether to run pictures in channels-last memory format.
    """

    table: Path
    source: str
    weights: str | None = None
    initial_weights: str | None = None
    history: str | None = None
    hyperparameters: tuple[str, ...] | None = None
    predictors: tuple[str, ...] | None = None
    network: str | None = None
    gap: str | None = None
    train_accuracy: str | None = None
    test_accuracy: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    preprocess: str | dict[str, Any] | list[Any] | None = None
    device: str | None = None
    dtype: str | None = None
    channels_last: bool = False


class TableCorpus(Corpus):
    """The networks of a table, each made by one factory and loaded from its file of weights when it is asked for.

    That every network has a file of weights, which is not cut short, is checked at once; that the factory is given all
    that it needs, by `require_arguments`; that the weights fit, when a network is loaded.

    Args:
        source: The table, the factory and the files.
        data: What the networks were trained on, and tested on where that is at hand.
        file: Plan that patterns are relative to, and beside which modules are found.
        name: What reports call the corpus; by default the name of the table's file.
    """

    def __init__(self, source: TableSource, data: CorpusData, file: str | Path = "plan.yaml", name: str = "") -> None:
        self.source = source
        self.file = Path(file)
        self.name = name or source.table.stem
        self._data = data
        problems = Collector()
        with problems.watching():
            _ = self._parameters
        with problems.watching():
            if source.preprocess is not None:
                transform_named(source.preprocess)
        with problems.watching():
            self._read_table()
            self._require_files()
        problems.raise_any()

    def _read_table(self) -> None:
        source = self.source
        self.read = read_network_table(
            source.table,
            Columns(
                source.network,
                source.gap,
                source.train_accuracy,
                source.test_accuracy,
                source.hyperparameters,
                source.predictors,
            ),
        )
        self.table = self.read.table.drop(columns=self.read.predictors)
        if not self.hyperparameters:
            raise AssayError(
                f"{source.table}: no column is a hyper-parameter in which the networks differ: give one, or name those "
                f"that are ('hyperparameters'); it has {self.read.columns}"
            )

    @property
    def hyperparameters(self) -> list[str]:
        """The columns in which the networks differ by design, as they were given or guessed."""
        return self.read.hyperparameters

    @property
    def known(self) -> pd.DataFrame:
        """The columns of numbers that may predict the gap."""
        return self.read.table.set_index("network")[self.read.predictors].astype(float)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed of the table, in sentences."""
        return self.read.notes

    @cached_property
    def train(self) -> Labelled:
        """What the networks were trained on."""
        return self._data.load_train(0)

    @cached_property
    def test(self) -> Labelled | None:
        """What the networks were tested on; None where it is not at hand."""
        return self._data.load_test(0)

    def subject(self, network: str) -> Subject:
        """Make a network by the factory and load its weights; those that do not fit are an error that names both."""
        given = self.source
        made = SubjectSource(
            given.source,
            network,
            self._arguments(network),
            self._file(network, "weights"),
            preprocess=given.preprocess,
            device=given.device,
            dtype=given.dtype,
            channels_last=given.channels_last,
        )
        try:
            with code_in(self.file.parent):
                subject = made.load()
        except AssayError as error:
            raise AssayError(f"{network}: {error}") from error
        subject.example = self.train.shape if subject.example is None else subject.example
        subject.initial_weights, subject.history = self.initial_weights(network), self.history(network)
        return subject

    def initial_weights(self, network: str) -> dict[str, Tensor] | None:
        """The weights of a network before training by name; None where there are none."""
        path = self._file(network, "initial_weights")
        return None if path is None else read_tensors(path)

    def history(self, network: str) -> pd.DataFrame | None:
        """The loss of a network in each epoch of its training; None where it was not kept."""
        path = self._file(network, "history")
        return None if path is None else read_history(path)

    def _file(self, network: str, kind: str) -> Path | None:
        """The file of a network that a pattern of the plan names, or the column of that name; None where none does."""
        texts = pd.concat([pd.Series({"network": network}), self.read.texts.iloc[self.require(network)]])
        texts = texts[~texts.index.duplicated(keep="last")]
        pattern = getattr(self.source, kind)
        if pattern is not None:
            return path_in(self.file, filled(pattern, texts.to_dict(), kind))
        written = str(texts.get(kind, ""))
        return path_in(self.source.table, written) if written else None

    def _require_files(self) -> None:
        """Raise an error unless every network has weights of its own, and all other files that a pattern names.

        Every file is looked at, so that those that are damaged are named together, before anything is measured.
        """
        problems = Collector()
        for kind in FILES:
            files = {network: self._file(network, kind) for network in self.networks}
            if kind == "weights" and None in files.values():
                without = next(network for network, file in files.items() if file is None)
                raise AssayError(
                    f"{self.source.table} does not say where the weights of {without} are: give 'weights' in the plan, "
                    "such as \"{network}.safetensors\", or a column 'weights'"
                )
            there: dict[Path, str] = {}
            missing = []
            for network, file in files.items():
                if file is None:
                    continue
                if not is_file(file):
                    missing.append(f"{file} (of {network})")
                else:
                    with problems.watching(network):
                        (read_history if kind == "history" else require_checkpoint)(file)
                if file in there:
                    raise AssayError(f"{kind}: {file} is that of {there[file]} and of {network}: give each its own")
                there[file] = network
            with problems.watching():
                if missing:
                    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
                    raise AssayError(
                        f"{kind}: {len(missing)} of {len(files)} networks have no file: {', '.join(missing[:_NAMED])}"
                        f"{more}"
                    )
        problems.raise_any()

    def require_arguments(self) -> None:
        """Raise an error where the factory needs what neither the table nor the data nor ``args`` give."""
        self._arguments(self.networks[0])

    def _arguments(self, network: str) -> dict[str, Any]:
        """What the factory is given for a network: fixed arguments, and the columns that it asks for by name."""
        given = dict(self.source.args)
        row = {**self.read.values.iloc[self.require(network)], **self.table.iloc[self.require(network)]}
        cells = {str(name): _plain(value) for name, value in row.items()}
        for name, parameter in self._parameters.items():
            if name in given:
                continue
            if name == ROW and ROW not in cells:
                given[ROW] = cells
            elif name in cells:
                whole = parameter.annotation in (int, "int") or type(parameter.default) is int
                value = cells[name]
                given[name] = int(value) if whole and isinstance(value, float) and value.is_integer() else value
            elif name in ("classes", "channels"):
                given[name] = self.train.classes if name == "classes" else self.train.shape[0]
            elif parameter.default is parameter.empty:
                raise AssayError(
                    f"source={self.source.source!r} needs {name!r}, which is no column of {self.source.table}; it has "
                    f"{self.read.columns}. Add it, give it in 'args', or take the whole row by an argument 'row'"
                )
        return given

    @cached_property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        """The arguments of the factory that can be given by name; none of what is no factory of the user's."""
        if self.source.source.startswith(_OTHER_KINDS) or self.source.source.endswith(".onnx"):
            return {}
        with code_in(self.file.parent):
            factory = import_named(self.source.source, f"source={self.source.source!r}", KINDS)
        try:
            parameters = inspect.signature(factory).parameters
        except (TypeError, ValueError):  # no function, which making the network then says; or one of C
            return {}
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
        return {name: one for name, one in parameters.items() if one.kind not in several}


def filled(pattern: str, cells: Mapping[str, str], what: str) -> str:
    """A path with ``{column}`` replaced by what a row has there.

    >>> filled("runs/{network}/w{width}.pt", {"network": "n1", "width": "016"}, "weights")
    'runs/n1/w016.pt'
    """

    def cell(match: re.Match[str]) -> str:
        if match[1] not in cells:
            raise AssayError(
                f"{what}={pattern!r} names the column {match[1]!r}{nearest(match[1], cells)}; the table has "
                f"{', '.join(cells)}"
            )
        return cells[match[1]]

    return re.sub(r"\{([^{}]*)\}", cell, pattern)


def _plain(value: Any) -> Any:
    """A cell as Python's own number, truth value or text."""
    return value.item() if hasattr(value, "item") else value
