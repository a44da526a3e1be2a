"""Searches in this process: trials, objectives, pruning, failures, tables and the page."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file
from scipy.stats import spearmanr
from sqlalchemy.engine import Engine

from assay import AssayError
from assay.core.folder import Folder
from assay.report.search import relations, search_document, write_search_report
from assay.stats.rank_correlation import spearman_p
from assay.studies import load_search_plan, read_search, run_search
from assay.studies.search.quantity import Quantity
from assay.studies.search.search import name_of
from assay.studies.search.table import is_search
from conftest import write_digits
from search_kit import PLAN, trials_of, write_plan

SMALL = PLAN.replace("trials: 12", "trials: 4")


def searched(folder: Path, text: str = SMALL, **how):
    folder.mkdir(exist_ok=True)
    return run_search(write_plan(folder, text), **how)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return searched(tmp_path_factory.mktemp("search"))


def test_the_table_has_every_trial_with_its_hyperparameters_seed_and_objective(done):
    table = done.trials
    assert table["trial"].tolist() == [0, 1, 2, 3] and table["status"].eq("complete").all()
    assert table["width"].between(2, 16).all() and table["rate"].between(1e-3, 0.1).all()
    assert table["seed"].nunique() == 4 and table["epochs_done"].eq(4).all() and table["train_s"].eq(2.0).all()
    assert done.best["trial"].iloc[0] == table["loss"].idxmin() and done.finished == 4
    assert done.best["loss"].is_monotonic_increasing


def test_the_same_plan_and_seed_give_the_same_trials_and_another_seed_others(done, tmp_path):
    again = searched(tmp_path / "again")
    other = searched(tmp_path / "other", f"{SMALL}seed: 1\n")
    steady = done.trials.drop(columns="seconds")
    pd.testing.assert_frame_equal(again.trials.drop(columns="seconds"), steady)
    assert not set(other.trials["rate"]) & set(done.trials["rate"])
    assert not set(other.trials["seed"]) & set(done.trials["seed"])


def test_the_results_are_read_again_and_the_weights_are_those_of_the_trial(done):
    again = read_search(done.path)
    pd.testing.assert_frame_equal(again.trials.drop(columns="error"), done.trials.drop(columns="error"))
    assert again.about["objectives"] == {"loss": "minimize"}
    for place, width in zip(done.trials["trial"], done.trials["width"], strict=True):
        weights = load_file(Path(done.path) / "networks" / f"{name_of(place)}.safetensors")
        assert weights["hidden.weight"].shape == (width, 4)


def test_nothing_is_kept_where_the_plan_says_so(tmp_path):
    found = searched(tmp_path, f"{SMALL}keep: false\n".replace("trials: 4", "trials: 1"))
    assert found.finished == 1 and not (tmp_path / "run" / "networks").exists()


def test_a_grid_goes_through_all_combinations_once(tmp_path):
    text = SMALL.replace("trials: 4", "sampler: grid").replace("{int: [2, 16], log: true}", "{int: [2, 6], step: 2}")
    text = text.replace("{float: [1e-3, 0.1], log: true}", "[0.1, 0.01]").replace("run: run", "fixed: {epochs: 1}")
    found = searched(tmp_path, text, run=str(tmp_path / "run"))
    expected = [(w, r) for w in (2, 4, 6) for r in (0.1, 0.01)]
    assert list(zip(found.trials["width"], found.trials["rate"], strict=True)) == expected


def test_choices_of_words_truth_and_none_reach_the_training(tmp_path):
    text = SMALL.replace("space:", "space:\n  act: [relu, null, true]").replace("trials: 4", "trials: 6")
    found = searched(tmp_path, text)
    assert set(found.trials["act"].map(str)) <= {"relu", "None", "True"} and found.finished == 6


def test_several_objectives_give_the_trials_that_none_beats(tmp_path):
    objectives = "[{number: loss, direction: minimize}, {number: width, name: size, direction: minimize}]"
    found = searched(tmp_path, SMALL.replace("[{number: loss, direction: minimize}]", objectives))
    values = found.trials[["loss", "size"]].to_numpy()
    for row, trial in zip(values, found.trials["trial"], strict=True):
        beaten = any((other <= row).all() and (other < row).any() for other in values)
        assert (trial in set(found.best["trial"])) == (not beaten)
    page = write_page(found)
    assert "No other trial beats trial" in page
    for name in ("loss", "size"):
        top = found.trials.loc[found.trials[name].idxmin()]
        assert (
            f"Best by {name}: trial {top['trial']} (loss {top['loss']:.4g}, size {top['size']:.4g}) with width" in page
        )


def test_objectives_are_measures_functions_and_numbers(tmp_path):
    objectives = """
  - {measure: {measure: norms, shape: [4]}, take: parameter norm, name: size, direction: minimize}
  - {function: "networks_of_mine:weight_norm", direction: maximize}
