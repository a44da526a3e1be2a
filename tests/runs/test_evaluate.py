from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pandas as pd
import pytest
import torch

import zoo
from assay import AssayError, Run, Straightness, Subject, evaluate
from assay.core.folder import Folder
from assay.runs.evaluate import cell_fingerprint, measure_fingerprint
from measure_kit import Broken, Slow, sequences, subjects


def test_a_run_has_manifest_cells_tables_and_summaries(tmp_path):
    run = evaluate(subjects(), [Straightness(sequences()), Slow()], tmp_path)
    assert run.measures == ["straightness", "slow"]
    assert [(c.subject, c.measure, c.status) for c in run.cells] == [
        (s, m, "done") for s in ("mlp0", "mlp1") for m in ("straightness", "slow")
    ]
    assert all(c.seconds > 0 and c.peak_memory_bytes > 1e7 for c in run.cells)
    table = run.table("straightness")
    assert table.columns[0] == "subject" and set(table.subject) == {"mlp0", "mlp1"}
    expected = Straightness(sequences())(subjects()[0])
    pd.testing.assert_frame_equal(table[table.subject == "mlp0"].drop(columns="subject"), expected)
    assert len(run.summary("straightness")) == 2 * 7

    m = run.manifest
    assert m.status == "complete" and (m.ended or "") >= m.started and m.format == 2
    assert m.packages["torch"] == torch.__version__
    assert m.hardware["cores"] >= 1 and m.seed == 0
    assert set(m.git or {"commit", "dirty"}) == {"commit", "dirty"}
    described = m.measures["straightness"]
    assert described.given == ["sequences"] and described.defaulted == ["layers", "batch_size"]
    assert described.settings["sequences"]["is"].startswith("2 clips of 3×16×16")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cells", "manifest.json"], "only what is read is written"


def test_nothing_that_is_done_is_done_again(tmp_path):
    evaluate(subjects(), Slow(), tmp_path)
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in (tmp_path / "cells").iterdir()}
    evaluate(subjects(3), Slow(), tmp_path)
    after = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in (tmp_path / "cells").iterdir()}
    assert len(after) == 3 and before.items() <= after.items()


def test_a_failed_cell_is_recorded_and_the_rest_goes_on(tmp_path, caplog):
    run = evaluate(subjects(), [Broken(), Slow()], tmp_path)
    assert [c.status for c in run.cells] == ["failed", "done", "failed", "done"]
    failure = run.failures[0]
    assert failure.error == "RuntimeError: <b>it broke</b> & how"
    assert "measure_kit.py" in (failure.traceback or "")
    assert run.manifest.status == "2 failed" and "mlp0 × broken failed" in caplog.text
    assert run.table("broken").empty and len(run.table("slow")) == 20


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), BaseException("bare")])
def test_a_measure_that_would_end_the_program_is_a_failed_cell(tmp_path, monkeypatch, error):
    def leave(self, subject):
        raise error

    monkeypatch.setattr(Slow, "__call__", leave)
    run = evaluate(subjects(1), [Slow(), Straightness(sequences())], tmp_path)
    assert [c.status for c in run.cells] == ["failed", "done"]
    assert (run.failures[0].error or "").startswith(type(error).__name__)


def test_a_failed_cell_is_tried_again_and_its_record_goes(tmp_path, monkeypatch):
    evaluate(subjects(1), Slow(), tmp_path)
    (cell,) = (tmp_path / "cells").iterdir()
    cell.unlink()
    with monkeypatch.context() as patched:
        same = measure_fingerprint(Slow())
        patched.setattr(Subject, "__call__", lambda self, batch: 1 / 0)
        patched.setattr("assay.runs.evaluate.measure_fingerprint", lambda measure: same)
        assert evaluate(subjects(1), Slow(), tmp_path).failures
    assert not evaluate(subjects(1), Slow(), tmp_path).failures
    assert [p.name for p in (tmp_path / "cells").iterdir()] == [cell.name]


def test_the_fingerprint_follows_everything_a_cell_depends_on():
    (subject,) = subjects(1)
    measure = Straightness(sequences())
    prints = [
        cell_fingerprint(subject, measure, 0),
        cell_fingerprint(subject, measure, 1),
        cell_fingerprint(subject, replace(measure, layers="1"), 0),
        cell_fingerprint(subject, Straightness(sequences(seed=1)), 0),
        cell_fingerprint(subjects(2)[1], measure, 0),
        cell_fingerprint(subject, Slow(), 0),
        cell_fingerprint(subject, Slow(scale=2), 0),
    ]
    assert len(set(prints)) == len(prints)
    again = cell_fingerprint(Subject(zoo.build("mlp"), "another name"), Straightness(sequences()), 0)
    assert again == prints[0]


