"""A run never overwrites what is not its own, and says of a manifest that it cannot use why not."""

from __future__ import annotations

import json

import pytest

from assay import AssayError, Run, evaluate
from assay.runs.cells import file_name
from measure_kit import Slow, subjects

QUICK = Slow(seconds=0.0)


@pytest.mark.parametrize("foreign", ['{"name": "an app", "icons": []}', "[1, 2]", "not JSON at all", '{"cells": []}'])
def test_a_manifest_of_something_else_is_left_alone(tmp_path, foreign):
    (tmp_path / "manifest.json").write_text(foreign)
    with pytest.raises(AssayError, match=r"holds a manifest\.json that is not that of a run, .* another folder"):
        evaluate(subjects(1), QUICK, tmp_path)
    assert (tmp_path / "manifest.json").read_text() == foreign and len(list(tmp_path.iterdir())) == 1


def edit(folder, **changes) -> str:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path.read_text()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (3, r"was written by a newer assay \(format 3; this one knows up to 2\): update assay"),
        ("x", "has format='x', which is none of a run"),
        (-1, "has format=-1, which is none"),
        (True, "has format=True, which is none"),
        (None, "has format=None, which is none"),
    ],
)
def test_a_manifest_of_an_unknown_format_neither_opens_nor_is_overwritten(tmp_path, number, message):
    evaluate(subjects(1), QUICK, tmp_path)
    written = edit(tmp_path, format=number)
    with pytest.raises(AssayError, match=message):
        _ = Run(tmp_path).manifest
    with pytest.raises(AssayError, match=message):
        evaluate(subjects(1), QUICK, tmp_path)
    assert (tmp_path / "manifest.json").read_text() == written


@pytest.mark.parametrize(
    "changes",
    [
        {"cells": 3},
        {"cells": [1]},
        {"cells": [{"subject": 1, "measure": "m", "fingerprint": "f"}]},
        {"cells": [{"subject": "s", "measure": "m", "fingerprint": None}]},
        {"cells": [{"subject": "s"}]},
        {"subjects": {"mlp0": 3}},
        {"measures": []},
        {"status": None},
        {"seed": "0"},
        {"command": [1]},
    ],
)
def test_a_manifest_of_wrong_types_is_damaged_and_running_again_mends_it(tmp_path, changes):
    evaluate(subjects(1), QUICK, tmp_path)
    edit(tmp_path, **changes)
    with pytest.raises(AssayError, match=r"manifest\.json is damaged \(.*\): run the plan again"):
        _ = Run(tmp_path).table("slow")
    run = evaluate(subjects(1), QUICK, tmp_path)
    assert run.outcome.kept == 1 and run.manifest.status == "complete"


def test_a_manifest_cut_short_is_written_anew_and_the_log_says_so(tmp_path, caplog):
    evaluate(subjects(1), QUICK, tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text()[:100])
    assert evaluate(subjects(1), QUICK, tmp_path).outcome.kept == 1
    assert "manifest.json is damaged and is written anew; cells that are done are kept" in caplog.text


def test_a_file_in_the_place_of_the_cells_is_named(tmp_path):
    evaluate(subjects(1), QUICK, tmp_path / "run")
    (tmp_path / "run" / "cells").rename(tmp_path / "elsewhere")
    (tmp_path / "run" / "cells").write_text("a file")
    for use in (lambda: Run(tmp_path / "run").table("slow"), lambda: evaluate(subjects(1), QUICK, tmp_path / "run")):
        with pytest.raises(AssayError, match="cells is a file where a folder is wanted"):
            use()


def test_names_of_files_are_short_in_bytes(tmp_path):
    longest = "\N{MATHEMATICAL BOLD CAPITAL A}" * 60
    assert len(file_name(longest).encode()) <= 100
    (subject,) = subjects(1)
    subject.name = longest
    run = evaluate(subject, {longest: QUICK}, tmp_path)
    assert run.outcome.measured == 1 and len(run.table(longest)) == 10


def test_names_of_files_stay_as_they_were():
    assert file_name("a" * 80) == "a" * 60 and file_name("ä" * 50) == "ä" * 50
    assert file_name("../../x y") == "_.._x_y" and file_name("...") == "_"
