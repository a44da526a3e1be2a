from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay import AssayError
from assay.broad.conditions import run_specs
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.protocol import Protocol, analyze, run_protocol, spec_of
from assay.broad.run.results import Results
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.broad.tasks import make_tasks

pytestmark = pytest.mark.slow

SECRET = "an open secret, for tests"
C = {"grid": {"C": [0.01, 1.0]}}
SMALL = Protocol(k=3, p=0.6, n=90, ratings=("Overall", "Food"), bootstrap=200)
SMALLER = replace(SMALL, k=2, ratings=("Overall",))  # where one system is looked at


@pytest.fixture(scope="module")
def reviews():
    return generated_reviews(count=400, restaurants=20, seed=3)


@pytest.fixture(autouse=True)
def kit(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "kits"))


def team(letter: str = "s", learner: Module | None = None, **more) -> Team:
    parts = Parts(
        Module("bag_of_words", {"terms": 200, "weights": "binary"}),
        learner or Module("broad_kit:Small", {"seed": ord(letter)}),
        Module("linear_svr", C),
        **more,
    )
    return Team(letter, f"Team {letter}", {"text": parts})


def evaluators() -> dict:
    return {"text": Evaluators(Module("bag_of_words", {"terms": 200}), Module("topics", {"grid": {"topics": [3, 5]}}))}


def evaluate(reviews, folder, *teams, protocol=SMALL, **more):
    return run_protocol(None, reviews, teams, evaluators(), str(folder), SECRET, protocol, **more)


def statuses(folder, task="text:Overall") -> dict[str, str]:
    return {
        key: Results(str(folder)).read_run(task, key).status
        for key in next(t for t in Results(str(folder)).read_manifest()["tasks"] if t["name"] == task)["runs"]
    }


def test_1n_is_another_name_of_1():
    assert spec_of("1n") == spec_of("1")
    assert (spec_of("6s").condition.number, spec_of("6s").team) == (6, "s")
    with pytest.raises(AssayError, match="a condition 1 to 6"):
        spec_of("7s")


# -- what systems see ---------------------------------------------------------------------------------------


@pytest.mark.requirement("A8", "B8", "D3")
def test_b8_other_ratings_are_gone_and_a8_test_labels_too(reviews):
    tasks = make_tasks(None, reviews, SECRET, 3, 0.6, 90)
    assert [t.name for t in tasks] == [f"text:{r}" for r in reviews.labels]
    for task in tasks:
        view = task.for_systems()
        assert view.known.shape[1] == 1
        assert np.isnan(view.known[view.partition.test]).all()
        assert np.isfinite(view.known[view.partition.training]).all()
        with pytest.raises(AssayError, match="labels of test instances were asked for"):
            view.y(view.partition.test[:1], 0)


def test_runs_see_instances_in_an_order_and_under_ids_that_say_nothing(reviews):
    task = make_tasks(None, reviews, SECRET, 3, 0.6, 90, ("Overall",))[0]
    view = task.for_systems()
    assert view.inputs.ids[:2] == ("instance-000000", "instance-000001")
    assert sorted(view.inputs.items) == sorted(task.dataset.inputs.items) != list(view.inputs.items)
    texts = [view.inputs.items[i] for i in view.partition.test]
    assert [texts[i] for i in view.test_order] == [task.dataset.inputs.items[i] for i in task.partition.test]
    for fold, same in zip(task.partition.folds, view.partition.folds, strict=True):
        assert [task.dataset.inputs.items[i] for i in fold] == [view.inputs.items[i] for i in same]
        assert np.array_equal(task.dataset.targets[fold, 0].astype(np.float32), view.known[same, 0])
    other = make_tasks(None, reviews, SECRET + "!", 3, 0.6, 90, ("Overall",))[0].for_systems()
    assert list(other.inputs.items) != list(view.inputs.items)