def test_a_subject_trained_on_between_two_calls_is_measured_anew(tmp_path):
    (subject,) = subjects(1)
    before = evaluate(subject, Slow(), tmp_path).table("slow")
    with torch.no_grad():
        subject.module[5].bias.add_(1)
    after = evaluate(subject, Slow(), tmp_path).table("slow")
    assert (after.value - before.value).to_numpy() == pytest.approx(1, abs=1e-5)


def test_the_code_of_a_measure_is_part_of_its_fingerprint(tmp_path, monkeypatch):
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    source = """
from dataclasses import dataclass
import pandas as pd
from assay import Measure

@dataclass(frozen=True)
class Mine(Measure):
    def __call__(self, subject):
        return pd.DataFrame({"x": [RESULT]})
"""
    prints = []
    for result in ("1", "2"):
        path = tmp_path / f"mine{result}.py"
        path.write_text(source.replace("RESULT", result))
        module = importlib.import_module(f"mine{result}")
        module.Mine.__qualname__ = "Mine"
        prints.append(module.Mine().code_version)
        sys.modules.pop(f"mine{result}")
    assert prints[0] != prints[1]


def test_random_numbers_come_from_the_seed(tmp_path):
    a, b, c = (evaluate(subjects(1), Slow(), tmp_path / str(i), seed=s) for i, s in enumerate((0, 0, 1)))
    torch.manual_seed(123)
    assert a.table("slow").equals(b.table("slow"))
    assert not a.table("slow").value.equals(c.table("slow").value)


def test_cells_are_picklable():
    for thing in (*subjects(1), Straightness(sequences())):
        assert pickle.loads(pickle.dumps(thing)) is not None


def test_a_run_on_another_file_system(tmp_path):
    run = evaluate(subjects(1), Slow(), f"memory://{tmp_path}")
    assert len(run.table("slow")) == 10


def test_wrong_calls_say_what_is_wrong(tmp_path):
    one, two = subjects(2)
    two.name = one.name
    with pytest.raises(AssayError, match="two subjects are called 'mlp0'"):
        evaluate([one, two], Slow(), tmp_path)
    with pytest.raises(AssayError, match="no subjects"):
        evaluate([], Slow(), tmp_path)
    with pytest.raises(AssayError, match="no measures"):
        evaluate(one, [], tmp_path)
    with pytest.raises(AssayError, match="nothing does not exist: give the folder of a run"):
        Run(str(tmp_path / "nothing"))
    with pytest.raises(AssayError, match=r"is not a run: it has no manifest\.json"):
        Run(str(tmp_path))
    (tmp_path / "cells").mkdir()
    with pytest.raises(AssayError, match=r"has cells but no manifest\.json: run its plan again"):
        Run(str(tmp_path))


def test_two_measures_of_a_kind_get_labels_of_their_own(tmp_path):
    run = evaluate(subjects(1), [Slow(), Slow(scale=2)], tmp_path)
    assert run.measures == ["slow", "slow-2"]
    assert (run.table("slow-2").value == 2 * run.table("slow").value).all()
    with pytest.raises(AssayError, match="no measure 'slo'; did you mean 'slow'"):
        run.table("slo")


def test_an_interrupted_rerun_never_shows_the_old_numbers(tmp_path, monkeypatch):
    evaluate(subjects(2), {"m": Slow()}, tmp_path)

    def second_cell(self, subject):
        if subject.name == "mlp1":
            raise KeyboardInterrupt
        return pd.DataFrame({"unit": [0], "value": [2.0]})

    monkeypatch.setattr(Slow, "__call__", second_cell)
    with pytest.raises(KeyboardInterrupt):
        evaluate(subjects(2), {"m": Slow(scale=2)}, tmp_path)
    run = Run(str(tmp_path))
    assert run.manifest.measures["m"].settings["scale"] == 2 and run.manifest.status == "running"
    assert run.table("m").value.tolist() == [2.0], "the cell that is done, and nothing from before"


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (lambda: pd.DataFrame({"x": [1, "a", None, {}]}), "column x with type object): a column holds numbers"),
        (lambda: pd.DataFrame({"subject": [1]}), "has a column 'subject'"),
        (lambda: pd.DataFrame(), "returned no rows"),
        (lambda: 3, "the measure returned 3: it must return a pandas DataFrame"),
        (lambda: None, "the measure returned None: it must return a pandas DataFrame"),
        (lambda: [1, 2], "the measure returned [1, 2] (list)"),
        (
            lambda: pd.DataFrame({1: [1.0]}),
            "the column 1 at place 0: give each column a name of its own",
        ),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "the column 'a' at place 1: give each column a name"),
        (lambda: pd.DataFrame({"x": [10**30]}), "returned a table that cannot be kept"),
    ],
)
def test_a_table_that_cannot_be_kept_is_a_failed_cell(tmp_path, monkeypatch, table, error):
    monkeypatch.setattr(Slow, "__call__", lambda self, subject: table())
    run = evaluate(subjects(1), [Slow(), Straightness(sequences())], tmp_path)
    assert [c.status for c in run.cells] == ["failed", "done"] and error in (run.failures[0].error or "")


