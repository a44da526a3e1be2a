"""A table of anybody's networks: a CSV file with one row per network, understood column by column.

What a column is follows from its name, from what it holds, or from what the user says; every guess is kept as a
sentence for people to read (`NetworkTable.notes`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from assay.core.csv_files import read_csv
from assay.core.errors import AssayError, nearest
from assay.core.names import require_writable
from assay.core.reading import read_text, reading
from assay.studies.corpus.columns import (
    absent,
    as_shares,
    is_number,
    meant_as_numbers,
    normal,
    typed,
    without_number,
)
from assay.studies.corpus.given_gap import given_gap

NETWORK, GAP, TRAIN, TEST = "network", "gap", "train_accuracy", "test_accuracy"
ALIASES = {
    NETWORK: ("network", "model", "name", "network_name", "model_name", "network_id", "model_id", "checkpoint", "id"),
    GAP: ("gap", "generalization_gap", "generalisation_gap", "gen_gap"),
    TRAIN: ("train_accuracy", "training_accuracy", "train_acc", "training_acc", "acc_train", "accuracy_train"),
    TEST: (
        "test_accuracy", "testing_accuracy", "test_acc", "acc_test", "accuracy_test",
        "val_accuracy", "validation_accuracy", "val_acc", "valid_acc", "acc_val",
    ),
}  # fmt: skip
"""Names under which people have the columns that every corpus has, in lower case, with ``_`` between words."""
REPLICATES = ("seed", "random_seed", "seeds", "replicate", "repetition", "trial")
FILES = ("weights", "initial_weights", "history")
_OF_NEW_DATA = {"test", "testing", "val", "valid", "validation", "eval", "evaluation"}
"""Words in the names of columns that were found on new data, as the gap was, and so are no predictors of it."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what; None for one that is found by its name.

    Args:
        network: The names of the networks.
        gap: The generalization gap.
        train_accuracy: The accuracy on the training data.
        test_accuracy: The accuracy on new data.
        hyperparameters: The columns in which the networks differ by design; guessed by default.
        predictors: The columns that may predict the gap; by default all other columns of numbers.
    """

    network: str | None = None
    gap: str | None = None
    train_accuracy: str | None = None
    test_accuracy: str | None = None
    hyperparameters: tuple[str, ...] | None = None
    predictors: tuple[str, ...] | None = None


@dataclass(frozen=True)
class NetworkTable:
    """The networks of a table.

    Args:
        path: The file.
        table: One row per network: ``network``, the hyper-parameters, ``train_accuracy`` and ``test_accuracy`` where
            they are known, ``gap``, and the columns that are none of these.
        texts: All cells as the file has them, with the file's own columns.
        values: The same as numbers and truth values, where a column holds such.
        hyperparameters: The columns in which the networks differ by design.
        predictors: The columns of numbers that may predict the gap.
        notes: What was guessed or left out, in sentences.
    """

    path: Path
    table: pd.DataFrame
    texts: pd.DataFrame
    values: pd.DataFrame
    hyperparameters: list[str]
    predictors: list[str]
    notes: tuple[str, ...]

    @property
    def columns(self) -> str:
        """The names of the file's columns, as part of a sentence."""
        return ", ".join(map(str, self.texts))


