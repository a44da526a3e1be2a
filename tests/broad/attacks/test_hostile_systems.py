"""Hostile systems, each with the status it must get: none reads a label, lives on, or harms another run."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.broad.conditions import run_specs
from assay.broad.data.partition import Partition
from assay.broad.data.twin_reviews import generated_reviews
from assay.broad.run.job import Job, make_job
from assay.broad.run.processes import Order, work
from assay.broad.run.sandbox import keeping_to_itself, kind_of_walls
from assay.broad.run.warden import PRIVATE
from assay.broad.systems.team import Evaluators, Module, Parts, Team
from assay.broad.tasks import View, make_tasks

pytestmark = [pytest.mark.slow, pytest.mark.skipif(kind_of_walls() != PRIVATE, reason="no user namespaces here")]
HERE = Path(__file__).parent
SECRET = "an open secret, for attacks"
DAEMON = "assay-hostile-daemon"

# The learner's name, the status that its run must get, and what the reason must say.
LEARNERS = {
    "OpensTruth": ("peeked", "where labels are"),
    "OpensTruthWhenMade": ("peeked", "where labels are"),
    "OpensTruthInAThread": ("peeked", "where labels are"),
    "CopiesTruthByAProgram": ("done", ""),
    "LinksTruth": ("done", ""),
    "ReadsEvaluatorsFiles": ("done", ""),
    "WalksTheCollector": ("done", ""),
    "ReadsOtherProcesses": ("done", ""),
    "AttachesToProcesses": ("done", ""),
    "ReadsTheEnvironment": ("done", ""),
    "ReadsInheritedFiles": ("done", ""),
    "TakesTheWallsDown": ("done", ""),
    "ThrowsWhenMade": ("failed", "no layers for you"),
    "Exits": ("failed", "SystemExit"),
    "ExitsAtOnce": ("failed", "the process died at 'learner: fit' (exit code 0)"),
    "WritesResultsOfOthers": ("done", ""),
    "WritesByAProgram": ("done", ""),
    "PlantsCode": ("done", ""),
    "LeavesADaemon": ("done", ""),
    "KillsAll": ("done", ""),
    "GoesToTheNetwork": ("done", ""),
    "SendsAPickle": ("failed", ""),
    "AnswersWithAPickle": ("invalid", "no JSON"),
    "AnnouncesTooMuch": ("invalid", "more than the"),
    "SendsTooMuch": ("invalid", "a message of more than"),
    "GivesObjects": ("invalid", "no kind of number"),
    "GivesWords": ("invalid", "no kind of number"),
    "GivesABrokenMatrix": ("invalid", "a sparse matrix that is none"),
    "FakesTheFingerprint": ("learned at test time", "in another order or number"),
    "RemembersTheTestSet": ("learned at test time", "in another order or number"),
    "RemembersInAFile": ("learned at test time", "in another order or number"),
    "PatchesNumpy": ("done", ""),
}
CLASSIFIERS = {
    "GathersLabelsOverFolds": ("done", ""),
    "RemembersWhenPredicting": ("learned at test time", "in another order or number"),
}
OF_OTHER_FILES = {
    "patches_at_import:Patches": ("done", ""),
    "hostile_channels:KeepsFoldsForTheTest": ("done", ""),
    "hostile_channels:HidesInSmallNumbers": ("learned at test time", "the classifier answers otherwise"),
    "hostile_channels:ReadsTheLog": ("done", ""),
    "hostile_channels:ChangesTheMachine": ("done", ""),
    "hostile_channels:MakesNamespaces": ("done", ""),
    "hostile_channels:AnnouncesNonsense": ("invalid", "an array that is none"),
    "hostile_channels:AnnouncesNoKind": ("invalid", "an array that is none"),
    "hostile_channels:NamesLayersByHalfCharacters": ("done", ""),
    "hostile_channels:TrainedElsewhere": ("failed", "leads to what no system may see"),
}
# Classifiers of other files: by themselves, or with a learner.
PARTNERS = {
    "hostile_channels:KeepsFoldsForTheTest": ("hostile:Honest", "hostile_channels:KeepsFoldsForTheTest"),
    "hostile_channels:HidesInSmallNumbers": (
        "hostile_channels:HidesInSmallNumbers",
        "hostile_channels:MakesThemLarge",
    ),
}
ALL = LEARNERS | CLASSIFIERS | OF_OTHER_FILES
# Classifiers need two folds to gather labels over; to all others a second fold would be like the first.
OF_TWO_FOLDS = ("HonestOfTwoFolds", *CLASSIFIERS, "hostile_channels:KeepsFoldsForTheTest")
HONEST = {1: "Honest", 2: "HonestOfTwoFolds"}
# Made once: the sources of a module are found when it is first asked for its hash.
WORDS = Module("bag_of_words", {"terms": 60})
REGRESSION = Module("linear_svr", {"grid": {"C": [1.0]}})


def team(name: str, place: Path, precious: Path, port: int) -> Team:
    settings = {"place": str(place), "precious": str(precious), "port": port}
    learner, classifier = Module("hostile:Honest", settings), REGRESSION
    if name in CLASSIFIERS:
        classifier = Module(f"hostile:{name}", {"grid": {"C": [1.0]}})
    elif name in PARTNERS:
        learner, classifier = Module(PARTNERS[name][0], settings), Module(PARTNERS[name][1], {"grid": {"C": [1.0]}})
    elif not name.startswith("Honest"):
        learner = Module(name if ":" in name else f"hostile:{name}", settings)
    parts = Parts(WORDS, learner, classifier)
    if name.endswith("TrainedElsewhere"):
        (place / "learner").symlink_to(precious / "labels.csv")
        parts = replace(parts, trained_from=place / "learner", declaration="learned by the protocol")
    return Team("s", name, {"text": parts})


def job_of(team: Team) -> Job:
    job = make_job(run_specs(("s",))[-1], "text", {"s": team}, Evaluators(WORDS, REGRESSION))
    for module in (job.module, job.learner, job.classifier):
        assert module.source_hash  # found here, as for a manifest, and not by each run again
    return job


def views() -> tuple[View, View]:
    """The task with two folds, and with one: the other tunes."""
    reviews = generated_reviews(count=150, restaurants=9, seed=3)
    two = make_tasks(None, reviews, SECRET, 2, 0.6, 40, ("Overall",))[0].for_systems()
    first, second = two.partition.folds
    validation = np.sort(np.concatenate([second, two.partition.validation]))
    one = replace(two, partition=Partition((first,), validation, two.partition.test), hash=f"{two.hash}, one fold")
    return two, one


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """All attacks, two at a time, and the honest run between them; what came of each, and the place."""
    place = tmp_path_factory.mktemp("attacks")
    precious = place / "precious"
    precious.mkdir()
    (precious / "labels.csv").write_text("id,label\n1,5\n")
    of_two_folds, of_one_fold = views()
    orders = []
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.create_server(("127.0.0.1", 0)) as server,
        log_with_labels(place / "log"),
    ):
        patch.syspath_prepend(str(HERE))
        patch.setenv("ASSAY_TEST_SECRET", SECRET)
        server.settimeout(0.01)
        for name in ("Honest", "HonestOfTwoFolds", *ALL):
            view = of_two_folds if name in OF_TWO_FOLDS else of_one_fold
            folder = place / name.replace(":", "-")
            (folder / "truth").mkdir(parents=True)
            (folder / "truth" / "text-Overall.npz").write_bytes(b"labels that no worker may see")
            (folder / "manifest.json").write_text("{}")
            job = job_of(team(name, folder, precious, server.getsockname()[1]))
            forbidden = (str(folder / "truth"), str(precious))
            orders.append(Order("text:Overall", view, job, str(folder), str(place / "work"), forbidden, limit_s=120))
        with keeping_to_itself(SECRET):
            records = list(work(orders, processes=2))
        with pytest.raises(TimeoutError):
            server.accept()
    by_name = {Path(order.results).name: None for order in orders}
    from assay.broad.run.results import Results

    for name in by_name:
        by_name[name] = Results(str(place / name)).read_run("text:Overall", "6s")
    assert len(records) == len(orders)
    return by_name, place


@contextmanager
def log_with_labels(file: Path):
    """Standard error is a log in the block, as under a batch system, and somebody has printed labels to it."""
    before = os.dup(2)
    with file.open("w") as log:
        log.write("labels that were printed\n")
        log.flush()
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@pytest.mark.parametrize("name", ALL)
def test_it_gets_its_status_and_no_loot(attacked, name):
    record = attacked[0][name.replace(":", "-")]
    status, reason = ALL[name]
    assert "LOOT" not in record.reason + record.traceback
    assert record.status == status, (record.reason, record.traceback)
    assert reason in record.reason


def test_what_does_nothing_wrong_is_done_beside_them(attacked):
    assert attacked[0]["Honest"].status == attacked[0]["HonestOfTwoFolds"].status == "done"


def test_attacks_that_come_to_nothing_give_the_predictions_of_the_honest(attacked):
    from assay.broad.run.results import Results

    records, place = attacked
    two_folds = [name.replace(":", "-") for name in OF_TWO_FOLDS]
    honest = {k: Results(str(place / name)).predictions("text:Overall", "6s", k) for k, name in HONEST.items()}
    for name, record in records.items():
        if record.status == "done":
            folds = 2 if name in two_folds else 1
            found = Results(str(place / name)).predictions("text:Overall", "6s", folds)
            assert len(found) == folds and np.array_equal(found, honest[folds]), name


def test_nothing_of_the_evaluators_was_touched(attacked):
    _, place = attacked
    assert sorted(p.name for p in (place / "precious").iterdir()) == ["labels.csv"]
    for folder in place.iterdir():
        if (folder / "truth").is_dir():
            assert (folder / "manifest.json").read_text() == "{}"
            assert [p.name for p in (folder / "runs" / "text-Overall").iterdir()] == ["6s"]
            assert not list((folder / "runs").glob("forged"))
    planted = ("assay_planted.pth", "sitecustomize.py", "assay_planted.py")
    assert not [p for p in (HERE, *map(Path, sys.path)) for name in planted if (p / name).exists()]
    assert not any(name in sys.modules for name in ("hostile", "hostile_channels", "patches_at_import"))


def test_no_process_lives_on(attacked):
    for _ in range(50):
        living = [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and DAEMON.encode() in command(p.name)]
        if not living:
            return
        time.sleep(0.1)
    raise AssertionError(living)


def command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
