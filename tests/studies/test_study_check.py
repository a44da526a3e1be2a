"""A plan of a corpus is checked whole, and every network in it, before anything is trained or measured."""

from __future__ import annotations

import json
import logging

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from assay import AssayError
from assay.cli.main import app
from assay.core.progress import listening
from assay.plans.problems import MOST, Problems
from assay.studies import load_corpus_plan, load_study_plan, study, train_corpus
from assay.studies.study_check import check_study_plan
from data_kit import write_pictures

CODE = """
from torch import nn

def make(width: int, classes: int):
    return nn.Sequential(nn.Flatten(), nn.Linear(16, width), nn.ReLU(), nn.Linear(width, classes))
"""
TABLE = """
corpus: {table: networks.csv, source: "checked_nets:make", weights: "{network}.safetensors"}
data: {path: data.npz}
measures:
  - {measure: norms}
  - {measure: margins, samples: 20, bootstrap: 9}
run: run
"""
GRID = """
network: conv
data: {path: data.npz}
corpus: networks
grid: {dropout: [0.0, 0.2], learning_rate: [0.01, 0.003], depth: 1, width: 2}
training: {epochs: 1, batch_size: 15}
measures:
  - {measure: norms}
  - {measure: distance}
run: run
"""
WIDTHS = [2, 2, 3, 3]


@pytest.fixture
def folder(tmp_path):
    """Data, a factory, a table of four networks with a predictor, and their weights."""
    write_pictures(tmp_path / "data.npz")
    (tmp_path / "checked_nets.py").write_text(CODE)
    (tmp_path / "plan.yaml").write_text(TABLE)
    write_networks(tmp_path, WIDTHS)
    return tmp_path


def write_networks(folder, widths):
    rows = []
    for number, width in enumerate(widths):
        torch.manual_seed(number)
        rows.append({"network": f"n{number}", "width": width, "gap": 0.01 * number, "flatness": 0.5 + 0.13 * number})
        network = nn.Sequential(nn.Flatten(), nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 3))
        save_file(network.state_dict(), folder / f"n{number}.safetensors")
    pd.DataFrame(rows).to_csv(folder / "networks.csv", index=False)


def changed(folder, *pairs, text=TABLE):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    (folder / "plan.yaml").write_text(text)
    return folder / "plan.yaml"


def problems_of(path):
    with pytest.raises(AssayError) as raised:
        check_study_plan(path)
    return str(raised.value).replace(f"{path.parent}/", "").splitlines()


def test_a_plan_without_problems_says_what_would_be_done_and_does_none_of_it(folder):
    shown = CliRunner().invoke(app, ["check", str(folder / "plan.yaml")])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip().endswith(
        "plan.yaml: no problem: would measure 4 networks by 2 measures (8 cells, 0 of them done), judge 1 predictor of "
        "the table beside them, and score all by the gap over 1 hyper-parameter (width)"
    )
    assert "guessed by their few levels: width" in shown.stderr
    assert not (folder / "run").exists()
    plan = load_study_plan(folder / "plan.yaml")
    study(plan.corpus, {"norms": plan.measures["norms"]}, plan.run, plan.scoring)
    told = json.loads(CliRunner().invoke(app, ["check", str(folder / "plan.yaml"), "--json"]).stdout)
    assert told["done"] == 4 and told["networks"] == ["n0", "n1", "n2", "n3"] and told["predictors"] == ["flatness"]


def test_every_network_that_does_not_fit_its_weights_is_named_with_all_its_tensors(folder):
    weights = {"1.weight": torch.zeros(2, 16), "3.weight": torch.zeros(3, 5), "3.bias": torch.zeros(3)}
    save_file(weights | {"odd": torch.zeros(1)}, folder / "n1.safetensors")
    (folder / "n3.safetensors").write_bytes((folder / "n0.safetensors").read_bytes())
    assert problems_of(folder / "plan.yaml") == [
        "plan.yaml:2: corpus: n1: weights=n1.safetensors do not fit Sequential: they lack '1.bias', have 'odd' that "
        "the network lacks, '3.weight' is (3, 5) among them and (3, 2) in the network",
        "plan.yaml:2: corpus: n3: weights=n3.safetensors do not fit Sequential: '1.bias' is (2,) among them and (3,) "
        "in the network, and 2 more of another shape",
    ]


