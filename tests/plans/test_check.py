"""All problems of a plan are found at once, before anything is measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.torch import save_file
from typer.testing import CliRunner

from assay import AssayError, load_plan
from assay.broad.plan import load_broad_plan
from assay.cli.main import app
from assay.core.folder import Folder
from assay.networks import vgg
from assay.plans.check import check_plan, require_writable
from assay.plans.problems import Problems
from assay.studies.corpus.plan import load_corpus_plan
from assay.studies.search.plan import load_search_plan
from assay.studies.study_plan import load_study_plan

CAMERA = {"camera": {"size": 16, "length": 4, "pictures": 1}}


def write(folder: Path, **plan: object) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    return path


def test_all_problems_are_named_each_with_its_line_and_key(tmp_path):
    path = write(
        tmp_path,
        runn="x",
        seed=-1,
        subjects=[
            {"source": "assay.networks:small_vgg", "name": "good"},
            {"source": "assay.networks:small_vg", "name": "misspelt"},
            {"source": "assay.networks:small_vgg", "nam": "x", "seed": "one"},
            {"source": "assay.networks:small_vgg", "name": "bad steps", "preprocess": ["grey", {"resiz": 3}]},
        ],
        measures=[
            {"measure": "straightness", "sequences": CAMERA, "layers": "features.99"},
            {"measure": "strightness"},
            {"measure": "norms", "convolution": "round", "shap": [3]},
            {"measure": "margins", "data": "nowhere.npz", "samples": "many"},
        ],
    )
    with pytest.raises(Problems) as error:
        check_plan(path)
    expected = [
        ":1: runn: unknown key; did you mean 'run'?",
        ":2: seed: is -1, expected a whole number from 0",
        ":9: subjects[2].nam: unknown key",
        ":10: subjects[2].seed: is 'one', expected a whole number",
        ":13: subjects[3].preprocess: unknown transform 'resiz'",
        ":6: subjects[1]: source='assay.networks:small_vg': 'assay.networks' has no 'small_vg'; did you mean",
        "measures[1].measure: unknown measure 'strightness'; did you mean 'straightness'",
        "measures[2].convolution: is 'round', expected one of 'reshaped', 'circular'",
        "measures[2].shap: unknown key; did you mean 'shape'?",
        "measures[3].data: ",
        "measures[3].samples: is 'many', expected a whole number",
        "measures[0]: good × straightness: unknown layer 'features.99'",
    ]
    said = error.value.sentences
    for sentence in expected:
        assert any(sentence in one and "plan.yaml:" in one for one in said), (sentence, said)
    assert len(said) == len(expected)
    assert not (tmp_path / "runs").exists()


def test_a_plan_without_problems_comes_with_its_networks(tmp_path):
    checked = check_plan(write(tmp_path, subjects=["assay.networks:small_vgg"], measures=["norms"]), pairs=False)
    assert [subject.name for subject in checked.subjects] == ["small_vgg"] and list(checked.plan.measures) == ["norms"]


def test_two_of_one_name_hide_no_other_problem(tmp_path):
    path = write(
        tmp_path,
        subjects=[
            {"source": "assay.networks:small_vgg", "name": "mine"},
            {"source": "assay.networks:small_vg", "name": "mine"},
            {"source": "assay.networks:small_vgg", "name": "mine", "weights": "gone.safetensors"},
        ],
        measures=[
            {"measure": "straightness", "sequences": CAMERA},
            {"measure": "straightness", "sequences": CAMERA, "layers": "features.99"},
        ],
    )
    with pytest.raises(Problems) as error:
        check_plan(path)
    expected = [
        "subjects[1]: a second subject is called 'mine': give it a name of its own",
        "gone.safetensors: no such file",
        "subjects[2]: a second subject is called 'mine': give it a name of its own",
        "measures[1]: a second measure is called 'straightness': give it a name of its own",
        "subjects[1]: source='assay.networks:small_vg': 'assay.networks' has no 'small_vg'",
        "measures[1]: mine × straightness-2: unknown layer 'features.99'",
    ]
    said = error.value.sentences
    assert len(said) == len(expected) and all(e in s for e, s in zip(expected, said, strict=True)), said


def test_everything_that_is_wrong_with_one_network_is_said_at_once(tmp_path):
    path = write(
        tmp_path,
        subjects=[
            {
                "source": "assay.networks:small_vg",
                "weights": "gone.safetensors",
                "preprocess": "greyy",
                "device": "coda",
                "dtype": "float31",
                "initial_weights": "before.safetensors",
                "history": "epochs.csv",
            }
        ],
        measures=[{"measure": "norms", "shape": [3, 16, 16]}],
    )
    with pytest.raises(Problems) as error:
        check_plan(path)
    expected = [
        "subjects[0].preprocess: unknown transform 'greyy'; did you mean 'grey'?",
        "gone.safetensors: no such file",
        "subjects[0].device: ",
        "subjects[0].dtype: unknown dtype 'float31'; did you mean 'float32'",
        "before.safetensors: no such file",
        "epochs.csv cannot be read (no such file)",
        "subjects[0]: source='assay.networks:small_vg': 'assay.networks' has no 'small_vg'",
    ]
    said = error.value.sentences
    assert len(said) == len(expected) and all(e in s for e, s in zip(expected, said, strict=True)), said


def test_what_a_network_raises_is_one_of_the_problems(tmp_path):
    (tmp_path / "raises_beside.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return {}['gone']\n"
    )
    path = write(tmp_path, subjects=["raises_beside:Net"], measures=[{"measure": "straightness", "sequences": CAMERA}])
    with pytest.raises(AssayError, match=r"Net × straightness: .*gone"):
        check_plan(path)


@pytest.mark.parametrize(
    ("source", "code"),
    [("sys:exit", ""), ("leaves_a:make", "import sys; sys.exit(7)"), ("leaves_b:make", "def make(): raise SystemExit")],
)
def test_code_that_ends_the_program_is_one_of_the_problems(tmp_path, source, code):
    if code:
        (tmp_path / f"{source.partition(':')[0]}.py").write_text(code)
    path = write(tmp_path, subjects=[{"source": source, "name": "v"}], measures=["norms"])
    with pytest.raises(AssayError, match=r"plan\.yaml:2: subjects\[0\]: .*it calls sys\.exit\("):
        check_plan(path)


def test_a_network_that_ends_the_program_is_one_of_the_problems(tmp_path):
    (tmp_path / "leaves_c.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        raise SystemExit(3)\n"
    )
    path = write(tmp_path, subjects=["leaves_c:Net"], measures=[{"measure": "straightness", "sequences": CAMERA}])
    with pytest.raises(AssayError, match=r"Net × straightness: .*it calls sys\.exit\(3\)"):
        check_plan(path)


def test_cells_that_would_fail_are_known_where_they_need_not_fit(tmp_path):
    (tmp_path / "raises_too.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return {}['gone']\n"
    )
    sequences = {"measure": "straightness", "sequences": CAMERA}
    path = write(tmp_path, subjects=["raises_too:Net", "assay.networks:small_vgg"], measures=[sequences])
    checked = check_plan(path, pairs=False)
    assert list(checked.failing) == [("Net", "straightness")] and "gone" in checked.failing["Net", "straightness"]
    done = checked.plan.execute(subjects=checked.subjects)
    assert [(f.subject, f.measure) for f in done.failures] == list(checked.failing), "as was said before"
    shown = CliRunner().invoke(app, ["check", str(path), "--keep-going", "--json"])
    states = {cell["subject"]: cell["state"] for cell in json.loads(shown.stdout)["cells"]}
    assert shown.exit_code == 3 and states == {"Net": "would fail", "small_vgg": "done"}


def test_a_recipe_with_the_name_of_another_network_is_a_problem(tmp_path):
    subjects = [{"source": "assay.networks:small_vgg", "name": name} for name in ("a", "std")]
    subjects[0]["recipe"] = "std"
    with pytest.raises(AssayError, match="recipe='std' of 'a' is also the name of a network"):
        check_plan(write(tmp_path, subjects=subjects, measures=["norms"]), pairs=False)


@pytest.mark.parametrize("run", ["file/run", "nosuch://run"])
def test_a_run_that_cannot_be_written_is_refused_unless_another_is_given(tmp_path, run):
    (tmp_path / "file").write_text("")
    path = write(tmp_path, run=run, subjects=["assay.networks:small_vgg"], measures=["norms"])
    with pytest.raises(AssayError, match=r"plan\.yaml: run: .*(is a file|is not a place)"):
        check_plan(path, pairs=False)
    assert check_plan(path, run=str(tmp_path / "other"), pairs=False).plan.run == str(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_folder_that_cannot_be_made_is_refused_and_one_that_can_is_left_as_it_was(tmp_path, monkeypatch):
    for place in (
        tmp_path / "a" / ("long" * 100),
        Path("/proc/x/y") if Path("/proc/self").exists() else tmp_path / "\0",
    ):
        with pytest.raises(AssayError, match=r"cannot write to .*: choose another folder"):
            require_writable(Folder(str(place)))
    require_writable(Folder(str(tmp_path / "a" / "b")))
    require_writable(Folder(str(tmp_path)))
    assert not list(tmp_path.iterdir())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(AssayError, match="Permission denied"):
        require_writable(Folder(str(tmp_path / "run")))
    assert not list(tmp_path.iterdir())


def test_data_for_all_measures_are_given_once_and_their_absence_is_one_problem(tmp_path):
    path = write(
        tmp_path,
        subjects=["assay.networks:small_vgg"],
        data="nowhere.npz",
        measures=["margins", {"measure": "clusters"}],
    )
    with pytest.raises(AssayError) as error:
        load_plan(path)
    assert str(error.value).endswith("nowhere.npz does not exist") and "plan.yaml:3: data: " in str(error.value)


def test_the_home_folder_is_expanded_in_the_run_and_in_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = write(tmp_path, run="~/x", subjects=["assay.networks:small_vgg"], measures=["norms"])
    assert load_plan(path).run == str(tmp_path / "home" / "x")
    path = write(tmp_path, subjects=["assay.networks:small_vgg"], measures=["margins"], data="~/nowhere.npz")
    with pytest.raises(AssayError, match=str(tmp_path / "home" / "nowhere.npz")):
        load_plan(path)


def test_data_that_cannot_be_loaded_are_the_only_problem_of_measures_of_pictures(tmp_path):
    path = write(
        tmp_path, subjects=["assay.networks:small_vgg"], data="nowhere.npz", measures=["augmentation", "sharpness"]
    )
    with pytest.raises(AssayError, match=r"nowhere\.npz does not exist") as error:
        load_plan(path)
    assert not isinstance(error.value, Problems)


def test_the_first_plan_of_the_reference_has_no_problem(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()
    (tmp_path / "plan.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    rng = np.random.default_rng(0)
    arrays = {"train_images": rng.random((20, 28, 28), dtype=np.float32), "train_labels": np.arange(20) % 10}
    np.savez(tmp_path / "digits.npz", **arrays)
    save_file(vgg(channels=1).state_dict(), tmp_path / "vgg.safetensors")
    checked = check_plan(tmp_path / "plan.yaml")
    assert list(checked.plan.measures) == ["norms", "margins", "invariance"] and not checked.failing


def test_data_of_a_plan_show_networks_an_input_for_measures_without_data(tmp_path):
    np.savez(tmp_path / "d.npz", images=np.zeros((4, 3, 32, 32), np.float32), labels=np.arange(4) % 2)
    path = write(tmp_path, data="d.npz", subjects=["assay.networks:small_vgg"], measures=["norms"])
    assert not check_plan(path).failing
    run = load_plan(path).execute()
    assert not run.failures
    shown = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert [cell["state"] for cell in json.loads(shown.stdout)["cells"]] == ["done"]


def test_a_plan_that_is_wrong_throughout_is_not_read_to_its_end(tmp_path):
    """The first problems are named: reading five hundred measures that are all wrong took minutes."""
    path = write(
        tmp_path,
        subjects=[{"source": "assay.networks:small_vgg"}],
        measures=[{"measure": "straightness", "stimuli": CAMERA, "boot": i} for i in range(500)],
    )
    with pytest.raises(Problems) as error:
        check_plan(path)
    assert len(error.value.sentences) == 21 and "there may be more" in error.value.sentences[-1]


def test_cells_that_are_done_are_not_said_to_run_again_though_their_data_are_large(tmp_path):
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", inputs=generator.random((100, 3, 16, 16)), labels=np.arange(100) % 10)
    path = write(
        tmp_path,
        subjects=[{"source": "assay.networks:small_vgg", "name": "net"}],
        measures=[{"measure": "margins", "data": "data.npz", "samples": 20, "bootstrap": 0}],
    )

    def states() -> list[str]:
        checked = CliRunner().invoke(app, ["check", str(path), "--json"])
        return [cell["state"] for cell in json.loads(checked.stdout)["cells"]]

    assert states() == ["would run"]
    check_plan(path).plan.execute()
    assert states() == ["done"]


@pytest.mark.parametrize(
    ("kind", "load", "command"),
    [
        ("broad", load_plan, "assay broad run"),
        ("search", load_plan, "assay search"),
        ("grid", load_plan, "assay corpus train"),
        ("table", load_plan, "assay corpus study"),
        ("ordinary", load_study_plan, "assay run"),
        ("ordinary", load_broad_plan, "assay run"),
        ("broad", load_corpus_plan, "assay broad run"),
        ("grid", load_search_plan, "assay corpus train"),
    ],
)
def test_a_plan_of_another_command_is_recognised_in_one_sentence(tmp_path, kind, load, command):
    plans: dict[str, dict[str, object]] = {
        "broad": {"secret": "x", "evaluators": {}, "teams": []},
        "search": {"network": "vgg", "space": {}, "objectives": []},
        "grid": {"network": "vgg", "grid": {}, "data": "d.npz", "measures": []},
        "table": {"corpus": {"table": "networks.csv"}, "measures": []},
        "ordinary": {"subjects": [], "measures": []},
    }
    path = write(tmp_path, **plans[kind])
    with pytest.raises(AssayError) as error:
        load(path)
    assert str(error.value) == f"{path} looks like a plan of '{command}': give it to that command"


def test_a_table_is_no_plan_and_a_long_word_is_shown_in_part(tmp_path):
    (tmp_path / "networks.csv").write_text("network,width\na,1\n")
    with pytest.raises(AssayError, match=r"networks\.csv is a table, not a plan: 'assay corpus score' reads tables"):
        load_plan(tmp_path / "networks.csv")
    (tmp_path / "plan.yaml").write_text("x" * 100)
    with pytest.raises(AssayError, match=r"the file is 'x{58}…, not a mapping of keys to values"):
        load_plan(tmp_path / "plan.yaml")


@pytest.mark.parametrize("written", ["", "  "])
def test_an_empty_folder_of_a_run_is_refused(tmp_path, written):
    path = write(tmp_path, run=written, subjects=["assay.networks:small_vgg"], measures=["norms"])
    with pytest.raises(AssayError, match="run: is empty: name a folder, or leave out the key"):
        load_plan(path)
    refused = CliRunner().invoke(app, ["check", str(path), "--run", written])
    assert "the folder of the run is empty: name one, or leave out --run" in str(refused.exception)


def test_a_plan_that_is_not_there_is_named_before_anything_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "assay.plans.check", None)  # importing it would be an ImportError
    for command in (["run"], ["check"], ["search"], ["corpus", "train"], ["corpus", "study"], ["broad", "run"]):
        refused = CliRunner().invoke(app, [*command, str(tmp_path / "none.yaml")])
        assert str(refused.exception) == f"{tmp_path / 'none.yaml'} cannot be read (no such file)"
    assert "a plan is a file: give its name, or /dev/stdin" in str(CliRunner().invoke(app, ["run", "-"]).exception)