def read_network_table(
    path: str | Path, columns: Columns | None = None, *, networks_are_named: bool = True
) -> NetworkTable:
    """Read a table with one row per network: hyper-parameters, the gap or accuracies, any other numbers.

    The gap is a column of its own, or training accuracy minus test accuracy; one that is the negative of that is
    refused, and of one that is something else a note says so. Accuracies may be percentages, where all of them are.
    Decimal commas are read where semicolons separate the cells. A column is taken for a hyper-parameter
    if it holds words or truth values, or numbers with few levels (each for two networks or more, on average), unless it
    is the same for all networks, empty for half of them, or follows from the hyper-parameters to its left. Seeds tell
    networks of one kind apart and are no hyper-parameters.

    Args:
        path: The file: CSV in UTF-8, with commas, semicolons or tabs.
        columns: Which columns hold what, where names do not tell.
        networks_are_named: Whether a table without names of networks is an error; else its rows are numbered.
    """
    path, asked = Path(path), columns or Columns()
    texts, separator = _read(path)
    there = [str(column) for column in texts]
    for column in (asked.network, asked.gap, asked.train_accuracy, asked.test_accuracy):
        _require(path, there, [] if column is None else [column])
    _require(path, there, (*(asked.hyperparameters or ()), *(asked.predictors or ())))
    notes: list[str] = []
    roles = _roles(there, asked, notes)
    names = _names(path, texts, roles.get(NETWORK), networks_are_named, notes)
    values = {column: typed(texts[column], decimal_comma=separator == ";") for column in there}
    commas = [c for c, held in values.items() if is_number(held) and texts[c].str.contains(",").any()]
    if commas:
        notes.append(f"numbers with decimal commas: {', '.join(commas)}")
    results = _results(path, values, roles, names, notes)
    _check_gap(path, values, roles, asked, notes)
    given = (*(asked.hyperparameters or ()), *(asked.predictors or ()))
    others = {c: v for c, v in values.items() if c in given or c not in (*roles.values(), *roles)}
    hyperparameters = _hyperparameters(path, others, asked, names, notes)
    predictors = _predictors(path, others, asked, hyperparameters, names, notes)
    taken = {NETWORK: pd.Series(names), **{h: others[h] for h in hyperparameters}, **results}
    rest = {c: v for c, v in others.items() if c not in taken}
    table = pd.DataFrame(taken | rest)
    return NetworkTable(path, table, texts, pd.DataFrame(values), hyperparameters, predictors, tuple(notes))


def _read(path: Path) -> tuple[pd.DataFrame, str]:
    """All cells as text, under stripped names of columns that differ, and what separates them."""
    text = read_text(path, "a table", encoding="utf-8-sig")
    with reading(path, "a table", "write one row per network, with the names of the columns in the first"):
        head = text.partition("\n")[0]
        stated = re.fullmatch(r'"?sep=([,;\t])"?', head.strip(" \r"))  # for a spreadsheet, before the table
        if stated:
            text = text.partition("\n")[2]
            head = text.partition("\n")[0]
        separator = stated[1] if stated else max(",;\t", key=re.sub(r'"[^"]*"', "", head).count)
        texts = read_csv(text.encode(), sep=separator, dtype=str, keep_default_na=False)
        if not isinstance(texts.index, pd.RangeIndex):
            raise ValueError(
                "its rows have more cells than the first row has names; decimal commas need semicolons between cells"
            )
    written = [name.strip() for name in next(csv.reader([head], delimiter=separator, skipinitialspace=True), [])]
    twice = sorted({name for name in written if name and written.count(name) > 1})
    if twice:
        raise AssayError(f"{path} has the column {twice[0]!r} twice: rename one")
    texts = texts.map(lambda cell: str(cell).strip())
    texts.columns = pd.Index([str(column).strip() for column in texts])
    nameless = [column for column in map(str, texts) if re.fullmatch(r"Unnamed: \d+", column)]  # as pandas calls them
    if nameless[:1] == ["Unnamed: 0"] and not texts["Unnamed: 0"].str.fullmatch(r"\d*").all():
        texts = texts.rename(columns={nameless.pop(0): NETWORK})  # the index of a table that pandas wrote
    texts = texts.drop(columns=nameless)
    if texts.empty:
        raise AssayError(f"{path} has no rows: write one for each network, below the names of the columns")
    for column in texts:
        require_writable(str(column), f"{path}: the column")
    return texts, separator


def _require(path: Path, there: Sequence[str], columns: Iterable[str]) -> None:
    for column in columns:
        if column not in there:
            raise AssayError(f"{path} has no column {column!r}{nearest(column, there)}")