@pytest.mark.requirement("D9")
def test_the_learner_is_given_training_and_validation_features_only(reviews, tmp_path):
    """D9: neither labels nor test instances reach it, and the worker that trains a classifier sees no test instance."""
    from assay.broad.data.features import FeatureStore
    from assay.broad.run import remote
    from assay.broad.run.condition import RunCondition
    from assay.broad.run.job import make_job
    from assay.core.folder import Folder

    asked = []
    ask = remote.Remote.ask

    def note(self, question, **arguments):
        asked.append((self.name, question, arguments))
        return ask(self, question, **arguments)

    task = make_tasks(None, reviews, SECRET, 3, 0.6, 90, ("Overall",))[0]
    view = task.for_systems()
    job = make_job(run_specs(("s",))[-1], "text", {"s": team("s")}, evaluators()["text"])
    run = RunCondition(view, job, Results(str(tmp_path)), FeatureStore(Folder(str(tmp_path))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote.Remote, "ask", note)
        run.represent()
    fits = {name: arguments for name, question, arguments in asked if question == "fit"}
    learn = np.concatenate([view.partition.training, view.partition.validation])
    assert fits.keys() == {"bag_of_words", "broad_kit:Small"}
    assert sorted(fits["bag_of_words"]["X"].items) == sorted(view.inputs.items[i] for i in learn)
    words = job.module.build().fit(view.inputs.take(learn))
    given = fits["broad_kit:Small"]
    assert given.keys() == {"X"}
    assert (given["X"] != words.transform(view.inputs.take(learn))).nnz == 0


# -- the whole ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(reviews, tmp_path_factory):
    folder = tmp_path_factory.mktemp("broad") / "run"
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "kits"))
    try:
        analysis = evaluate(reviews, folder, team("n"), team("s"), processes=2)
    finally:
        sys.path.remove(str(Path(__file__).parents[1] / "kits"))
    return folder, analysis


@pytest.mark.requirement("A5", "D1")
def test_all_runs_of_all_tasks_are_done(done):
    folder, analysis = done
    for task in ("text:Overall", "text:Food"):
        found = statuses(folder, task)
        assert len(found) == 11
        assert set(found.values()) == {"done"}, found
    grand = analysis.tables["grand"]
    assert np.isfinite(grand["mean"]).all()
    assert {"text:Overall", "text:Food", "text"} <= set(grand["task"])


@pytest.mark.requirement("A3", "C6")
def test_a3_one_partition_in_all_manifests(done):
    folder, _ = done
    for task in Results(str(folder)).read_manifest()["tasks"]:
        hashes = {Results(str(folder)).read_run(task["name"], key).partition for key in task["runs"]}
        assert hashes == {task["partition"]}


def test_the_seed_is_not_in_the_folder_but_its_commitment_is(done):
    folder, _ = done
    everything = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert SECRET.encode() not in everything
    from assay.broad.data.partition import commitment

    assert Results(str(folder)).read_manifest()["commitment"] == commitment(SECRET)


@pytest.mark.requirement("A4")
def test_a4_analysing_again_gives_the_same_bytes(done):
    folder, _ = done
    before = {p.name: p.read_bytes() for p in (folder / "analysis").iterdir()}
    shutil.rmtree(folder / "analysis")
    analyze(str(folder))
    assert {p.name: p.read_bytes() for p in (folder / "analysis").iterdir()} == before


@pytest.mark.requirement("A12")
def test_a12_one_run_again_leaves_the_others_untouched(reviews, done, kit):
    folder, _ = done
    files = list((folder / "runs").rglob("*.npz"))
    before = {p: (p.stat().st_mtime_ns, np.load(p)["predictions"]) for p in files}
    evaluate(reviews, folder, team("n"), team("s"), only=("text:Food/4s",))
    changed = {p for p in files if p.stat().st_mtime_ns != before[p][0]}
    assert {p.parent.relative_to(folder / "runs").as_posix() for p in changed} == {"text-Food/4s"}
    assert all(np.array_equal(np.load(p)["predictions"], before[p][1]) for p in files)  # and it comes out the same


def test_running_again_does_nothing(reviews, done):
    folder, _ = done
    before = {p: p.stat().st_mtime_ns for p in (folder / "runs").rglob("*") if p.is_file()}
    evaluate(reviews, folder, team("n"), team("s"))
    assert {p: p.stat().st_mtime_ns for p in (folder / "runs").rglob("*") if p.is_file()} == before


def test_a_damaged_fold_is_made_again(reviews, done):
    folder, _ = done
    fold = folder / "runs" / "text-Overall" / "2n" / "fold02.npz"
    whole = np.load(fold)["predictions"]
    fold.write_bytes(fold.read_bytes()[:100])
    evaluate(reviews, folder, team("n"), team("s"))
    assert np.array_equal(np.load(fold)["predictions"], whole)


