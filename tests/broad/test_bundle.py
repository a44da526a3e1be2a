"""The results of another site: packed there, taken in here, compared and shown."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from assay import AssayError
from assay.broad.bundle import ingest, pack, sites
from assay.broad.protocol import analyze, compare_folders
from assay.broad.run.results import FoldInfo, Results, RunRecord
from assay.report.broad.evaluation import Evaluation
from assay.report.broad.sites import site_blocks

RUNS = ("1", "2s", "3s", "4s", "5s", "6s")
TRUTH = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [3.0], [2.0], [4.0]])


def evaluation(folder: Path, shift: float = 0.0) -> str:
    """Write an evaluation of one rating and one team; the predictions of run 6s are shifted."""
    results = Results(str(folder))
    task = {"name": "text:Food", "modality": "text", "labels": ["Food"], "partition": "ab" * 32, "runs": list(RUNS),
            "training": 6, "validation": 0, "test": len(TRUTH), "data": "made up"}  # fmt: skip
    protocol = {"k": 2, "margin": {"MAP": 0.02, "RMSE": 0.02}, "bootstrap": 20}
    results.write_manifest({"tasks": [task], "protocol": protocol, "teams": [{"letter": "s", "name": "S"}]})
    results.write_truth("text:Food", TRUTH, None, tuple(f"i{i}" for i in range(len(TRUTH))))
    rng = np.random.default_rng(0)
    for run in RUNS:
        results.write_run(RunRecord("text:Food", run, "done", partition="ab" * 32, stages={"features": run}))
        for fold in (1, 2):
            predictions = np.clip(TRUTH + rng.normal(size=TRUTH.shape) / 2 + shift * (run == "6s"), 1, 5)
            results.write_fold(
                "text:Food", run, fold, {"predictions": predictions}, FoldInfo("h", [{}], [0.5], [], 1.0)
            )
    analyze(str(folder))
    return str(folder)


@pytest.mark.requirement("K2", "A6")
def test_results_of_a_site_are_packed_taken_in_compared_and_shown(tmp_path):
    ours, theirs = evaluation(tmp_path / "ours"), evaluation(tmp_path / "theirs", shift=1.5)
    held = pack(theirs, tmp_path / "results.zip")
    assert "manifest.json" in held and not any("truth" in name for name in held)
    place = ingest(ours, tmp_path / "results.zip", "team-s")
    assert sites(ours) == ["team-s"] and not (Path(place) / "truth").exists()
    table = compare_folders(ours, place).set_index("run")
    assert set(table.loc[["1", "2s", "3s", "4s", "5s"], "agreement"]) == {"identical"}
    assert (
        table.loc["6s", "agreement"] == "different conclusion" and table.loc["6s", "mean_b"] > table.loc["6s", "mean_a"]
    )
    sentence, shown = site_blocks(Evaluation(ours))
    assert sentence.text == "team-s: identical: 5; different conclusion: 1."
    assert shown.frame["agreement"].tolist() == table["agreement"].tolist()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("../outside.json", "which results do not have"), ("truth/x.npz", "which results do not have"),
     ("learner.pkl", "which results do not have")],
)  # fmt: skip
def test_a_file_with_anything_else_is_refused_whole(tmp_path, name, sentence):
    ours = evaluation(tmp_path / "ours")
    pack(ours, tmp_path / "results.zip")
    with zipfile.ZipFile(tmp_path / "results.zip", "a") as archive:
        archive.writestr(name, b"")
    with pytest.raises(AssayError, match=sentence):
        ingest(ours, tmp_path / "results.zip", "site")
    assert sites(ours) == []


def test_other_partitions_names_and_files_are_refused(tmp_path):
    ours, theirs = evaluation(tmp_path / "ours"), evaluation(tmp_path / "theirs")
    manifest = Path(theirs, "manifest.json")
    manifest.write_text(manifest.read_text().replace("ab" * 32, "cd" * 32))
    pack(theirs, tmp_path / "results.zip")
    with pytest.raises(AssayError, match="has another partition of text:Food"):
        ingest(ours, tmp_path / "results.zip", "site")
    with pytest.raises(AssayError, match="a site is named by letters"):
        ingest(ours, tmp_path / "results.zip", "../site")
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(AssayError, match="cannot be read as results of a site"):
        ingest(ours, tmp_path / "text.zip", "site")
    pack(ours, tmp_path / "same.zip")
    ingest(ours, tmp_path / "same.zip", "site")
    with pytest.raises(AssayError, match="has results of a site 'site' already"):
        ingest(ours, tmp_path / "same.zip", "site")
    shutil.rmtree(Path(ours, "sites"))
    assert sites(ours) == []