def _roles(there: list[str], asked: Columns, notes: list[str]) -> dict[str, str]:
    """The column of each thing that every corpus has: the one that was asked for, or one with a usual name."""
    roles: dict[str, str] = {}
    spoken_for = {*(asked.hyperparameters or ()), *(asked.predictors or ())}
    for role, aliases in ALIASES.items():
        chosen = getattr(asked, role)
        if chosen is None:
            free = [column for column in there if column not in spoken_for and column not in roles.values()]
            by_name = {normal(column): column for column in reversed(free)}
            # Beside a gap, only assay's own name is surely the accuracy itself, and not a measure made of it.
            known = aliases[:1] if role == TRAIN and GAP in roles else aliases
            chosen = next((by_name[alias] for alias in known if alias in by_name), None)
            unsure = next((by_name[alias] for alias in aliases if alias in by_name), None)
            if chosen is None and unsure is not None:
                notes.append(f"{unsure!r} is no control beside a gap: call it {TRAIN!r} if it is that accuracy")
            if chosen is not None and chosen != role:
                notes.append(f"{role} is the column {chosen!r}")
        if chosen is not None:
            roles[role] = chosen
    return roles


def _names(path: Path, texts: pd.DataFrame, column: str | None, required: bool, notes: list[str]) -> list[str]:
    if column is None:
        if required:
            raise AssayError(
                f"{path} has no column 'network': name every network in it; it has {', '.join(map(str, texts))}"
            )
        notes.append("no column names the networks: they are called by their rows")
        return [f"row {number}" for number in range(1, len(texts) + 1)]
    names = texts[column].tolist()
    for number, name in enumerate(names, 1):
        if not name:
            raise AssayError(f"{path}: row {number} has no {column!r}: name every network")
        require_writable(name, f"{path}: the network")
        if names.index(name) < number - 1:
            first = names.index(name) + 1
            raise AssayError(f"{path} has the {column} {name!r} twice, in rows {first} and {number}: give one row each")
    return names


def _results(
    path: Path, values: dict[str, pd.Series], roles: dict[str, str], names: list[str], notes: list[str]
) -> dict[str, pd.Series]:
    """The accuracies that are there, and the gap."""
    missing = [role for role in (TRAIN, TEST) if role not in roles]
    if GAP not in roles and missing:
        has = f" (it has {roles[TRAIN if missing == [TEST] else TEST]!r})" if len(missing) == 1 else ""
        lacking = " and no ".join(map(repr, missing))
        raise AssayError(
            f"{path} has no column 'gap' and no {lacking}{has}: give the gap, or both accuracies, or say which columns "
            f"they are; it has {', '.join(values)}"
        )
    results = {}
    for role in (TRAIN, TEST, GAP):
        if role not in roles:
            continue
        column = roles[role]
        numbers = values[column]
        if not is_number(numbers):
            raise AssayError(f"{path}: {column!r} is to be numbers, and {without_number(numbers, names)}")
        if role == GAP or GAP not in roles:
            unknown = [name for name, number in zip(names, numbers, strict=True) if not np.isfinite(number)]
            if unknown:
                raise AssayError(
                    f"{path}: {column!r} is missing or infinite for {', '.join(unknown[:5])}"
                    f"{', …' if len(unknown) > 5 else ''}: fill in the number, or leave out the row"
                )
        results[role] = numbers.astype(float)
    accuracies = {roles[role]: results[role] for role in (TRAIN, TEST) if role in results}
    shares = as_shares(path, accuracies, names, notes)
    results |= {role: shares[roles[role]] for role in (TRAIN, TEST) if role in results}
    if GAP not in results:
        results[GAP] = (results[TRAIN] - results[TEST]).round(12)  # differences that are equal but for rounding tie
        notes.append(f"gap is {roles[TRAIN]!r} minus {roles[TEST]!r}")
    return results