def test_another_seed_needs_another_folder(reviews, done):
    folder, _ = done
    with pytest.raises(AssayError, match="another partition of text:Overall"):
        run_protocol(None, reviews, [team("n")], evaluators(), str(folder), SECRET + "!", SMALL)


@pytest.mark.requirement("I3")
def test_another_margin_after_results_is_refused_and_reviews_keep_their_ids_in_all_truths(reviews, done):
    folder, _ = done
    wide = replace(SMALL, margin={"MAP": 0.5, "RMSE": 0.5})
    with pytest.raises(AssayError, match=r"this would change margin MAP 0.02, RMSE 0.02 to MAP 0.5, RMSE 0.5"):
        run_protocol(None, reviews, [team("n"), team("s")], evaluators(), str(folder), SECRET, wide)
    results = Results(str(folder))
    assert results.read_manifest()["protocol"]["margin"] == {"MAP": 0.02, "RMSE": 0.02}
    for task in results.read_manifest()["tasks"]:
        assert set(results.read_truth(task["name"])[2]) <= set(reviews.inputs.ids)


@pytest.mark.requirement("D5")
def test_predictions_are_those_of_the_obvious_way(reviews, done):
    """Run 2s from the definition, fold 1: words of all training text, tuned on the other folds and what is left."""
    from sklearn.svm import SVR

    folder, _ = done
    task = make_tasks(None, reviews, SECRET, 3, 0.6, 90, ("Overall",))[0]
    part, y = task.partition, task.dataset.targets[:, 0]
    features = evaluators()["text"].extractor.build()
    learn = np.concatenate([part.training, part.validation])
    features.fit(task.dataset.inputs.take(learn))
    x = {name: features.transform(task.dataset.inputs.take(rows)) for name, rows in
         {"fold": part.get_fold(1), "tune": np.concatenate([part.complement(1), part.validation]),
          "test": part.test}.items()}  # fmt: skip
    tune = np.concatenate([part.complement(1), part.validation])
    best = None
    for cost in (0.01, 1.0):
        model = SVR(kernel="linear", C=cost, epsilon=0.1).fit(x["fold"], y[part.get_fold(1)])
        error = np.sqrt(np.mean((np.clip(model.predict(x["tune"]), 1, 5) - y[tune]) ** 2))
        if best is None or error < best[0]:
            best = error, np.clip(model.predict(x["test"]), 1, 5), cost
    kept, info = Results(str(folder)).read_fold("text:Overall", "2s", 1)
    assert info.chosen == [{"C": best[2]}]
    np.testing.assert_allclose(kept["predictions"][:, 0], best[1], atol=1e-5)  # kept as float32


# -- systems that do what they must not -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("Throws", "failed", "RuntimeError: out of cheese"),
        ("Dies", "failed", r"the process died at 'learner: fit' \(signal 9\)"),
        ("GivesNaN", "invalid", "the learner gave NaN or infinite values for training instances"),
        ("LearnsWhenShown", "learned at test time", "the learner changed while it was shown test instances"),
        ("LearnsInSecret", "learned at test time", "answers otherwise when test instances come in another order"),
        ("LosesRows", "invalid", "the learner gave 89 rows for 90 training instances"),
    ],
)
@pytest.mark.requirement("D8", "K4")
def test_each_misdeed_ends_in_its_status_and_the_others_finish(reviews, tmp_path, name, status, reason):
    analysis = evaluate(reviews, tmp_path, team("s", Module(f"broad_kit:{name}")), protocol=SMALLER)
    assert set(others(tmp_path)) == {"done"}
    require_misdeed(analysis, tmp_path, status, reason)


@pytest.mark.requirement("K5")
def test_what_hangs_is_ended_and_the_others_finish(reviews, tmp_path):
    for limit_s in (3, 15, 75, 375):  # a busy machine may need longer than this for what does not hang
        folder = tmp_path / str(limit_s)
        protocol = replace(SMALLER, limit_s=float(limit_s))
        analysis = evaluate(reviews, folder, team("s", Module("broad_kit:Hangs")), protocol=protocol)
        if set(others(folder)) == {"done"}:
            break
    require_misdeed(analysis, folder, "timeout", f"'learner: fit' took longer than {limit_s} s")