def test_columns_of_pandas_own_kinds_are_kept_as_words_and_shown(tmp_path, monkeypatch):
    columns = {"kind": pd.Categorical(["a", "b"]), "year": pd.period_range("2020", periods=2), "value": [1.0, 2.0]}
    monkeypatch.setattr(Slow, "__call__", lambda self, subject: pd.DataFrame(columns))
    run = evaluate(subjects(1), Slow(), tmp_path)
    assert run.table("slow")["kind"].tolist() == ["a", "b"]
    assert run.report() is not None and (tmp_path / "report.html").is_file()


def test_a_summary_that_raises_is_a_failed_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(Slow, "summary", lambda self, table: table["nothing"])
    assert "KeyError" in (evaluate(subjects(1), Slow(), tmp_path).failures[0].error or "")


def test_labels_cannot_lead_out_of_the_run(tmp_path):
    run = evaluate(subjects(1), {"../../escaped": Slow()}, tmp_path / "a" / "run")
    assert len(run.table("../../escaped")) == 10
    assert not list(tmp_path.glob("*.parquet")) and len(list((tmp_path / "a").iterdir())) == 1


@pytest.mark.parametrize("damage", ["truncate", "garbage"])
def test_a_damaged_cell_is_named_and_measured_anew(tmp_path, damage, caplog):
    evaluate(subjects(1), Slow(), tmp_path)
    (cell,) = (tmp_path / "cells").iterdir()
    data = cell.read_bytes()
    cell.write_bytes(data[: len(data) // 2] if damage == "truncate" else b"garbage")
    with pytest.raises(AssayError, match=r"is damaged .*: run the plan again, which measures it anew"):
        Run(str(tmp_path)).table("slow")
    evaluate(subjects(1), Slow(), tmp_path)
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith("mlp0 × slow is measured anew: ") and "is damaged (" in said and said.endswith(")")
    assert cell.read_bytes() != data[: len(data) // 2] and len(Run(str(tmp_path)).table("slow")) == 10


def test_the_manifest_is_there_while_the_run_is_under_way(tmp_path):
    seen = {}

    class Looks(type(subjects(1)[0])):  # type: ignore[misc]
        def __call__(self, batch):
            seen.update(json.loads(Folder(str(tmp_path)).read("manifest.json")))
            return super().__call__(batch)

    looking = Looks(zoo.build("mlp"), "mlp")
    evaluate(looking, Slow(), tmp_path)
    assert seen["status"] == "running" and seen["cells"]


def test_a_run_that_a_network_stops_says_so_and_goes_on_from_there(tmp_path, caplog):
    """Networks that are read one by one may end in one that cannot be read."""

    def reading(good: bool):
        yield subjects(1)[0]
        if not good:
            raise AssayError("net.safetensors does not fit")
        yield subjects(2)[1]

    with pytest.raises(AssayError, match="does not fit"):
        evaluate(reading(good=False), Slow(), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    assert manifest["status"] == "stopped" and manifest["ended"] and len(manifest["cells"]) == 1
    assert "stopped: 0 cells kept, 1 measured, 0 failed; the same again goes on from there" in caplog.text
    assert str(evaluate(reading(good=True), Slow(), tmp_path).outcome) == "1 cell kept, 1 measured, 0 failed"


def test_a_table_without_the_column_of_the_measure_is_told_of(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(Slow, "__call__", lambda self, subject: pd.DataFrame({"score": [1.0]}))
    evaluate(subjects(1), Slow(), tmp_path)
    assert f"× slow: the measure says value={Slow.value!r}, and its table has only the columns 'score'" in caplog.text