def _check_gap(
    path: Path, values: dict[str, pd.Series], roles: dict[str, str], asked: Columns, notes: list[str]
) -> None:
    """Refuse a gap that is test minus training accuracy, and say where it is another than their difference."""
    spoken_for = {*(asked.hyperparameters or ()), *(asked.predictors or ()), *roles.values()}
    by_name = {normal(column): column for column in reversed([c for c in values if c not in spoken_for])}
    train = roles.get(TRAIN) or next((by_name[alias] for alias in ALIASES[TRAIN] if alias in by_name), None)
    if GAP not in roles or TEST not in roles or train is None or not is_number(values[train]):
        return
    gap, test = roles[GAP], roles[TEST]
    given = given_gap(values[gap], values[train], values[test])
    if given is None or given.is_difference:
        return
    if given.is_negative:
        raise AssayError(
            f"{path}: {gap!r} is {test!r} minus {train!r}, and a gap is training minus test accuracy: turn its sign, "
            "or leave the column out, and the gap is made of the accuracies"
        )
    like = "" if np.isnan(given.rho) else f" (rank correlation {given.rho:.2f})"
    notes.append(f"{gap!r} is not {train!r} minus {test!r}{like}: it is taken as it is, such as for a gap of losses")


def _hyperparameters(
    path: Path, values: dict[str, pd.Series], asked: Columns, names: list[str], notes: list[str]
) -> list[str]:
    if asked.hyperparameters is not None:
        for column in asked.hyperparameters:
            unknown = absent(values[column], names)
            if unknown:
                raise AssayError(
                    f"{path}: the hyper-parameter {column!r} is missing for {unknown[0]}: name the level, such as 0 or "
                    "off"
                )
            if values[column].nunique() == 1:
                level = str(values[column].iloc[0])
                raise AssayError(f"{path}: the hyper-parameter {column!r} is {level} for all networks: leave it out")
        return list(dict.fromkeys(asked.hyperparameters))
    chosen: list[str] = []
    cells = pd.Series(0, index=range(len(names)))
    for column, held in values.items():
        if column in (asked.predictors or ()) or normal(column) in (*REPLICATES, *FILES):
            continue
        unknown = absent(held, names)
        known = held[~pd.Series(names).isin(unknown)]
        most = len(known) / 2 if meant_as_numbers(held) else len(known) - 1
        if not 2 <= known.nunique() <= most or 2 * len(unknown) >= len(names):
            continue
        if chosen and not (known.groupby(cells).nunique() > 1).any():
            continue  # it follows from those to its left
        if unknown:
            raise AssayError(
                f"{path}: {column!r}, by its few levels a hyper-parameter, is missing for {', '.join(unknown[:5])}"
                f"{', …' if len(unknown) > 5 else ''}: name the level, such as 0 or off, or say which columns are the "
                "hyper-parameters"
            )
        chosen.append(column)
        cells = pd.Series(pd.factorize(pd.MultiIndex.from_frame(pd.DataFrame({c: values[c] for c in chosen})))[0])
    if chosen:
        notes.append(f"hyper-parameters, guessed by their few levels: {', '.join(chosen)}")
    return chosen


def _predictors(
    path: Path,
    values: dict[str, pd.Series],
    asked: Columns,
    hyperparameters: list[str],
    names: list[str],
    notes: list[str],
) -> list[str]:
    if asked.predictors is not None:
        for column in asked.predictors:
            if not is_number(values[column]):
                raise AssayError(
                    f"{path}: the predictor {column!r} is to be numbers, and {without_number(values[column], names)}"
                )
        return list(dict.fromkeys(asked.predictors))
    chosen = []
    left_out = []
    for column, held in values.items():
        if column in hyperparameters:
            continue
        if _OF_NEW_DATA.intersection(normal(column).split("_")) or normal(column) in (*REPLICATES, *FILES):
            left_out.append(column)
        elif is_number(held):
            chosen.append(column)
        elif meant_as_numbers(held):
            notes.append(f"{column!r} is no predictor: it {without_number(held, names)}")
        else:
            left_out.append(column)
    if left_out:
        notes.append(f"neither hyper-parameters nor predictors: {', '.join(left_out)}")
    return chosen