def test_however_many_networks_do_not_fit_all_are_named_and_progress_is_told(folder):
    count = MOST + 5
    write_networks(folder, [2, 3] * count)
    for number in range(1, 2 * count, 2):
        (folder / f"n{number}.safetensors").write_bytes((folder / "n0.safetensors").read_bytes())
    told = []
    with listening(lambda what, done, total: told.append((what, done, total))):
        said = problems_of(folder / "plan.yaml")
    assert len(said) == count and all(f" n{2 * i + 1}: weights=" in line for i, line in enumerate(said))
    assert ("networks checked", 2 * count, 2 * count) in told


def test_problems_of_the_plan_its_table_its_source_and_its_data_come_together(folder):
    path = changed(
        folder,
        ("networks.csv", "network.csv"),
        ("checked_nets:make", "checked_nets:mak"),
        ("data.npz", "date.npz"),
        ("measure: norms", "measure: nroms"),
        ("samples: 20", "samples: many"),
        ("run: run", "runn: run"),
    )
    said = problems_of(path)
    expected = [
        ":7: runn: unknown key; did you mean 'run'?",
        ":2: corpus: source='checked_nets:mak': 'checked_nets' has no 'mak'; did you mean 'make'?",
        ":2: corpus: network.csv cannot be read (no such file)",
        ":3: data: date.npz does not exist",
        ":5: measures[0].measure: unknown measure 'nroms'; did you mean 'norms'?",
        ":6: measures[1].samples: is 'many', expected a whole number",
    ]
    assert said == [f"plan.yaml{sentence}" for sentence in expected]


def test_scoring_that_is_no_mapping_and_a_corpus_of_one_network_are_problems_too(folder):
    not_a_mapping = "scoring: is 5, not a mapping of keys to values"
    assert problems_of(changed(folder, ("run: run", "scoring: 5"))) == [f"plan.yaml:7: {not_a_mapping}"]
    one = ("[0.0, 0.2], learning_rate: [0.01, 0.003]", "[0.2]")
    assert problems_of(changed(folder, one, ("run: run", "scoring: 5"), text=GRID)) == [
        f"plan.yaml:10: {not_a_mapping}",
        "plan.yaml:2: network: 1 network: a study needs at least two",
    ]


def test_a_problem_of_a_measure_does_not_hide_weights_that_do_not_fit(folder):
    (folder / "n3.safetensors").write_bytes((folder / "n0.safetensors").read_bytes())
    said = problems_of(changed(folder, ("measure: norms", "measure: nroms")))
    assert len(said) == 2 and "unknown measure 'nroms'" in said[0] and "corpus: n3: weights=" in said[1]


def test_a_measure_that_does_not_fit_is_named_once_for_all_networks_and_may_be_kept(folder):
    path = changed(folder, ("measure: norms", "measure: distance"))
    (sentence,) = problems_of(path)
    assert sentence.startswith("plan.yaml:5: measures[0]: n0, n1, n2 and 1 more × distance: 'n0' does not say what its")
    shown = CliRunner().invoke(app, ["check", str(path), "--keep-going"])
    assert shown.exit_code == 3 and "would fail: n2 × distance: " in shown.stderr and "would measure 4" in shown.stdout


def test_networks_to_train_are_built_and_then_the_trained_ones_are_looked_at(folder, caplog):
    path = changed(folder, text=GRID)
    checked = check_study_plan(path)
    over = "over 2 hyper-parameters (dropout, learning_rate)"
    assert str(checked) == f"would train 4 of 4 networks {over}, and then take 2 measures of each"
    assert not (folder / "networks").exists()
    with caplog.at_level(logging.ERROR):
        train_corpus(load_corpus_plan(path))
    would = "would measure 4 networks by 2 measures (8 cells, 0 of them done), and score all by the gap"
    assert str(check_study_plan(path)) == f"{would} {over}"
    save_file({"odd": torch.zeros(1)}, folder / "networks" / "networks" / "network_001.safetensors")
    (folder / "networks" / "networks" / "network_002.initial.safetensors").unlink()
    damaged, lost = problems_of(path)
    assert "network_001.safetensors is damaged" in damaged and "network_002.initial.safetensors is not there" in lost


def test_what_cannot_be_trained_is_named_of_all_networks(folder):
    said = problems_of(changed(folder, ("batch_size: 15", "batch_size: 31"), text=GRID))
    assert len(said) == 4 and "batch_size=31 of network_003 is larger than the data: 30 inputs" in said[3]
    trains_only = GRID.partition("measures:")[0]
    checked = check_study_plan(changed(folder, text=trains_only))
    assert str(checked).endswith("over 2 hyper-parameters (dropout, learning_rate)")
    with pytest.raises(Problems, match=r"data: .*date.npz does not exist"):
        check_study_plan(changed(folder, ("data.npz", "date.npz"), ("dropout:", "dropuot:"), text=GRID))
