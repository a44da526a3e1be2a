"""The real command line: what it does, and 25 kinds of bad input, each one clear sentence and exit code 2."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from assay.networks import small_vgg
from command_kit import assay
from processes import hear_interrupts, wait_until

pytestmark = pytest.mark.slow

ASSAY = [str(Path(sys.executable).parent / "assay")]


def frames(folder: Path, n: int = 5, size: int = 16) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for t in range(n):
        Image.fromarray(rng.integers(0, 256, (size, size, 3), dtype=np.uint8)).save(folder / f"{t:02d}.png")


GOOD = {
    "run": "run",
    "subjects": [{"source": "assay.networks:small_vgg", "name": "vgg"}],
    "measures": [{"measure": "straightness", "sequences": {"folder": "clips", "color": "rgb"}}],
}


def write_plan(folder: Path, plan: dict | None = None) -> Path:
    frames(folder / "clips" / "a")
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan or GOOD, sort_keys=False))
    return path


def test_the_installed_script_says_what_it_can_do_and_exits_with_2_when_it_cannot(tmp_path):
    helped = subprocess.run([*ASSAY, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0 and "corpus" in helped.stdout
    failed = subprocess.run([*ASSAY, "run", "missing.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 2 and failed.stderr == "assay: missing.yaml cannot be read (no such file)\n"


def test_results_stay_in_one_place_though_a_network_changes_the_working_directory(tmp_path):
    (tmp_path / "moving.py").write_text(
        "import os\nfrom torch import nn\ndef make():\n    os.chdir('/')\n    return nn.Sequential(nn.Conv2d(3, 2, 3))"
    )
    write_plan(tmp_path, {**GOOD, "subjects": [{"source": "moving:make"}], "run": "kept/here"})
    for asked, place in ((), "kept/here"), (("--run", "there"), "there"):
        ran = assay("run", "plan.yaml", *asked, cwd=tmp_path)
        assert ran.stdout.endswith(f"{tmp_path / place / 'report.html'}\n"), ran.stderr


def test_check_run_report_compare_and_list(tmp_path):
    write_plan(tmp_path, {**GOOD, "measures": [GOOD["measures"][0] | {"layers": ["depth=1", -1]}]})
    checked = json.loads(assay("check", "plan.yaml", "--json", cwd=tmp_path).stdout)
    assert checked["cells"][0]["layers"] == 3, "the layers that are asked"
    write_plan(tmp_path)
    checked = assay("check", "plan.yaml", cwd=tmp_path)
    assert checked.returncode == 0 and "would run" in checked.stdout and not (tmp_path / "run").exists()

    ran = assay("run", "plan.yaml", "--json", "--quiet", cwd=tmp_path)
    assert ran.returncode == 0 and ran.stderr == "", "quiet when asked to be"
    result = json.loads(ran.stdout)
    assert result["done"] == 1 and result["failed"] == [] and Path(result["report"]).exists()

    checked = json.loads(assay("check", "plan.yaml", "--json", cwd=tmp_path).stdout)
    assert checked["cells"][0]["state"] == "done"

    (tmp_path / "run" / "report.html").unlink()
    reported = assay("report", "run", cwd=tmp_path)
    assert reported.stdout.strip().endswith("report.html") and (tmp_path / "run" / "report.html").exists()

    assert assay("run", "plan.yaml", "--run", "again", cwd=tmp_path).returncode == 0
    same = assay("compare", "run", "again", "--json", cwd=tmp_path)
    assert same.returncode == 0 and json.loads(same.stdout)[0]["largest_difference"] == 0

    other = {**GOOD, "run": "other", "subjects": [{**GOOD["subjects"][0], "seed": 1}]}
    write_plan(tmp_path, other)
    assert assay("run", "plan.yaml", cwd=tmp_path).returncode == 0
    assert assay("compare", "run", "other", cwd=tmp_path).returncode == 1

    listed = assay("list", cwd=tmp_path)
    assert "straightness" in listed.stdout and "assay.networks:RetinaV1" in listed.stdout
    layers = assay("list", "assay.networks:small_vgg", "--input", "3x16x16", cwd=tmp_path)
    assert layers.stdout.split()[0] == "features.0"


def test_a_failed_cell_is_shown_and_exits_with_3(tmp_path):
    plan = {**GOOD, "measures": [{"measure": "measure_kit:Broken"}, *GOOD["measures"]]}
    write_plan(tmp_path, plan)
    ran = assay("run", "plan.yaml", cwd=tmp_path)
    assert ran.returncode == 3 and "failed: vgg × broken: RuntimeError: <b>it broke</b> & how" in ran.stderr
    assert "0 cells kept, 1 measured, 1 failed" in ran.stdout and (tmp_path / "run" / "report.html").exists()


def test_an_interrupted_run_says_what_is_kept(tmp_path):
    plan = {**GOOD, "measures": [{"measure": "measure_kit:Waits"}]}
    write_plan(tmp_path, plan)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "kits")}
    command = [*ASSAY, "run", "plan.yaml"]
    heard = {"preexec_fn": hear_interrupts}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, **heard) as process:
        assert wait_until(lambda: (tmp_path / "mark").exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130 and "what is done is kept" in said and "Traceback" not in said


# -- bad input ------------------------------------------------------------------------------------------


def change(**entries: object) -> Callable[[Path], dict]:
    return lambda folder: {**GOOD, **entries}


def subject(**entries: object) -> Callable[[Path], dict]:
    return change(subjects=[{**GOOD["subjects"][0], **entries}])


def measure(**entries: object) -> Callable[[Path], dict]:
    return change(measures=[{**GOOD["measures"][0], **entries}])


def shown(**entries: object) -> Callable[[Path], dict]:
    return measure(sequences={"folder": "clips", "color": "rgb", **entries})


def with_file(name: str, data: bytes, plan: Callable[[Path], dict]) -> Callable[[Path], dict]:
    def make(folder: Path) -> dict:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        return plan(folder)

    return make


def hostile(folder: Path) -> dict:
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "pwned"),))

    (folder / "w.pt").write_bytes(pickle.dumps(Hostile()))
    return subject(weights="w.pt")(folder)


def truncated_checkpoint(folder: Path) -> dict:
    torch.save(small_vgg().state_dict(), folder / "w.pt")
    (folder / "w.pt").write_bytes((folder / "w.pt").read_bytes()[:3000])
    return subject(weights="w.pt")(folder)


def nan_pixels(folder: Path) -> dict:
    (folder / "nan").mkdir(exist_ok=True)
    for t in range(4):
        picture = np.random.default_rng(t).random((16, 16)).astype(np.float32)
        picture[3, 3] = np.nan if t == 2 else 0
        Image.fromarray(picture).save(folder / "nan" / f"{t}.tif")
    return shown(folder="nan")(folder)


BAD: dict[str, tuple[Callable[[Path], dict], str]] = {
    "unknown key": (change(subject=1), "plan.yaml:10: subject: unknown key; did you mean 'subjects'?"),
    "missing key": (lambda f: {"subjects": GOOD["subjects"]}, "lacks the key 'measures'"),
    "empty list": (change(subjects=[]), "plan.yaml:2: subjects: is an empty list"),
    "wrong type": (measure(batch_size="many"), "measures[0].batch_size: is 'many', expected a whole number"),
    "unknown measure": (measure(measure="strightness"), "unknown measure 'strightness'; did you mean 'straightness'"),
    "unknown layer": (measure(layers="features.99"), "unknown layer 'features.99'; did you mean"),
    "empty glob": (measure(layers="block*"), "no layer matches 'block*'"),
    "batch of nothing": (measure(batch_size=0), "batch_size=0 must be at least 1"),
    "missing folder": (shown(folder="nowhere"), "nowhere does not exist"),
    "folder without clips": (
        with_file("empty/notes.txt", b"", shown(folder="empty")),
        "holds no sub-folder of pictures",
    ),
    "unknown clip": (shown(names=["b"]), "no clip 'b' in"),
    "unknown control": (shown(control="pixelfade"), "'pixelfade' is not a condition; did you mean 'pixel_fade'"),
    "damaged picture": (with_file("clips/a/02.png", b"no picture", shown()), "02.png cannot be read as a picture"),
    "NaN pixels": (nan_pixels, "clip 'nan': frame 2 has NaN or infinite pixels"),
    "one-frame clip": (shown(stop=1), "clip 'a' has 1 frames: curvature needs at least 3"),
    "uneven frames": (
        with_file("clips/a/99.ppm", b"P6 2 2 255\n" + bytes(12), shown()),
        "clip 'a': frame 5 is (3, 2, 2), the first is (3, 16, 16)",
    ),
    "damaged video": (with_file("v/a.mp4", b"no video", shown(folder="v")), "a.mp4 cannot be decoded"),
    "frames the network cannot see": (shown(color="grey"), "'vgg' cannot take inputs of shape (1, 16, 16)"),
    "unknown source": (subject(source="vgg"), "give 'package.module:factory'"),
    "package that is not there": (subject(source="no.such:net"), "cannot import 'no.such'"),
    "factory that is not there": (subject(source="assay.networks:small_vg"), "did you mean 'small_vgg'"),
    "wrong arguments": (subject(args={"depth": 3}), "does not take args={'depth': 3}"),
    "arguments of the wrong type": (
        subject(source="assay.networks:RetinaV1", args={"size": "big"}),
        "plan.yaml:3: subjects[0]: source='assay.networks:RetinaV1' with args={'size': 'big'} failed (TypeError",
    ),
    "a measure that is none": (measure(measure="math:pi"), "'math:pi' is not a measure"),
    "a seed too large": (change(seed=10**30), "seed: is a whole number of 100 bits, expected one below 2⁶³"),
    "missing checkpoint": (subject(weights="none.safetensors"), "none.safetensors: no such file"),
    "corrupt safetensors": (
        with_file("w.safetensors", b"\x00" * 20, subject(weights="w.safetensors")),
        "w.safetensors is neither safetensors nor a torch checkpoint",
    ),
    "truncated checkpoint": (truncated_checkpoint, "w.pt cannot be read as a torch checkpoint"),
    "pickle with code in it": (hostile, "was not loaded, because loading it could run code"),
    "corrupt onnx": (with_file("n.onnx", b"\x08\x09no", subject(source="n.onnx")), "cannot be read as an ONNX network"),
    "device that is not there": (subject(device="cuda:7"), "device='cuda:7' cannot be used"),
    "unknown precision": (subject(dtype="float8"), "unknown dtype 'float8'"),
    "unwritable folder": (with_file("file", b"", change(run="file/run")), "cannot write"),
    "unknown file system": (change(run="nosuch://run"), "is not a place assay can write to"),
    "two subjects of a name": (change(subjects=GOOD["subjects"] * 2), "a second subject is called 'vgg'"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_clear_sentence_and_a_nonzero_exit(tmp_path, kind):
    make, sentence = BAD[kind]
    write_plan(tmp_path)
    write_plan(tmp_path, make(tmp_path))
    make(tmp_path)
    ran = assay("run", "plan.yaml", cwd=tmp_path)
    # Bad settings stop the run before it begins (2); what only shows in a cell is a failed cell (3).
    assert ran.returncode in (2, 3), ran.stderr
    assert sentence in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    assert len([line for line in lines if line.startswith("assay: ")]) == (1 if ran.returncode == 2 else 0)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "missing.yaml"], "missing.yaml cannot be read (no such file)"),
        (["report", "."], "is not a run: it has no manifest.json"),
        (["compare", "a", "b"], "a does not exist: give the folder of a run"),
        (["list", "assay.networks:small_vgg", "--input", "big"], "--input='big' is not the shape of one input"),
        (["list", "assay.networks:small_vgg", "--input", "1x4x4"], "cannot take inputs of shape (1, 4, 4)"),
    ],
)
def test_bad_words_on_the_command_line(tmp_path, words, sentence):
    ran = assay(*words, cwd=tmp_path)
    assert ran.returncode == 2 and sentence in ran.stderr and "Traceback" not in ran.stderr


def test_check_finds_what_run_would_find_without_measuring(tmp_path):
    write_plan(tmp_path, shown(stop=1)(tmp_path))
    checked = assay("check", "plan.yaml", cwd=tmp_path)
    assert checked.returncode == 2 and "clip 'a' has 1 frames" in checked.stderr
    write_plan(tmp_path, subject(name="vgg [/x] [bold]")(tmp_path))
    checked = assay("check", "plan.yaml", cwd=tmp_path)
    assert checked.returncode == 0 and "vgg [/x] [bold]" in checked.stdout
    write_plan(tmp_path, measure(layers="features.99")(tmp_path))
    checked = assay("check", "plan.yaml", cwd=tmp_path)
    assert checked.returncode == 2 and "vgg × straightness: unknown layer 'features.99'" in checked.stderr


def test_a_damaged_manifest_is_named(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text('{"status": ')
    ran = assay("report", "run", cwd=tmp_path)
    assert ran.returncode == 2 and "manifest.json is damaged" in ran.stderr
