"""Corpora of anybody's checkpoints: a table, a factory and files of weights."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from assay import AssayError
from assay.core.user_code import code_in
from assay.report.study import study_document
from assay.studies import accuracy, load_corpus_plan, load_study_plan, study
from assay.studies.study_check import check_study_plan
from data_kit import write_pictures

CODE = """
from torch import nn

def make(width: int, depth, classes, channels=1, bias=True):
    layers, size = [nn.Flatten()], 16 * channels
    for _ in range(depth):
        layers += [nn.Linear(size, width, bias=bias), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, classes))

def of_row(row):
    assert row["network"].startswith("w") and row["note"] == "fine"
    return make(row["width"], row["depth"], 3)

def more(width, depth, hidden_size):
    return make(width, depth, 3)
"""
PLAN = """
corpus: {table: networks.csv, source: "table_corpus_nets:make", weights: "{network}.safetensors"}
data: {path: data.npz}
measures:
  - {measure: norms}
  - {measure: margins, bootstrap: 5, samples: 20}
run: run
"""


@pytest.fixture
def folder(tmp_path):
    """Four small networks with random weights, their table, and data."""
    write_pictures(tmp_path / "data.npz")
    (tmp_path / "table_corpus_nets.py").write_text(CODE)
    names: dict[str, object] = {}
    exec(CODE, names)
    rows = []
    for number, (width, depth) in enumerate([(2, 1), (2, 2), (4, 1), (4, 2)]):
        torch.manual_seed(number)
        name = f"w{width}d{depth}"
        save_file(names["make"](width, depth, 3).state_dict(), tmp_path / f"{name}.safetensors")
        rows.append({"network": name, "width": width, "depth": depth, "gap": 0.1 * number, "note": "fine"})
    pd.DataFrame(rows).to_csv(tmp_path / "networks.csv", index=False)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def loaded(folder, old="", new=""):
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))
    return load_study_plan(folder / "plan.yaml")


def rewrite(folder, change):
    table = pd.read_csv(folder / "networks.csv")
    change(table).to_csv(folder / "networks.csv", index=False)


def test_checkpoints_of_anybodys_are_measured_and_the_measures_ranked(folder):
    plan = loaded(folder)
    assert plan.corpus.hyperparameters == ["width", "depth"] and plan.scoring.sizes == (1,)
    assert any("guessed" in note and "width, depth" in note for note in plan.corpus.notes)
    with code_in(folder):
        run, found = study(plan.corpus, plan.measures, plan.run, plan.scoring)
    assert not run.failures and {"parameters", "mean margin"} <= set(found.ranking["measure"])
    assert found.about["notes"] and len(found.networks) == 4


def test_numbers_of_the_table_are_judged_beside_what_is_measured(folder):
    rewrite(folder, lambda table: table.assign(flatness=[0.3, 0.1, 0.4, 0.15], parameters=[1.5, 2.5, 3.5, 4.5]))
    plan = loaded(folder)
    with code_in(folder):
        found = study(plan.corpus, plan.measures, plan.run, plan.scoring)[1]
    assert {"flatness", "parameters", "parameters (table)", "mean margin"} <= set(found.ranking["measure"])
    assert found.networks["flatness"].tolist() == [0.3, 0.1, 0.4, 0.15]
    assert "flatness" not in plan.corpus.table
    few = loaded(folder, "source:", "predictors: [flatness], source:").corpus
    assert list(few.known) == ["flatness"]


@pytest.mark.parametrize(("said", "doubted"), [(1.0, True), (0.4, False)])
def test_a_network_that_is_right_far_less_often_than_its_table_says_is_doubted(folder, caplog, said, doubted):
    """Random weights are right on a third of three classes; so are good ones whose inputs are prepared otherwise."""
    rewrite(folder, lambda table: table.assign(train_accuracy=said))
    plan = loaded(folder)
    with code_in(folder):
        done, found = study(plan.corpus, plan.measures, plan.run, plan.scoring)
    doubts = found.about["doubts"]
    assert len(doubts) == doubted and ("preprocess" in caplog.text) == doubted
    first = study_document(done).sections[0]
    assert (first.title == "To be looked at first") == doubted
    assert check_study_plan(folder / "plan.yaml").notes == doubts
    if doubted:
        assert "w2d1 is right on" in doubts[0] and "the table says 100%" in doubts[0]
        assert first.blocks[0].items == tuple(doubts)


def test_how_many_hyperparameters_are_given_is_said_where_it_is_not_two(folder):
    assert any("given at a time are 1" in note for note in loaded(folder).corpus.notes)


def test_networks_are_those_of_the_files(folder):
    corpus = loaded(folder).corpus
    subject = corpus.subject("w4d2")
    assert subject.module[1].out_features == 4 and len(subject.module) == 6
    weights = torch.cat([p.flatten() for p in subject.module.parameters()])
    torch.manual_seed(3)
    names: dict[str, object] = {}
    exec(CODE, names)
    assert torch.equal(weights, torch.cat([p.flatten() for p in names["make"](4, 2, 3).parameters()]))
    assert 0 <= accuracy(subject, corpus.train) <= 1 and len(corpus.test) == 30


def test_a_factory_may_take_the_whole_row_and_fixed_arguments(folder):
    assert loaded(folder, "nets:make", "nets:of_row").corpus.subject("w2d2").module[1].out_features == 2
    plan = loaded(folder, '"table_corpus_nets:make"', '"table_corpus_nets:more", args: {hidden_size: 3}')
    assert plan.corpus.subject("w2d1").module[1].out_features == 2


def test_a_factory_may_take_a_column_that_is_no_hyperparameter(folder):
    """Four levels among four networks are not few, so that a width is not guessed to be one."""
    rewrite(folder, lambda table: table.assign(size=[3.0, 4.0, 5.0, 6.0]))
    (folder / "table_corpus_nets.py").write_text(
        CODE + "\ndef sized(width, depth, size: int):\n    return make(size, depth, 3)"
    )
    corpus = loaded(folder, "nets:make", "nets:sized").corpus
    corpus.require_arguments()
    assert "size" not in corpus.hyperparameters
    with pytest.raises(AssayError, match=r"w2d2: .*\(2,\) among them and \(4,\) in the network"):
        corpus.subject("w2d2")


def test_weights_may_be_named_by_columns_and_by_other_columns_as_they_are_written(folder):
    for number, name in enumerate(["w2d1", "w2d2", "w4d1", "w4d2"]):
        (folder / f"{name}.safetensors").rename(folder / f"run{number:03}.safetensors")
    rewrite(folder, lambda t: t.assign(run=[f"{i:03}" for i in range(4)]))
    assert loaded(folder, "{network}.saf", "run{run}.saf").corpus.subject("w4d1")
    rewrite(folder, lambda t: t.assign(weights=[f"run{i:03}.safetensors" for i in range(4)]))
    assert loaded(folder, ', weights: "{network}.safetensors"', "").corpus.subject("w4d1")


def test_initial_weights_and_histories_are_found_where_they_are_given(folder):
    corpus = loaded(folder).corpus
    assert corpus.initial_weights("w2d1") is None and corpus.history("w2d1") is None
    for network in corpus.networks:
        save_file({"w": torch.zeros(2)}, folder / f"{network}-start.safetensors")
        (folder / f"{network}.csv").write_text("epoch,loss\n1,2.3\n2,0.4\n")
    kept = ', initial_weights: "{network}-start.safetensors", history: "{network}.csv"}'
    corpus = loaded(folder, "}\ndata", f"{kept}\ndata").corpus
    assert corpus.initial_weights("w4d1")["w"].tolist() == [0, 0]
    assert corpus.history("w4d1")["loss"].tolist() == [2.3, 0.4]
    (folder / "w4d2.csv").unlink()
    with pytest.raises(AssayError, match=r"history: 1 of 4 networks have no file: .*w4d2.csv \(of w4d2\)"):
        loaded(folder, "}\ndata", f"{kept}\ndata")


def test_training_such_a_plan_says_that_there_is_nothing_to_train(folder):
    with pytest.raises(AssayError, match=r"plan.yaml:2: corpus: is a table .* already: measure them"):
        load_corpus_plan(folder / "plan.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("networks.csv", "network.csv", "network.csv cannot be read .no such file"),
        ("{network}.saf", "{netwrk}.saf", "names the column 'netwrk'; did you mean 'network'"),
        ("{network}.saf", "one.saf", "one.safetensors is that of w2d1 and of w2d2"),
        (', weights: "{network}.safetensors"', "", "does not say where the weights of w2d1 are"),
        ("nets:make", "nets:mak", "did you mean 'make'"),
        ("nets:make", "nets:more", "needs 'hidden_size', which is no column of .*networks.csv.*'args'"),
        ("weights:", "hyperparameters: [widht], weights:", "has no column 'widht'; did you mean 'width'"),
        ("weights:", "gap: note, weights:", "'note' is to be numbers"),
        ("weights:", "wieghts:", "unknown key; did you mean 'weights'"),
        ("data: {path: data.npz}\n", "", "lacks the key 'data'"),
        ("run: run", "run: run\ngrid: {width: [2]}", "grid: is there beside a table"),
        ("path: data.npz", "path: date.npz", "date.npz"),
        ("path: data.npz", "path: data.npz, test: 31", "data: 31 of data.npz: test are asked for, which has 30"),
        (
            "path: data.npz",
            "path: part.npz, test: 5",
            "data: test=5 inputs are asked for, and .*part.npz has no part 'test'",
        ),
        ("path: data.npz", "path: data.npz, size: 5", "data: data holds arrays of .* do not follow size=5"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(folder, old, new, words):
    with np.load(folder / "data.npz") as whole:
        np.savez(folder / "part.npz", train_images=whole["train_images"], train_labels=whole["train_labels"])
    with pytest.raises(AssayError, match=words):
        _ = loaded(folder, old, new).corpus.train


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pd.concat([t, t.iloc[[1]]]), "has the network 'w2d2' twice, in rows 2 and 5"),
        (lambda t: t.drop(columns="gap"), "has no column 'gap' and no 'train_accuracy' and no 'test_accuracy'"),
        (lambda t: t.drop(columns="gap").assign(test_acc=0.5), r"no 'train_accuracy' \(it has 'test_acc'\)"),
        (lambda t: t.drop(columns="network"), "has no column 'network'"),
        (lambda t: t.assign(gap=[0.1, None, 0.2, 0.3]), "'gap' is missing or infinite for w2d2"),
        (lambda t: t[["network", "gap"]], "no column is a hyper-parameter"),
        (lambda t: t.iloc[:0], "has no rows"),
        (lambda t: t.assign(network=["w2d1", "w2d2", "lost", "gone"]), "2 of 4 networks have no file: .*lost.saf"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(folder, change, words):
    rewrite(folder, change)
    with pytest.raises(AssayError, match=words):
        loaded(folder)


def test_accuracies_in_percent_give_the_gap(folder):
    rewrite(folder, lambda t: t.drop(columns="gap").assign(**{"Train Acc": [99, 98, 97.5, 100], "val acc": 90}))
    corpus = loaded(folder).corpus
    assert np.allclose(corpus.table["gap"], [0.09, 0.08, 0.075, 0.1])
    assert np.allclose(corpus.table["train_accuracy"], [0.99, 0.98, 0.975, 1])
    assert any("percent" in note for note in corpus.notes)


def test_weights_that_do_not_fit_name_the_tensors(folder):
    save_file({"1.weight": torch.zeros(2, 16), "odd": torch.zeros(1)}, folder / "w2d1.safetensors")
    with pytest.raises(AssayError, match=r"w2d1: weights=.* lack '1.bias', '3.bias', '3.weight', have 'odd' that"):
        loaded(folder).corpus.subject("w2d1")
    (folder / "w2d1.safetensors").write_bytes((folder / "w4d1.safetensors").read_bytes())
    with pytest.raises(AssayError, match=r"'1.bias' is \(4,\) among them and \(2,\) in the network"):
        loaded(folder).corpus.subject("w2d1")
    (folder / "w2d1.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(AssayError, match="is neither safetensors nor a torch checkpoint"):
        loaded(folder)


def test_all_damaged_files_are_named_before_anything_is_measured(folder):
    for name in ("w2d2", "w4d1"):
        path = folder / f"{name}.safetensors"
        path.write_bytes(path.read_bytes()[:-20])
    (folder / "w4d2.safetensors").unlink()
    with pytest.raises(AssayError) as raised:
        loaded(folder)
    first, second, third = str(raised.value).splitlines()
    assert "plan.yaml:2: corpus: w2d2: " in first and first.endswith("it is damaged; download or copy it again")
    assert "plan.yaml:2: corpus: w4d1: " in second and second.endswith("it is damaged; download or copy it again")
    assert "plan.yaml:2: corpus: weights: 1 of 4 networks have no file: " in third and "(of w4d2)" in third


def test_a_hostile_checkpoint_is_refused_unread(folder):
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "pwned"),))

    for name in ("w2d1", "w2d2", "w4d1", "w4d2"):
        torch.save({"state_dict": Hostile()}, folder / f"{name}.pt")
    with pytest.raises(AssayError, match="was not loaded, because loading it could run code"):
        loaded(folder, "{network}.safetensors", "{network}.pt").corpus.subject("w2d1")
    assert not (folder / "pwned").exists()
