from __future__ import annotations

import zlib
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from assay import AssayError
from assay.broad.analysis.analysis import TABLES, Analysis, analyze_results
from assay.broad.analysis.scores import RunResult, TaskTruth
from assay.broad.analysis.two_component import resampled_scores, two_component
from assay.broad.conditions import CONTRASTS
from assay.broad.metrics import MAP, RMSE, average_precision_11pt, mean_average_precision, rmse
from assay.core.folder import Folder
from assay.stats.multiplicity import benjamini_hochberg, holm
from assay.stats.paired import wilcoxon_p

KEYS = ("1", "2n", "2s", "3n", "3s", "4n", "4s", "5n", "5s", "6n", "6s")
FOLDS, CLIPS, CLASSES = 4, 60, 3
RATINGS = ("Overall", "Food", "Noise")
SKILL = {"1": 1.0, "2n": 0.8, "2s": 0.8, "3n": 0.5, "3s": 0.5, "4n": 0.4, "4s": 0.4, "5n": 0.6, "5s": 0.6}
SKILL |= {"6n": 2.5, "6s": 0.9}


def video(seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((CLIPS, CLASSES)) < 0.3
    found = []
    for key in KEYS:
        margin = SKILL[key] * truth + rng.normal(size=(FOLDS, CLIPS, CLASSES))
        team = key[1:] or None
        found.append(RunResult("video", key, int(key[0]), team, "done", 1 / (1 + np.exp(-margin))))
    return TaskTruth("video", MAP, ("a", "b", "c"), truth), found


def text(seed=0, n=80, groups=False, keys=KEYS):
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for rating in RATINGS:
        truth = rng.integers(1, 6, size=(n, 1)).astype(float)
        numbers = rng.integers(0, 25, size=n) if groups else None
        truths.append(TaskTruth(f"text:{rating}", RMSE, (rating,), truth, numbers))
        for key in keys:
            predicted = np.clip(truth + rng.normal(size=(FOLDS, n, 1)) / SKILL[key], 1, 5)
            found.append(RunResult(f"text:{rating}", key, int(key[0]), key[1:] or None, "done", predicted))
    return truths, found


def analyzed(results, truths, **more):
    return analyze_results(results, truths, CONTRASTS, **{"bootstrap": 60, **more}).tables


@pytest.fixture(scope="module")
def tables():
    truth, results = video()
    truths, more = text()
    return analyzed(results + more, [truth, *truths])


def only(table, **chosen):
    for column, value in chosen.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


# -- the three graphs -----------------------------------------------------------------------------------


@pytest.mark.requirement("H1")
def test_there_is_one_value_for_each_run_label_and_fold(tables):
    counts = tables["values"].groupby("task").size()
    assert counts["video"] == counts["text"] == 11 * FOLDS * 3 and counts["text:Food"] == 11 * FOLDS
    assert {name: list(t.columns) for name, t in tables.items()} == {name: list(c) for name, c in TABLES.items()}


@pytest.mark.requirement("D7")
def test_values_are_the_metric_and_means_are_taken_over_labels_then_folds(tables):
    truth, results = video()
    scores = next(r.predictions for r in results if r.run == "6s")
    row = only(tables["values"], task="video", run="6s", label="b", fold=2)
    assert row["value"] == average_precision_11pt(truth.targets[:, 1], scores[1, :, 1])
    fold = only(tables["by_fold"], task="video", run="6s", fold=2)
    assert fold["mean"] == pytest.approx(mean_average_precision(truth.targets, scores[1])) and fold["n"] == 3
    each = [average_precision_11pt(truth.targets[:, c], scores[1, :, c]) for c in range(3)]
    assert fold["se"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(3))
    maps = [mean_average_precision(truth.targets, s) for s in scores]
    grand = only(tables["grand"], task="video", run="6s")
    assert grand["mean"] == pytest.approx(np.mean(maps))
    assert grand["se"] == pytest.approx(np.std(maps, ddof=1) / np.sqrt(FOLDS))
    assert (grand["n_folds"], grand["n_labels"], grand["n_instances"], grand["metric"]) == (FOLDS, 3, CLIPS, "MAP")


@pytest.mark.requirement("G5")
def test_combined_text_is_the_mean_over_ratings_within_a_fold(tables):
    truths, results = text()
    of_run = {r.task: r.predictions for r in results if r.run == "3n"}
    fold = [rmse(t.targets[:, 0], of_run[t.task][1, :, 0]) for t in truths]
    assert only(tables["by_fold"], task="text", run="3n", fold=2)["mean"] == pytest.approx(np.mean(fold))
    grand = only(tables["grand"], task="text", run="3n")
    assert (grand["metric"], grand["n_labels"], grand["n_instances"]) == ("mRMSE", 3, 240)
    single = only(tables["by_fold"], task="text:Food", run="3n", fold=2)
    assert np.isnan(single["se"]) and single["n"] == 1


# -- contrasts ------------------------------------------------------------------------------------------


def test_contrasts_are_the_plans_for_each_team_and_better_is_positive(tables):
    contrasts = tables["contrasts"]
    assert len(contrasts) == 5 * 7 * 2 and (contrasts.status == "ok").all()
    for task in ("video", "text"):  # higher is better, lower is better
        means = tables["grand"].query("task == @task").set_index("run")["mean"]
        row = only(contrasts, task=task, contrast="6 v 3", team="n")
        gap = means["6n"] - means["3n"]
        assert row["difference"] == pytest.approx(abs(gap)) and row["plan_rule"] == "6 is better"
        assert (row["focal"], row["other"]) == ("6n", "3n")
    assert set(contrasts[contrasts.contrast == "1 v 3"].focal) == {"1"}


def test_a_contrast_is_what_the_pure_functions_say():
    truth, results = video()
    row = only(analyzed(results, [truth])["contrasts"], contrast="6 v 4", team="s")
    a, b = (next(r.predictions for r in results if r.run == run) for run in ("6s", "4s"))
    d = np.array([mean_average_precision(truth.targets, x) for x in a])
    d -= [mean_average_precision(truth.targets, x) for x in b]
    seed = [0, zlib.crc32(b"video")]
    drawn = resampled_scores(MAP, truth.targets, np.concatenate([a, b]), 60, seed).mean(axis=1)
    v_test = (drawn[:FOLDS] - drawn[FOLDS:]).mean(axis=0).var(ddof=1)
    found = two_component(d, v_test * CLIPS / (CLIPS - 1), units=CLIPS)
    expected = [found.difference, found.low, found.high, found.p, found.v_fold, found.v_test]
    assert [row[k] for k in ("difference", "low", "high", "p", "v_fold", "v_test")] == pytest.approx(expected)
    quantiles = stats.t(found.df).ppf(0.975) + stats.t(found.df).ppf(0.8)
    assert row["mdd"] == pytest.approx(quantiles * np.sqrt(found.variance)) and row["df"] == pytest.approx(found.df)
    assert row["wilcoxon_p"] == wilcoxon_p(d) and row["noninferior"] == (found.low > -0.02)
    assert row["p_better"] + row["p_comparable"] + row["p_worse"] == pytest.approx(1)
    assert row["equivalent"] == (found.low > -0.02 and found.high < 0.02) and not row["few_groups"]
    assert row["noninferior_p"] == pytest.approx(stats.t(found.df).sf((found.difference + 0.02) / found.variance**0.5))


def test_planned_contrasts_are_adjusted_within_a_task_and_ratings_together(tables):
    contrasts = tables["contrasts"]
    planned = contrasts[contrasts.contrast.str.startswith("6")]
    assert contrasts[~contrasts.planned].p_holm.isna().all() and len(planned) == 5 * 8
    for members in (
        planned[planned.task == "video"],
        planned[planned.task == "text"],
        planned[planned.task.str.startswith("text:")],
    ):
        np.testing.assert_allclose(members.p_holm, holm(members.p.to_numpy()))
    labels = tables["labels"]
    video_labels = labels[labels.task == "video"]
    assert len(video_labels) == 7 * 2 * 3 and set(labels.task) == {"video", "text"}
    np.testing.assert_allclose(video_labels.p_bh, benjamini_hochberg(video_labels.p.to_numpy()))


def test_ratings_of_unknown_reviews_have_independent_test_variances():
    """The variance of the mean of three is the sum of theirs by nine, but for chance in the draws."""
    truths, results = text(n=200, keys=("3n", "6n"))
    contrasts = analyzed(results, truths, bootstrap=3000)["contrasts"]
    chosen = contrasts[contrasts.contrast == "6 v 3"].set_index("task").v_test
    parts = [chosen[f"text:{rating}"] for rating in RATINGS]
    # Relative error of a variance of 3000 draws: √(2/3000) = 2.6 %, here four times over.
    assert chosen["text"] == pytest.approx(sum(parts) / 9, rel=0.1)


@pytest.mark.parametrize("known", ["groups", "ids"])
def test_ratings_of_the_same_reviews_share_their_draws(known):
    """The same instances and errors three times: the mean varies as one, not by a third of it."""
    (truth, *_), results = text(n=200, keys=("3n", "6n"))
    names = {"groups": np.arange(200)} if known == "groups" else {"ids": tuple(f"review {i}" for i in range(200))}
    truths = [TaskTruth(f"text:{r}", RMSE, (r,), truth.targets, **names) for r in RATINGS]
    first = [r for r in results if r.task == truth.task]
    repeated = [replace(r, task=t.task) for t in truths for r in first]
    tables = analyzed(repeated, truths, bootstrap=100)
    chosen = tables["contrasts"][tables["contrasts"].contrast == "6 v 3"].set_index("task")
    assert chosen.v_test["text"] == pytest.approx(chosen.v_test["text:Food"], rel=1e-9)
    if known == "ids":
        assert (chosen.n_instances["text"], chosen.n_distinct["text"], chosen.n_distinct["text:Food"]) == (
            600,
            200,
            200,
        )
        detail = only(tables["claims"], task="text", team="n", claim="central")["detail"]
        assert "600 test instances of 200 distinct ones;" in detail


def test_reviews_that_two_ratings_share_are_drawn_for_both_also_without_groups():
    """Half of each test set is in the other's: the covariance of the two is that of the shared half, by hand."""
    rng = np.random.default_rng(3)
    n, shared = 400, 200
    truth = rng.integers(1, 6, size=600).astype(float)
    errors = {key: rng.normal(size=(FOLDS, 600)) for key in ("3n", "6n")}
    members = {"Food": np.arange(n), "Noise": np.arange(n - shared, 2 * n - shared)}
    truths, results = [], []
    for rating, rows in members.items():
        ids = tuple(f"review {i}" for i in rows)
        truths.append(TaskTruth(f"text:{rating}", RMSE, (rating,), truth[rows, None], ids=ids))
        for key, error in errors.items():
            predicted = np.clip(truth + error, 1, 5)[:, rows, None]
            results.append(RunResult(f"text:{rating}", key, int(key[0]), "n", "done", predicted))
    contrasts = analyzed(results, truths, bootstrap=4000)["contrasts"]
    chosen = contrasts[contrasts.contrast == "6 v 3"].set_index("task").v_test
    parts = (chosen["text:Food"] + chosen["text:Noise"]) / 4
    # A review of both weighs twice, so half of each variance is in common: the covariance is about half a variance.
    assert chosen["text"] / parts == pytest.approx(1.5, rel=0.12)


def test_few_groups_widen_the_interval_by_students_t_and_say_so():
    truths, results = text(n=90, groups=False, keys=("1", "3n", "6n"))
    tables = {}
    for count in (9, 90):
        grouped = [replace(t, groups=np.arange(90) % count) for t in truths]
        tables[count] = analyzed(results, grouped)
    for count, few in ((9, True), (90, False)):
        rows = tables[count]["contrasts"]
        rows = rows[rows.contrast == "6 v 3"]
        assert (rows.few_groups == few).all() and (rows.n_groups == count).all()
        for row in rows.to_dict("records"):
            # scipy's Welch test has these degrees of freedom for samples of K and G with these squared errors.
            a = np.array([-1.0, 1.0] * (FOLDS // 2)) * np.sqrt(row["v_fold"] * (FOLDS - 1))
            b = np.linspace(-1, 1, count)
            b *= np.sqrt(row["v_test"] * count) / b.std(ddof=1)
            welch = stats.ttest_ind(a, b, equal_var=False)
            assert row["df"] == pytest.approx(welch.df)
            error = np.sqrt(row["v_fold"] + row["v_test"])
            low, high = stats.t.interval(0.95, welch.df, row["difference"], error)
            assert (row["low"], row["high"]) == pytest.approx((low, high))
    warned = {
        count: t["claims"].query("claim == 'central'").detail.str.contains("Few or") for count, t in tables.items()
    }
    assert warned[9].all() and not warned[90].any()


def test_one_group_decides_nothing():
    truth, results = video()
    tables = analyzed(results, [replace(truth, groups=np.zeros(CLIPS, int))])
    assert (tables["claims"].verdict == "undecided").all() and tables["rankings"].tied.all()
    assert tables["contrasts"].reason.str.contains("belong to one group").all()


# -- rankings and claims --------------------------------------------------------------------------------


@pytest.mark.requirement("H7", "H8")
def test_teams_are_ranked_by_condition_6_within_each_task(tables):
    rankings = tables["rankings"]
    assert set(rankings.task) == {"video", "text", *(f"text:{r}" for r in RATINGS)}
    for task in ("video", "text"):
        rows = rankings[rankings.task == task]
        assert rows["rank"].tolist() == [1, 2] and rows.run.tolist() == ["6n", "6s"]
        assert not rows.tied.any() and (rows.stability > 0.9).all()
        assert (rows.plan_rule == "standard errors apart").all()


def test_equal_systems_are_tied():
    truth, results = video()
    same = [replace(r, predictions=next(o.predictions for o in results if o.run == "6n")) for r in results]
    tables = analyzed(same, [truth])
    assert tables["rankings"].tied.all() and (tables["contrasts"].difference == 0).all()
    assert (tables["contrasts"].p == 1).all() and tables["contrasts"].equivalent.all()


@pytest.mark.requirement("I4")
def test_claims_follow_the_same_rule_for_every_task_and_team(tables):
    claims = tables["claims"]
    assert len(claims) == 5 * 2 * 6
    central = claims[(claims.claim == "central") & (claims.team == "n")].set_index("task").verdict
    assert central["video"] == central["text"] == "supported"
    assert claims[claims.task == "text"].sentence.str.contains("mRMSE").all()


# -- what is missing ------------------------------------------------------------------------------------


def test_a_failed_run_is_missing_and_what_needs_it_undecided():
    truth, results = video()
    broken = [
        replace(r, status="timeout", reason="over 60 s", predictions=None) if r.run == "6n" else r for r in results
    ]
    tables = analyzed(broken, [truth])
    assert only(tables["status"], run="6n") == {
        "task": "video", "run": "6n", "status": "timeout", "reason": "over 60 s",
    }  # fmt: skip
    assert "6n" not in set(tables["values"].run) and len(tables["grand"]) == 10
    contrasts = tables["contrasts"]
    lost = contrasts[(contrasts.team == "n") & contrasts.contrast.str.startswith("6")]
    assert (lost.status == "undecided").all() and lost.difference.isna().all() and lost.noninferior.isna().all()
    assert (lost.reason == "run 6n has no predictions to score: timeout (over 60 s)").all()
    assert (contrasts.drop(lost.index).status == "ok").all()
    claims = tables["claims"]
    assert (claims[claims.team == "n"].verdict == "undecided").all()
    rankings = tables["rankings"]
    assert rankings.run.tolist() == ["6s", "6n"] and rankings["rank"].isna().tolist() == [False, True]
    # What remains is as it was: no other number moved but for the adjusted p, which a missing run never makes smaller.
    whole = analyzed(results, [truth])["contrasts"]
    kept = contrasts.team == "s"
    pd.testing.assert_frame_equal(contrasts[kept].drop(columns="p_holm"), whole[kept].drop(columns="p_holm"))
    planned = kept & contrasts.planned
    assert (contrasts[planned].p_holm >= whole[planned].p_holm).all() and (contrasts[planned].n_family == 8).all()
    np.testing.assert_allclose(contrasts[planned].p_holm, holm(contrasts[planned].p.to_numpy(), family=8))


def test_a_run_that_was_never_there_is_missing():
    truth, results = video()
    row = only(analyzed([r for r in results if r.run != "3s"], [truth])["contrasts"], contrast="6 v 3", team="s")
    assert (row["status"], row["reason"]) == ("undecided", "there is no run of condition 3 for team s")


def test_predictions_that_cannot_be_scored_make_a_run_invalid():
    truth, results = video()
    wrong = results[0].predictions.copy()
    wrong[0, 0, 0] = np.nan
    tables = analyzed([replace(results[0], predictions=wrong), *results[1:]], [truth])
    assert only(tables["status"], run="1")["status"] == "invalid"
    assert only(tables["contrasts"], contrast="6 v 1", team="n")["reason"].endswith(
        ": 1 of 720 predictions are not finite"
    )


def test_a_rating_without_a_run_leaves_the_mean_over_ratings_undecided():
    truths, results = text()
    lost = [r for r in results if (r.task, r.run) != ("text:Food", "6s")]
    row = only(analyzed(lost, truths)["contrasts"], task="text", contrast="6 v 5", team="s")
    assert row["reason"] == "run 6s has no predictions to score: text:Food: missing"


def test_a_class_without_positives_stops_the_analysis_unless_skipped():
    truth, results = video()
    targets = truth.targets.copy()
    targets[:, 2] = False
    with pytest.raises(AssayError, match="no positive"):
        analyzed(results, [replace(truth, targets=targets)])
    skipping = replace(MAP, function=partial(average_precision_11pt, missing="skip"))
    tables = analyzed(results, [replace(truth, targets=targets, metric=skipping)])
    assert (tables["grand"].n_labels == 2).all() and tables["contrasts"].difference.notna().all()
    assert tables["values"].query("label == 'c'").value.isna().all()


# -- files ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_analysing_again_gives_the_same_bytes(tmp_path):
    truth, results = video()
    truths, more = text(groups=True)
    broken = [replace(r, status="failed", predictions=None) if r.run == "5n" else r for r in results]
    names = [f"analysis/{name}.csv" for name in TABLES]
    written = []
    for folder in (Folder(str(tmp_path / "a")), Folder(str(tmp_path / "b"))):
        analysis = analyze_results(broken + more, [truth, *truths], CONTRASTS, bootstrap=30)
        analysis.write(folder)
        written.append([folder.read(name) for name in names])
    assert written[0] == written[1]
    again = Analysis.read(Folder(str(tmp_path / "a")))
    again.write(Folder(str(tmp_path / "c")))
    assert [Folder(str(tmp_path / "c")).read(name) for name in names] == written[0]
    for name, table in analysis.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table, rtol=1e-10)


def test_another_seed_gives_other_draws():
    truth, results = video()
    one, two = (analyzed(results, [truth], seed=seed)["contrasts"] for seed in (0, 1))
    assert (one.v_test != two.v_test).all() and (one.difference == two.difference).all()


def test_reading_what_was_not_written_says_so(tmp_path):
    with pytest.raises(AssayError, match="analyse the results first"):
        Analysis.read(Folder(str(tmp_path)))


def test_runs_beside_the_plans_have_a_table_of_their_own():
    truth, results = video()
    curve = [replace(r, run="6n.untrained") for r in results if r.run == "4n"]
    tables = analyzed(results, [truth], extra=curve)
    assert tables["extra"].run.tolist() == ["6n.untrained"] and "6n.untrained" not in set(tables["values"].run)
    expected = only(tables["grand"], run="4n")["mean"]
    assert tables["extra"]["mean"].tolist() == [expected]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, r: ([t], [*r, r[0]], {}), "run '1' of video is there twice"),
        (lambda t, r: ([], r, {}), "of which no truth is given"),
        (lambda t, r: ([t], [replace(r[0], predictions=r[0].predictions[:, :-1])], {}), "folds × instances × labels"),
        (lambda t, r: ([t], [r[1], replace(r[0], predictions=r[0].predictions[:-1])], {}), r"should be \(4, 60, 3\)"),
        (lambda t, r: ([t], r, {"margins": {"RMSE": 0.1}}), "margins has none for MAP"),
    ],
)
def test_wrong_calls_say_what_is_wrong(change, message):
    truths, results, more = change(*video())
    with pytest.raises(AssayError, match=message):
        analyzed(results, truths, **more)


def test_truth_must_fit_its_labels():
    with pytest.raises(AssayError, match=r"targets are \(5, 2\) for 1 labels"):
        TaskTruth("video", MAP, ("a",), np.ones((5, 2)))
    with pytest.raises(AssayError, match="1 ids for 5 test instances"):
        TaskTruth("video", MAP, ("a",), np.ones((5, 1)), ids=("clip",))
