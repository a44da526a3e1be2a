"""What a newcomer types first: init, check, run, list, --version, completion; and what goes wrong then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import assay as package
from assay import AssayError, load_plan, networks
from assay.cli.init import PLAN, first_plan
from assay.cli.lines import ProgressLines
from assay.cli.names import MEASURES, NETWORKS, complete_name
from assay.measures import Measure
from assay.plans.settings import read_yaml
from command_kit import assay

SCRIPT = str(Path(sys.executable).parent / "assay")


@pytest.mark.slow
def test_the_plan_of_init_runs_as_it_is_and_then_has_nothing_left_to_do(tmp_path):
    assert assay("init", cwd=tmp_path).stdout.startswith("wrote plan.yaml; next: assay check plan.yaml")
    assert assay("check", "plan.yaml", cwd=tmp_path).returncode == 0
    ran = assay("run", "plan.yaml", "--quiet", cwd=tmp_path)
    assert ran.returncode == 0 and ran.stderr == ""
    assert ran.stdout.splitlines()[0] == "0 cells kept, 6 measured, 0 failed"
    assert ran.stdout.splitlines()[-1] == str(tmp_path / "runs" / "plan" / "report.html")
    again = json.loads(assay("run", "plan.yaml", "--quiet", "--json", cwd=tmp_path).stdout)
    assert (again["kept"], again["measured"], again["failed"]) == (6, 0, [])


def test_what_the_first_plan_shows_in_comments_can_be_written(tmp_path):
    """Every commented line that holds a key is taken as it is, except for files that are not there."""
    text = first_plan(Path("plan.yaml"))
    live = [line.replace("# ", "", 1) if _is_setting(line) else line for line in text.splitlines()]
    (tmp_path / "plan.yaml").write_text("\n".join(live))
    with pytest.raises(AssayError) as error:
        load_plan(tmp_path / "plan.yaml")
    assert "unknown key" not in str(error.value) and "not valid YAML" not in str(error.value)
    assert "data.npz does not exist" in str(error.value) and "cannot import 'mymeasure'" in str(error.value)
    assert len(read_yaml(tmp_path / "plan.yaml")["subjects"].value) == 6


def _is_setting(line: str) -> bool:
    words = line.strip().removeprefix("# ").split()
    setting = words and (words[0].endswith(":") or (words[0] == "-" and words[1].endswith(":")))
    return bool(line.strip().startswith("# ") and setting and words[0] != "folder:")


def test_init_overwrites_nothing_unless_told(tmp_path):
    (tmp_path / "mine.yaml").write_text("mine")
    refused = assay("init", "mine.yaml", cwd=tmp_path)
    assert refused.returncode == 2 and "mine.yaml exists already" in refused.stderr
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    assert assay("init", "mine.yaml", "--force", cwd=tmp_path).returncode == 0
    assert "run: runs/mine" in (tmp_path / "mine.yaml").read_text()
    assert "is a folder" in assay("init", ".", cwd=tmp_path).stderr
    (tmp_path / "file").write_text("")
    assert "cannot be written" in assay("init", "file/plan.yaml", cwd=tmp_path).stderr


def test_list_shows_what_plans_can_name(tmp_path):
    listed = json.loads(assay("list", "--json", cwd=tmp_path).stdout)
    groups = {group: {entry["name"] for entry in entries} for group, entries in listed.items()}
    assert {"measures", "networks", "sequences", "data", "perturbations", "preprocess"} <= set(groups)
    assert {"margins", "norms"} <= groups["measures"] and "imagenet" in groups["preprocess"]
    assert all(entry["what"] for entries in listed.values() for entry in entries)


def test_list_of_a_measure_shows_its_settings(tmp_path):
    shown = assay("list", "margins", cwd=tmp_path).stdout
    assert "The distribution of margins" in shown and "percentiles" in shown and "Percentiles of the" in shown
    settings = json.loads(assay("list", "gratings", "--json", cwd=tmp_path).stdout)["settings"]
    assert settings[0] == {
        "name": "size", "type": "whole number", "default": None, "meaning": "Side of the picture in pixels."
    }  # fmt: skip
    wrong = assay("list", "marginz", cwd=tmp_path)
    assert wrong.returncode == 2 and "did you mean 'margins'" in wrong.stderr


def test_list_finds_networks_and_measures_in_the_working_folder(tmp_path):
    (tmp_path / "listed_here.py").write_text(
        "from torch import nn\nimport assay\nfrom dataclasses import dataclass\n\n"
        "def make():\n    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())\n\n"
        "@dataclass(frozen=True)\nclass Own(assay.Measure):\n"
        "    '''Mine.\n\n    Args:\n        size: How big.\n    '''\n\n"
        "    size: int = 3\n\n    def __call__(self, subject):\n        return None\n"
    )
    layers = assay("list", "listed_here:make", "--input", "3x8x8", "--preprocess", "grey", cwd=tmp_path)
    assert layers.stdout.split() == ["0", "1"], layers.stderr
    assert "How big." in assay("list", "listed_here:Own", cwd=tmp_path).stdout


def test_the_version_is_printed(tmp_path):
    assert assay("--version", cwd=tmp_path).stdout == f"assay {package.__version__}\n"


@pytest.mark.slow
def test_python_m_assay_is_the_command(tmp_path):
    said = subprocess.run([sys.executable, "-m", "assay", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert said.stdout == f"assay {package.__version__}\n" and said.returncode == 0


def test_the_names_that_the_shell_completes_are_those_there_are():
    ours = {name for name, kind in Measure.known().items() if kind.__module__.startswith("assay.")}
    assert set(MEASURES) == ours and set(NETWORKS) == set(networks.__all__)
    assert complete_name("stra") == ["straightness"]
    assert complete_name("assay.networks:small") == ["assay.networks:small_resnet", "assay.networks:small_vgg"]


@pytest.mark.slow
def test_the_shell_is_told_the_names(tmp_path):
    words = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": "assay list stra", "COMP_CWORD": "2"}
    said = subprocess.run([SCRIPT], capture_output=True, text=True, env={**os.environ, **words}, cwd=tmp_path)
    assert said.stdout.split() == ["straightness"]


def test_progress_is_a_line_now_and_then_for_each_kind_of_work():
    lines: list[str] = []
    now = [0.0]
    listener = ProgressLines(lines.append, every_s=5, clock=lambda: now[0])
    for second in range(21):
        now[0] = float(second)
        listener("cells", second // 10, 4)
        listener("frames", second * 100, None)
    assert [line for line in lines if line.startswith("cells")] == [
        "cells: 0 of 4", "cells: 1 of 4, about 30 s left", "cells: 1 of 4, about 45 s left",
        "cells: 2 of 4, about 20 s left",
    ]  # fmt: skip
    assert [line for line in lines if line.startswith("frames")] == [
        f"frames: {n}" for n in ("500", "1,000", "1,500", "2,000")
    ]


# -- what goes wrong first ------------------------------------------------------------------------------

GOOD = {"subjects": ["assay.networks:small_vgg"], "measures": [{"measure": "norms", "shape": [3, 16, 16]}]}
BAD = {
    "a file that is not there": (None, "plan.yaml cannot be read (no such file)"),
    "a folder": ("folder", "plan.yaml cannot be read (it is a folder)"),
    "no text": (b"\xff\xfe\x00\x93", "plan.yaml cannot be read (it is not a text file in UTF-8)"),
    "a zero byte": (b"a: \x00", "not valid YAML (unacceptable character #x0000"),
    "no YAML": (b"subjects: [1\n", "plan.yaml:2: not valid YAML"),
    "a date that is none": (b"run: 2020-13-45\n", "not valid YAML (month must be in 1..12"),
    "an endless alias": (b"a: &a [*a]\n", "has more than 50 lists and mappings inside each other"),
    "a list as a key": (b"? [a]\n: b\n", "plan.yaml:1: a list or mapping cannot be a key"),
    "nothing": (b"", "plan.yaml is empty: 'assay init' writes a plan to begin with"),
    "no mapping": (b"hello\n", "plan.yaml:1: the file is 'hello', not a mapping of keys to values"),
    "a key twice": (b"run: a\nrun: b\n", "plan.yaml:2: the key 'run' is there twice"),
    "a wrong type": ({**GOOD, "seed": "one"}, "seed: is 'one', expected a whole number"),
    "an unknown key": ({**GOOD, "subject": 1}, "subject: unknown key; did you mean 'subjects'?"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", ["check", "run"])
def test_a_plan_that_is_none_is_one_sentence(tmp_path, kind, command):
    content, sentence = BAD[kind]
    path = tmp_path / "plan.yaml"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(yaml.safe_dump(content))
    ran = assay(command, "plan.yaml", cwd=tmp_path)
    assert ran.returncode == 2 and sentence in ran.stderr, ran.stderr
    assert ran.stderr.startswith("assay: ") and ran.stderr.count("\n") == 1 and ran.stdout == ""


def test_a_plan_that_may_not_be_read_is_one_sentence(monkeypatch):
    def forbidden(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)  # root may read everything
    with pytest.raises(AssayError, match=r"plan\.yaml cannot be read \(no permission to read it\)"):
        read_yaml(Path("plan.yaml"))


def test_run_refuses_what_check_refuses_with_the_same_words_and_measures_nothing(tmp_path):
    plan = {**GOOD, "subjects": [*GOOD["subjects"], {"source": "assay.networks:small_vg", "name": "b"}], "seed": -1}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    checked, ran = (assay(command, "plan.yaml", cwd=tmp_path) for command in ("check", "run"))
    assert checked.returncode == ran.returncode == 2 and checked.stderr == ran.stderr
    assert checked.stderr.count("assay: plan.yaml:") == 2 and checked.stderr.endswith("\n2 problems\n")
    assert not (tmp_path / "runs").exists()
    problems = json.loads(assay("check", "plan.yaml", "--json", cwd=tmp_path).stdout)["problems"]
    assert [f"assay: {problem}" for problem in problems] == checked.stderr.splitlines()[:2]


@pytest.mark.slow
def test_a_measure_that_does_not_fit_stops_a_run_unless_it_is_to_go_on(tmp_path):
    sequences = {"camera": {"size": 16, "length": 4, "pictures": 1}}
    plan = {
        **GOOD,
        "measures": [*GOOD["measures"], {"measure": "straightness", "sequences": sequences, "layers": "no"}],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    ran = assay("run", "plan.yaml", cwd=tmp_path)
    assert ran.returncode == 2 and "small_vgg × straightness: unknown layer 'no'" in ran.stderr
    ran = assay("run", "plan.yaml", "--keep-going", cwd=tmp_path)
    assert ran.returncode == 3 and "0 cells kept, 1 measured, 1 failed" in ran.stdout


@pytest.mark.slow
def test_compare_says_in_words_what_differs(tmp_path):
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(GOOD))
    assert assay("run", "plan.yaml", "--quiet", cwd=tmp_path).returncode == 0
    said = assay("compare", "runs/plan", "runs/plan", cwd=tmp_path).stdout
    assert "largest difference" in said and "rows in one run only" in said and "0 of " in said


def test_the_first_plan_has_no_tabs_or_trailing_spaces():
    assert "\t" not in PLAN and not any(line != line.rstrip() for line in PLAN.splitlines())


def test_examine_compares_recipes_and_asks_for_one_word_a_network(tmp_path):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\ndef small():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))\n"
    )
    words = ["examine", "a=nets:small", "b=nets:small", "--input", "1x8x8", "--time", "30s", "--quiet"]
    refused = assay(*words, "--recipe", "plain", cwd=tmp_path)
    assert refused.returncode == 2 and "--recipe is given 1 times for 2 networks" in refused.stderr
    done = assay(*words, "--recipe", "plain", "--recipe", "-", "--run", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    subjects = json.loads((tmp_path / "out" / "manifest.json").read_text())["subjects"]
    assert [subjects[name]["recipe"] for name in "ab"] == ["plain", ""]