"""
    found = searched(tmp_path, SMALL.replace(" [{number: loss, direction: minimize}]", objectives))
    norms = found.trials
    assert list(norms.columns[2:4]) == ["size", "weight_norm"], norms.columns
    weights = load_file(Path(found.path) / "networks" / "trial_002.safetensors")
    assert norms["weight_norm"][2] == pytest.approx(weights["hidden.weight"].norm().item())


# -- pruning --------------------------------------------------------------------------------------------------------

PRUNED = SMALL.replace("trials: 4", "trials: 8") + "fixed: {epochs: 12}\n"


def test_a_trial_that_falls_behind_its_population_is_pruned(tmp_path):
    rule = "pruning: {number: loss, direction: minimize, every: 2, population: {after: 4, least: 3}}\n"
    found = searched(tmp_path, PRUNED + rule)
    live, table = found.live, found.trials.set_index("trial")
    assert table["status"][:3].eq("complete").all() and table["status"].eq("pruned").any()
    for place in table.index[3:]:
        at = live[live["epoch"] == 4].set_index("trial")["value"]
        others = at.loc[[other for other in table.index if other < place]]
        behind = at[place] > others.mean() - others.std(ddof=1)  # less is better
        if behind:
            assert table.loc[place, "status"] == "pruned" and table.loc[place, "epochs_done"] == 4
            assert table.loc[place, "ended_by"] == "population" and np.isnan(table.loc[place, "loss"])
        else:
            assert table.loc[place, "epochs_done"] > 4
    assert not (Path(found.path) / "networks" / f"{name_of(table.index[table['status'] == 'pruned'][0])}").exists()
    page = write_page(found)
    assert "by population" in page and "loss during training" in page


def test_a_training_that_converged_ends_and_its_trial_counts(tmp_path):
    rule = (
        "pruning: {function: 'networks_of_mine:weight_norm', direction: maximize, every: 1, "
        "convergence: {window: 3, sd: 10}}\n"
    )
    found = searched(tmp_path, PRUNED.replace("trials: 8", "trials: 2") + rule)
    assert found.trials["status"].eq("complete").all() and found.trials["ended_by"].eq("convergence").all()
    assert found.trials["epochs_done"].tolist() == [4, 4] and found.live["quantity"].eq("weight_norm").all()


def test_measuring_during_training_changes_no_trial(tmp_path, done):
    rule = (
        "pruning: {function: 'networks_of_mine:weight_norm', direction: maximize, every: 1, "
        "convergence: {window: 50}}\n"
    )
    found = searched(tmp_path, SMALL + rule)
    assert found.trials["loss"].tolist() == done.trials["loss"].tolist() and len(found.live) == 16


# -- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_trial_that_raises_is_one_sentence_and_the_others_run(tmp_path):
    text = SMALL.replace(":train", ":breaks").replace("trials: 4", "trials: 6")
    found = searched(tmp_path, text)
    odd = found.trials["width"] % 2 == 1
    assert odd.any() and (~odd).any()
    assert (found.trials["status"] == np.where(odd, "failed", "complete")).all()
    assert set(found.trials["error"][odd]) == {"RuntimeError: odd widths do not work here"}  # in one line
    page = write_page(found)
    assert "odd widths do not work" in page and "networks_of_mine.py" in page  # with where it happened
    # Its code is mended: only what failed is tried again, with the same hyper-parameters.
    code = tmp_path / "networks_of_mine.py"
    code.write_text(code.read_text().replace("if width % 2", "if False"))
    again = run_search(tmp_path / "plan.yaml")
    assert again.trials["status"].eq("complete").all()
    assert again.trials["width"].tolist() == found.trials["width"].tolist()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((":train", ":returns_nothing"), r"returned None: return a torch module or an assay.Subject \(trial 0;"),
        (("number: loss", "number: lost"), "the training tells no number 'lost'; did you mean 'loss'"),
        (
            ("number: loss", "measure: {measure: norms, shape: [4]}"),
            r"'norms' gives \d+ numbers: say which with take; known: ",
        ),
        (("number: loss", "function: 'networks_of_mine:two_norms'"), r"returned \[1, 2\] \(list\), which is no number"),
    ],
)
def test_a_mistake_of_the_plan_that_every_trial_would_meet_ends_the_search(tmp_path, change, sentence):
    with pytest.raises(AssayError, match=sentence):
        searched(tmp_path, SMALL.replace(*change))
    assert trials_of(tmp_path / "run")["status"].tolist() == ["failed", "waiting", "waiting", "waiting"]
    mended = searched(tmp_path)  # nothing was finished, so that the mended plan may have the same place
    assert mended.finished == 4


def test_an_objective_that_is_not_finite_is_a_failed_trial(tmp_path):
    found = searched(tmp_path, SMALL.replace("float: [1e-3, 0.1], log: true", "float: [1e30, 1e31]"))
    assert found.trials["error"].eq("the objective 'loss' is nan").all() and found.best.empty
    assert "Not to be said" in write_page(found)


def test_a_search_of_another_plan_is_not_continued(tmp_path):
    searched(tmp_path, SMALL.replace("trials: 4", "trials: 1"))
    with pytest.raises(AssayError, match=r"was begun by another plan \(1 finished trials\): give the new plan another"):
        searched(tmp_path, SMALL.replace("1e-3", "1e-2"))


def test_two_processes_do_not_work_on_one_sqlite_file(tmp_path):
    plan = write_plan(tmp_path, SMALL)
    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / "search.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AssayError, match="another process is at this search; use --processes, or a PostgreSQL"):
            run_search(plan)


def test_a_damaged_database_is_named(tmp_path, done):
    plan = write_plan(tmp_path, SMALL)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "search.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(AssayError, match=r"run=.*: the database of the search cannot be used \(file is not a database"):
        run_search(plan)
    for damage in ("middle", "end"):
        shutil.copytree(done.path, tmp_path / damage)
        file = tmp_path / damage / "search.db"
        content = bytearray(file.read_bytes())
        content[4096:64096] = b"no database" * 5000
        file.write_bytes(content if damage == "middle" else content[:5000])
        with pytest.raises(AssayError) as error:
            run_search(plan, run=str(tmp_path / damage))
        assert str(error.value).endswith(
            "malformed); search.db is damaged: put a copy of it in its place, or choose another folder"
        )
    (tmp_path / "folder" / "search.db").mkdir(parents=True)
    with pytest.raises(AssayError, match=r"make room and allow writing there, or choose another folder$"):
        run_search(plan, run=str(tmp_path / "folder"))


def test_a_database_that_cannot_be_opened_is_let_go_of(tmp_path, monkeypatch):
    disposed = []
    monkeypatch.setattr(Engine, "dispose", lambda self, close=True: disposed.append(str(self.url)))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "search.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(AssayError, match=r"search\.db is damaged"):
        run_search(write_plan(tmp_path, SMALL))
    assert len(disposed) == 1 and disposed[0].endswith("run/search.db")


# -- classifiers of assay's -----------------------------------------------------------------------------------------

CLASSIFIERS = """
network: conv
data: {path: digits.npz, train: 100, test: 100}
space: {depth: [1, 2], learning_rate: {float: [0.001, 0.05], log: true}}
fixed: {optimizer: adam, batch_size: 50, epochs: 2, width: 4}
trials: 2
objectives:
  - {number: test_accuracy, direction: maximize}
  - {measure: {measure: clusters, bootstrap: 0}, take: davies-bouldin index, direction: minimize}