def others(folder) -> list[str]:
    """How the runs went that have nothing to do with the learner."""
    return [status for run, status in statuses(folder).items() if run not in ("5s", "6s")]


def require_misdeed(analysis, folder, status: str, reason: str) -> None:
    assert [statuses(folder)[run] for run in ("5s", "6s")] == [status, status]
    assert re.search(reason, Results(str(folder)).read_run("text:Overall", "6s").reason)
    grand = analysis.tables["grand"].set_index("run")["mean"]
    assert "6s" not in grand.dropna().index  # shown as missing, never imputed
    assert (analysis.tables["claims"]["verdict"] == "undecided").all()


def test_a_system_that_peeks_at_test_labels(reviews, tmp_path):
    learner = Module("broad_kit:Peeks", {"place": str(tmp_path / "truth")})
    evaluate(reviews, tmp_path, team("s", learner), protocol=SMALLER)
    assert statuses(tmp_path)["6s"] == "peeked"
    assert "truth" in Results(str(tmp_path)).read_run("text:Overall", "6s").reason


@pytest.mark.requirement("J1")
def test_one_layer_is_a_status_not_an_exception(reviews, tmp_path):
    learner = Module("broad_kit:Small", {"units": [8]})
    evaluate(reviews, tmp_path, team("s", learner), protocol=SMALLER)
    assert (statuses(tmp_path)["5s"], statuses(tmp_path)["6s"]) == ("done", "non-conforming")
    assert "has 1 layer, at least 3" in Results(str(tmp_path)).read_run("text:Overall", "6s").reason
    assert Results(str(tmp_path)).predictions("text:Overall", "6s", SMALLER.k) is not None


@pytest.mark.requirement("A13")
def test_the_end_of_a_phase_has_learning_curves_and_layers(reviews, tmp_path):
    protocol = replace(SMALLER, phase="end", curve=(0.0, 0.5, 1.0))
    analysis = evaluate(reviews, tmp_path, team("s"), protocol=protocol)
    assert {"6s.layer1", "6s.layer2", "6s.share0", "6s.share0.5"} <= set(statuses(tmp_path))
    assert set(analysis.tables["extra"]["run"]) == {"6s.layer1", "6s.layer2", "6s.share0", "6s.share0.5"}
    assert np.isfinite(analysis.tables["extra"]["mean"]).all()
    assert set(statuses(tmp_path).values()) == {"done"}


@pytest.mark.requirement("K1")
def test_pre_trained_systems_are_declared(reviews, tmp_path):
    import broad_kit
    from assay.broad.systems.saved_learner import save_learner

    protocol = SMALLER
    save_learner(broad_kit.Small(seed=5).fit(np.eye(200)), tmp_path / "made")
    with pytest.raises(AssayError, match="needs a declaration"):
        team("s", trained_from=tmp_path / "made")
    one = team("s", trained_from=tmp_path / "made", declaration="learned by the protocol at site B")
    evaluate(reviews, tmp_path / "b", one, protocol=protocol)
    record = Results(str(tmp_path / "b")).read_run("text:Overall", "6s")
    assert (record.status, record.reason) == ("pre-trained", "learned by the protocol at site B")
    assert "learner: fit" not in record.seconds
    assert Results(str(tmp_path / "b")).read_run("text:Overall", "5s").status == "done"


@pytest.mark.requirement("A14")
def test_manifest_has_no_speed_in_rankings(done):
    folder, analysis = done
    assert not any("second" in c for c in analysis.tables["rankings"].columns)
    assert json.loads((folder / "runs" / "text-Overall" / "6s" / "run.json").read_text())["seconds"]


def test_a_manifest_that_changes_while_systems_run_is_put_back_and_said(reviews, tmp_path, monkeypatch):
    """Without walls a system can write it, and the margin or the kind of walls with it."""
    from assay.broad import protocol

    def forge(*_):
        (tmp_path / "run" / "manifest.json").write_text("forged")
        return []

    monkeypatch.setattr(protocol, "run_tasks", forge)
    with pytest.raises(AssayError, match=r"manifest\.json of .* changed while systems ran"):
        evaluate(reviews, tmp_path / "run", team("n"), team("s"))
    assert '"margin"' in (tmp_path / "run" / "manifest.json").read_text()
