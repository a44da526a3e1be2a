"""`assay corpus score`: predictors that somebody has computed already, scored from a table alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from assay import AssayError
from assay.cli.corpus import corpus
from assay.report.document import Table
from assay.report.study import study_document
from assay.runs.run import Run
from assay.studies import Columns, conditional_mutual_information, kendall_tau, read_network_table, score_table


def numbers(replicates=1):
    """A complete grid of networks, their gap, and predictors that are good, bad, constant and missing."""
    width, depth, batch = np.repeat(np.indices((3, 2, 2)).reshape(3, -1), replicates, axis=1)
    rng = np.random.default_rng(0)
    gap = 0.1 * depth + 0.05 * width + 0.05 * rng.random(len(width))
    return pd.DataFrame(
        {
            "model": [f"m{i:02}" for i in range(len(width))],
            "width": 2 ** (width + 3),
            "depth": depth,
            "batch": np.where(batch, "large", "small"),
            "gen_gap": gap,
            "good": gap + 0.01 * rng.random(len(width)),
            "noise": rng.random(len(width)),
            "parameters": 100 * (width + 1) * (depth + 1),
        }
    )


@pytest.fixture
def place(tmp_path):
    def written(table, name="numbers.csv", **how):
        table.to_csv(tmp_path / name, index=False, **how)
        return tmp_path / name

    return written


def test_every_predictor_has_the_scores_that_its_column_has_alone(place, tmp_path):
    table = numbers()
    run, study = score_table(place(table), str(tmp_path / "run"), draws=20)
    assert study.about["hyperparameters"] == ["width", "depth", "batch"]
    assert study.predictors == ["good", "noise", "parameters"]
    scores = study.ranking.set_index("measure")
    grid = table[["width", "depth", "batch"]]
    for column in study.predictors:
        cmi = conditional_mutual_information(table[column], table["gen_gap"], grid)
        assert scores.loc[column, "cmi"] == pytest.approx(cmi, abs=1e-12)
        assert scores.loc[column, "tau"] == pytest.approx(kendall_tau(table[column], table["gen_gap"]), abs=1e-12)
    assert scores.loc["parameters", "cmi"] == 0 and {"cmi_distinct", "granulated_tau"} <= set(scores)
    assert "numbers.csv" in run.report().html and Run(str(tmp_path / "run")).manifest.status == "complete"


def test_the_p_of_paired_differences_is_explained_as_that_of_pairs(place, tmp_path):
    run, _ = score_table(place(numbers()), str(tmp_path / "run"), draws=20)
    tables = [b for section in study_document(run).sections for b in section.blocks if isinstance(b, Table)]
    notes = {table.csv: table.notes["p_max"] for table in tables}
    assert "for all pairs" in notes["study/comparisons.csv"] and "reaches" in notes["study/ranking.csv"]


def test_what_few_cells_do_not_allow_is_said(place, tmp_path):
    """Predicting some cells from others takes ten: without them there is no row of all together; the page says so."""
    together = "control: all hyper-parameters together"
    table = numbers(4)
    for cells, (some, name) in {12: (table, "enough"), 8: (table[table["width"] < 32], "few")}.items():
        run, study = score_table(place(some, f"{name}.csv"), str(tmp_path / name), draws=20)
        said = f"{cells} cells" if cells == 12 else "takes networks of 10 cells of the grid, and these are of 8"
        assert (together in set(study.ranking["measure"])) == bool(len(study.combined)) == (cells == 12)
        assert (said in run.report().html) == (cells == 8) == bool(study.about["not_asked"])


def test_what_was_guessed_is_said(place, tmp_path):
    notes = score_table(place(numbers()), str(tmp_path / "run"), draws=0)[1].about["notes"]
    assert "gap is the column 'gen_gap'" in notes and "network is the column 'model'" in notes
    assert "hyper-parameters, guessed by their few levels: width, depth, batch" in notes


def test_seeds_are_replicates_and_columns_of_the_test_set_never_predictors(place, tmp_path):
    table = numbers(2).assign(seed=[0, 1] * 12, test_loss=0.5, comment="x")
    read = read_network_table(place(table))
    assert read.hyperparameters == ["width", "depth", "batch"] and read.predictors == ["good", "noise", "parameters"]
    assert "neither hyper-parameters nor predictors: seed, test_loss, comment" in read.notes


def test_numbers_of_new_data_are_no_predictors_wherever_their_names_say_so(place):
    leaks = {
        name: np.arange(12.0) for name in ("error_test", "final-test-acc", "acc_val_best", "evalLoss", "eval_loss")
    }
    read = read_network_table(place(numbers().assign(**leaks, latest=np.arange(12.0))))
    assert read.predictors == ["good", "noise", "parameters", "evalLoss", "latest"]


def test_a_measure_named_like_a_control_is_one_sentence(place, tmp_path):
    with pytest.raises(AssayError, match="the measure 'control: depth' begins as the names of controls do: rename it"):
        score_table(place(numbers().assign(**{"control: depth": np.arange(12.0)})), str(tmp_path / "run"), draws=0)


def test_columns_can_be_chosen_by_name(place, tmp_path):
    columns = Columns(hyperparameters=("width", "depth"), predictors=("noise", "parameters"))
    study = score_table(place(numbers()), str(tmp_path / "run"), columns, draws=0)[1]
    assert study.predictors == ["noise", "parameters"] and study.about["hyperparameters"] == ["width", "depth"]


def test_six_networks_of_two_hyperparameters_are_conditioned_on_one_and_that_is_said(place, tmp_path):
    table = numbers().query("batch == 'small'").drop(columns="batch")
    study = score_table(place(table), str(tmp_path / "run"), draws=20)[1]
    assert study.about["sizes"] == [1] and any("do not allow 2" in note for note in study.about["notes"])
    assert study.ranking["cmi"].notna().all()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_tabs_an_index_and_a_byte_order_mark_are_read(tmp_path, separator):
    table = numbers().set_index("model")
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + table.to_csv(sep=separator, index_label=False).encode())
    table.to_csv(tmp_path / "t.csv", sep=separator, encoding="utf-8-sig", index_label="")
    read = read_network_table(tmp_path / "t.csv")
    assert read.table["network"].tolist() == list(table.index) and read.predictors == ["good", "noise", "parameters"]


@pytest.mark.parametrize("separator", [",", ";"])
def test_names_of_columns_may_hold_what_separates_them(place, separator):
    table = numbers().assign(**{"good, last epoch": 1.0, "a;b": 2.0})
    read = read_network_table(place(table, sep=separator))
    assert read.predictors == ["good", "noise", "parameters", "good, last epoch", "a;b"]


def test_beside_a_gap_a_training_accuracy_of_another_name_is_no_control_and_that_is_said(place):
    read = read_network_table(place(numbers().assign(train_acc=np.linspace(0.9, 1, 12))))
    assert "'train_acc' is no control beside a gap: call it 'train_accuracy' if it is that accuracy" in read.notes
    assert "train_accuracy" in read_network_table(place(numbers().assign(train_accuracy=0.9))).table


def test_a_constant_predictor_scores_0_and_is_compared_with_none_and_a_missing_one_is_not_scored(place, tmp_path):
    table = numbers().assign(fixed=3.5, gaps=[np.nan, *range(11)])
    found = score_table(place(table), str(tmp_path / "run"), draws=20)[1]
    ranking = found.ranking.set_index("measure")
    assert ranking.loc["fixed", ["status", "cmi_distinct", "p_max"]].tolist() == ["constant", 0, 1]
    assert len(found.comparisons) and "fixed" not in set(found.comparisons["other"])
    assert ranking.loc["gaps", "status"].startswith("missing in 1") and np.isnan(ranking.loc["gaps", "cmi"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.iloc[:2], "has 2 networks: to compare orders of networks takes 3"),
        (lambda t: t.assign(gen_gap=0.1), "the gap is 0.1 for all networks: there is nothing to predict"),
        (lambda t: t.assign(gen_gap=[np.nan, *t.gen_gap[1:]]), "'gen_gap' is missing or infinite for m00"),
        (lambda t: t.assign(gen_gap=[np.inf, *t.gen_gap[1:]]), "'gen_gap' is missing or infinite for m00"),
        (lambda t: t.assign(gen_gap="wide"), "'gen_gap' is to be numbers, and holds 'wide'"),
        (lambda t: t[["model", "gen_gap", "good"]], "all networks are in one cell"),
        (lambda t: t[["model", "width", "gen_gap"]], "no column is left to predict the gap"),
        (lambda t: t[["model", "width", "gen_gap"]].assign(fixed=1.5), "is the same for all networks, or missing"),
        (lambda t: t.drop(columns="gen_gap"), "has no column 'gap' and no 'train_accuracy' and no 'test_accuracy'"),
        (lambda t: t.assign(model="m"), "has the model 'm' twice, in rows 1 and 2"),
        (lambda t: t.rename(columns={"noise": "good"}), "has the column 'good' twice"),
    ],
)
def test_what_cannot_be_scored_is_an_error_that_says_why(place, tmp_path, change, words):
    with pytest.raises(AssayError, match=words):
        score_table(place(change(numbers())), str(tmp_path / "run"), draws=0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (Columns(gap="gapp"), "has no column 'gapp'"),
        (Columns(gap="zzz"), "has no column 'zzz'; known: [^;]+$"),
        (Columns(hyperparameters=("wdth",)), "has no column 'wdth'; did you mean 'width'"),
        (Columns(hyperparameters=("width",), predictors=("batch",)), "the predictor 'batch' is to be numbers"),
        (Columns(hyperparameters=("fixed",)), "the hyper-parameter 'fixed' is 1 for all networks: leave it out"),
        (Columns(hyperparameters=("some",)), "the hyper-parameter 'some' is missing for m00: name the level"),
    ],
)
def test_columns_that_are_not_what_they_are_said_to_be_are_refused(place, tmp_path, columns, words):
    table = numbers().assign(fixed=1, some=["", *["a", "b"] * 5, "b"])
    with pytest.raises(AssayError, match=words):
        score_table(place(table), str(tmp_path / "run"), columns, draws=0)


def results(**columns):
    """Twelve networks with accuracies instead of the gap: shares, but for what is given."""
    rng = np.random.default_rng(0)
    accuracies = {"train_accuracy": [0.99] * 12, "test_accuracy": rng.uniform(0.8, 0.95, 12).round(4).tolist()}
    return numbers().drop(columns="gen_gap").assign(**(accuracies | columns))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"train_accuracy": [0.99] * 11 + [99]}, "holds 99 for m11, and 'train_accuracy' 0.99 for m00: shares cannot"),
        ({"test_accuracy": [0.9] * 3 + [1.7] + [0.8] * 8}, "holds 1.7 for m03, and 'test_accuracy' 0.9 for m00"),
        ({"test_accuracy": [90.0] * 11 + [0.8]}, "'test_accuracy' holds 90 for m00, and .* 0.8 for m11: shares cannot"),
        ({"test_accuracy": [90.0] * 12}, "'test_accuracy' holds 90 for m00, and 'train_accuracy' 0.99 for m00: shares"),
        ({"test_accuracy": [0.9] * 11 + [-0.1]}, "'test_accuracy' holds -0.1 for m11, which is no accuracy"),
        ({"test_accuracy": [90.0] * 11 + [101]}, "'test_accuracy' holds 101 for m11, which is no accuracy"),
    ],
)
def test_shares_among_percentages_are_refused_with_their_networks(place, columns, words):
    with pytest.raises(AssayError, match=words):
        read_network_table(place(results(**columns)))


def test_a_percent_sign_tells_a_small_percentage_from_a_share(place):
    shares = results(test_accuracy=[0.9, 0.005, 0] * 4)
    signs = results(train_accuracy=["99%"] * 12, test_accuracy=["90.0 %", "0.5%", "0"] * 4)
    percentages = results(train_accuracy=[99] * 12, test_accuracy=[90, 1.5, 0] * 4)
    expected = [0.09, 0.985, 0.99] * 4
    assert np.allclose(read_network_table(place(shares)).table["gap"], expected, atol=1e-12)
    assert np.allclose(read_network_table(place(signs)).table["gap"], expected, atol=1e-12)
    assert np.allclose(read_network_table(place(percentages)).table["gap"], [0.09, 0.975, 0.99] * 4, atol=1e-12)


@pytest.mark.parametrize(("column", "cell"), [("width", ""), ("width", "none"), ("batch", "")])
def test_a_hyperparameter_with_an_empty_cell_is_an_error_and_never_a_predictor(place, column, cell):
    table = numbers().astype({column: object})
    table.loc[3, column] = cell
    with pytest.raises(AssayError, match=rf"'{column}', by its few levels a hyper-parameter, is missing for m03: name"):
        read_network_table(place(table))
    others = tuple({"width", "depth", "batch"} - {column})
    assert read_network_table(place(table), Columns(hyperparameters=others)).hyperparameters == list(others)


def test_columns_that_are_empty_for_half_of_the_networks_or_follow_from_others_are_no_hyperparameters(place):
    table = numbers().assign(comment=["slow", "slow", "odd", *[""] * 9], twice=numbers()["width"] * 2.0)
    table.loc[3, "twice"] = np.nan
    read = read_network_table(place(table))
    assert read.hyperparameters == ["width", "depth", "batch"]
    assert "twice" in read.predictors and "comment" not in read.predictors


def test_decimal_commas_are_read_between_semicolons(place):
    table = numbers()
    read = read_network_table(place(table, sep=";", decimal=","))
    assert read.table["gap"].tolist() == table["gen_gap"].tolist() and read.predictors == [
        "good",
        "noise",
        "parameters",
    ]
    assert "numbers with decimal commas: gen_gap, good, noise" in read.notes
    mixed = read_network_table(place(table.assign(good=[str(g).replace(".", ",") for g in table["good"]]), sep=";"))
    assert mixed.table["good"].tolist() == table["good"].tolist() and mixed.table["noise"].tolist() == list(table.noise)
    with pytest.raises(AssayError, match=r"'gen_gap' is to be numbers, and holds '0,\d+' for m00, which is not"):
        read_network_table(place(table, decimal=","))


def test_the_cell_that_keeps_a_column_from_predicting_is_named(place, tmp_path):
    table = numbers().astype({"noise": object})
    table.loc[3, "noise"] = "0.3 ?"
    table.loc[4, "noise"] = table.loc[5, "noise"]  # not distinct, as the levels of words need not be
    read = read_network_table(place(table))
    assert read.hyperparameters == ["width", "depth", "batch"] and read.predictors == ["good", "parameters"]
    assert any("'noise' is no predictor: it holds '0.3 ?' for m03, which is not" in note for note in read.notes)
    with pytest.raises(AssayError, match=r"the predictor 'noise' is to be numbers, and holds '0.3 \?' for m03"):
        read_network_table(place(table), Columns(predictors=("noise",)))
    with pytest.raises(AssayError, match=r"no column is left .* it holds '0.3 \?' for m03"):
        score_table(place(table.drop(columns=["good", "parameters"])), str(tmp_path / "run"), draws=0)
    table["noise"] = ["1.234,5", *[f"2.000,{i}" for i in range(11)]]
    assert any("it holds '1.234,5' for m00" in note for note in read_network_table(place(table, sep=";")).notes)


def test_a_line_that_states_the_separator_is_no_row(tmp_path):
    text = numbers().to_csv(index=False, sep=";")
    for stated in ("sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\n"):
        (tmp_path / "t.csv").write_bytes((stated + text).encode())
        assert read_network_table(tmp_path / "t.csv").predictors == ["good", "noise", "parameters"]


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_another_encoding_is_named(tmp_path, encoding):
    numbers().replace("large", "groß").to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
    with pytest.raises(AssayError, match=r"t.csv cannot be read as a table \(it is not text in UTF-8\): save it"):
        read_network_table(tmp_path / "t.csv")


def test_a_folder_with_measured_networks_is_not_written_over(place, tmp_path):
    score_table(place(numbers()), str(tmp_path / "run"), draws=0)
    score_table(place(numbers()), str(tmp_path / "run"), draws=0)  # its own is
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    manifest["cells"] = [{"subject": "a", "measure": "b", "fingerprint": "c"}]
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(AssayError, match="holds a run with networks that were measured"):
        score_table(place(numbers()), str(tmp_path / "run"), draws=0)


def test_the_command_prints_the_ranking_and_what_it_guessed(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place(numbers())
    done = CliRunner().invoke(corpus, ["score", "numbers.csv", "--draws", "20", "--json", "-q"])
    said = json.loads(done.stdout)
    measures = [row for row in said["ranking"] if row["kind"] == "measure"]
    assert done.exit_code == 0 and len(measures) == 3 and said["report"].endswith("numbers-scored/report.html")
    done = CliRunner().invoke(
        corpus, ["score", "numbers.csv", "--hyperparameters", "width, depth", "--predictors", "good", "-q"]
    )
    assert done.exit_code == 0 and "good" in done.stdout and "noise" not in done.stdout
    bad = CliRunner().invoke(corpus, ["score", "numbers.csv", "--sizes", "two"])
    assert isinstance(bad.exception, AssayError) and "--sizes two" in str(bad.exception)


def with_accuracies(gap=None, decimals=4, percent=1, train="train_accuracy"):
    """A table with both accuracies and a gap, which is by default their difference before they were rounded."""
    table = numbers()
    right = 1 - 0.01 * np.random.default_rng(1).random(12)
    gap = right - (right - table["gen_gap"]) if gap is None else gap
    accuracies = {train: right, "test_acc": right - table["gen_gap"]}
    return table.assign(gen_gap=gap, **{name: (percent * held).round(decimals) for name, held in accuracies.items()})


@pytest.mark.parametrize("train", ["train_accuracy", "train_acc"])
@pytest.mark.parametrize(("decimals", "percent"), [(2, 1), (4, 1), (0, 100), (12, 100)])
@pytest.mark.parametrize("scale", [1, 100])
def test_a_gap_of_test_minus_training_accuracy_is_refused(place, tmp_path, train, decimals, percent, scale):
    gap = numbers()["gen_gap"] * scale
    said = f"'gen_gap' is 'test_acc' minus '{train}', and a gap is training minus test accuracy: turn its sign"
    with pytest.raises(AssayError, match=said):
        score_table(place(with_accuracies(-gap, decimals, percent, train)), str(tmp_path / "run"), draws=0)
    right = read_network_table(place(with_accuracies(gap, decimals, percent, train)))
    assert not any("minus" in note for note in right.notes)


def test_without_the_turned_column_the_gap_is_made_of_the_accuracies(place):
    table = with_accuracies(train="train_acc")
    assert read_network_table(place(table.drop(columns="gen_gap"))).table["gap"].to_numpy() == pytest.approx(
        table["gen_gap"].to_numpy(), abs=1e-4
    )


def test_a_gap_that_is_no_difference_of_the_accuracies_is_taken_and_its_correlation_is_said(place, tmp_path):
    losses = 3 * numbers()["gen_gap"] ** 2
    study = score_table(place(with_accuracies(losses)), str(tmp_path / "run"), draws=0)[1]
    note = "'gen_gap' is not 'train_accuracy' minus 'test_acc' (rank correlation 1.00): it is taken as it is"
    assert any(said.startswith(note) for said in study.about["notes"])
    turned = read_network_table(place(with_accuracies(-losses)))
    assert any("(rank correlation -1.00)" in said for said in turned.notes)


def test_where_no_network_has_both_accuracies_the_gap_is_not_compared(place):
    table = with_accuracies(-numbers()["gen_gap"])
    odd = np.arange(12) % 2 == 1
    table = table.assign(train_accuracy=table["train_accuracy"].where(odd), test_acc=table["test_acc"].where(~odd))
    assert not any("minus" in note for note in read_network_table(place(table)).notes)