pruning: {measure: {measure: clusters, bootstrap: 0}, take: davies-bouldin index, direction: minimize, every: 1,
          population: true}
run: run
"""


@pytest.mark.slow
def test_classifiers_of_assay_are_searched_by_name(tmp_path):
    write_digits(tmp_path / "digits.npz")
    found = searched(tmp_path, CLASSIFIERS)
    assert found.trials["status"].eq("complete").all() and found.trials["test_accuracy"].between(0, 1).all()
    # What is measured at the end of training is what is measured afterwards.
    last = found.live[found.live["epoch"] == 2]["value"].to_numpy()
    np.testing.assert_array_equal(last, found.trials["davies-bouldin index"].to_numpy())


def test_wrong_hyperparameters_of_a_classifier_are_named_with_their_line(tmp_path):
    write_digits(tmp_path / "digits.npz")
    with pytest.raises(AssayError, match=r"plan.yaml:4: grid.depht: unknown hyper-parameter of conv; did you mean"):
        load_search_plan(write_plan(tmp_path, CLASSIFIERS.replace("{depth:", "{depht:")))


# -- the page -------------------------------------------------------------------------------------------------------


def write_page(found) -> str:
    return Path(write_search_report(found.path)).read_text()


def test_the_page_shows_the_best_trials_and_every_hyperparameter(done):
    page = write_page(done)
    best = done.best.iloc[0]
    assert f"Trial {best['trial']}: loss {best['loss']:.4g} with width {best['width']}" in page
    assert page.count("data:image/png") == 2 and is_search(Folder(done.path))
    document = search_document(read_search(done.path))
    assert [section.title for section in document.sections][:2] == ["Findings", "Hyper-parameters"]
    assert document.status == "complete"


def test_relations_are_rank_correlations_corrected_for_their_number(done):
    table = relations(done).set_index("hyper-parameter")
    tests = {name: spearmanr(done.trials[name], done.trials["loss"]) for name in ("width", "rate")}
    p = {name: spearman_p(done.trials[name], done.trials["loss"]) for name in tests}  # exact: there are few trials
    for name, expected in tests.items():
        assert table.loc[name, "rho"] == pytest.approx(expected.statistic)
    smallest = min(p, key=p.__getitem__)
    assert table.loc[smallest, "p_holm"] == pytest.approx(min(1, 2 * p[smallest]))


def test_a_quantity_of_a_layer_is_the_mean_of_its_rows():
    assert Quantity("x", "maximize", measure=Rows(), layer="b").of(None, {}) == 2.5
    with pytest.raises(AssayError, match="has no layer 'c'; known: 'a', 'b'"):
        Quantity("x", "maximize", measure=Rows(), layer="c").of(None, {})


class Rows:
    name, value = "rows", "score"

    def __call__(self, subject):
        return pd.DataFrame({"layer": ["a", "b", "b"], "score": [1.0, 2.0, 3.0]})
