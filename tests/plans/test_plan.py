"""Plans name stimuli; each kind is made as written, and each mistake is one sentence with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from assay import AssayError, evaluate, load_plan
from assay.report import document, html
from assay.report.document import Pictures, Text
from assay.stimuli import Gratings, NaturalVideo, ParametricTest

SUBJECTS = [{"source": "assay.networks:small_vgg", "name": "vgg"}]


def plan_with(folder: Path, test: object, **settings: object) -> Path:
    np.savez(folder / "pictures.npz", images=np.random.default_rng(0).random((120, 3, 16, 16)).astype(np.float32))
    measure = {"measure": "invariance", "test": test, "units": "channels", "bootstrap": 20, **settings}
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({"run": "run", "subjects": SUBJECTS, "measures": [measure]}))
    return path


TESTS = {
    Gratings: {"gratings": {"size": 16, "channels": 3, "phases": 8}},
    NaturalVideo: {
        "video": {
            "whitened": False,
            "clips": {
                "translation": {
                    "moving": {"motion": "translation", "size": 16, "length": 50, "color": "rgb", "pictures": 2}
                },
                "rotation_3d": {"objects": {"size": 16, "length": 25, "count": 4, "color": "rgb"}},
                "zoom": {"camera": {"size": 16, "motions": ["zoom"], "length": 12, "pictures": 9}},
            },
        }
    },
    ParametricTest: {
        "parametric": {
            "images": {"path": "pictures.npz"},
            "families": [
                {"transformation": "rotation", "magnitudes": [-20, 0, 20]},
                {"transformation": "brightness", "magnitudes": [-0.1, 0.1]},
            ],
        }
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TESTS)
def test_an_invariance_test_is_made_run_and_reported_as_the_plan_says(kind, tmp_path):
    plan = load_plan(plan_with(tmp_path, TESTS[kind]))
    test = plan.measures["invariance"].test
    assert isinstance(test, kind)
    run = plan.execute()
    assert not run.failures
    table = run.table("invariance")
    assert set(table["transformation"]) == set(test.transformations) and (table["status"] == "ok").any()
    blocks = document(run).sections[1].blocks
    shown = [b for b in blocks if isinstance(b, Pictures)]
    assert len(shown) == len(test.transformations) and all(b.items for b in shown)
    assert test.description in next(b.text for b in blocks if isinstance(b, Text))
    assert html(document(run)).count("data:image/png;base64,") == sum(len(b.items) for b in shown)
    again = evaluate(plan.load_subjects(), plan.measures, tmp_path / "again")
    assert again.table("invariance").equals(table)


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        ({"gratingz": {"size": 8}}, "'gratingz' is none of them; did you mean 'gratings'"),
        ({}, "needs exactly one of 'gratings', 'video', 'parametric'"),
        ({"gratings": {}}, "lacks the key 'size'"),
        ({"gratings": {"size": 8, "frequencies": [40]}}, "cycles per 32 pixels"),
        ({"video": {"clips": {"a": {"coil20": "nowhere.npz"}}}}, "is not an .npz file"),
        ({"video": {"clips": {"a": {"moving": {"size": 8}}}}}, "lacks the key 'motion'"),
        ({"video": {"clips": {"a": {"moving": {"motion": "zoom"}}}}}, "expected one of 'translation', 'rotation_2d'"),
        ({"video": {"clips": {"a": {"moving": {"motion": {"a": 1}}}}}}, "expected one of 'translation', 'rotation_2d'"),
        ({"video": {"clips": []}}, "is a list, expected a mapping"),
        ({"parametric": {"images": {}, "families": []}}, "lacks the key 'path'"),
        (
            {
                "parametric": {
                    "images": {"path": "pictures.npz"},
                    "families": [{"transformation": "spin", "magnitudes": [1]}],
                }
            },
            "unknown transformation 'spin'",
        ),
    ],
)
def test_a_mistake_in_a_test_is_one_sentence_with_file_and_line(test, sentence, tmp_path):
    with pytest.raises(AssayError) as error:
        load_plan(plan_with(tmp_path, test))
    assert sentence in str(error.value) and "plan.yaml:" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.slow
def test_networks_of_nan_are_told_of_in_the_report(tmp_path):
    import torch
    from torch import nn

    from assay import Invariance, Subject

    class Nan(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.nan

    run = evaluate(Subject(nn.Sequential(nn.Flatten(), Nan()), "bad"), Invariance(Gratings(6)), tmp_path)
    assert "36 units returned NaN or infinity (1) and have no score" in html(document(run))


@pytest.mark.slow
def test_released_networks_get_a_profile_on_real_footage(shared_data, tmp_path):
    with np.load(shared_data / "coil20" / "coil20_64.npz") as objects:
        np.savez(tmp_path / "objects.npz", images=objects["images"][::5, ::2])
    plan = {
        "run": "run",
        "subjects": [
            {
                "source": "assay.networks:resnet20",
                "weights": str(shared_data / "cifar10_networks" / "resnet20-12fca82f.th"),
                "preprocess": "imagenet",
            }
        ],
        "measures": [
            {
                "measure": "invariance",
                "units": "channels",
                "layers": ["relu", "layer?.2", "linear"],
                "test": {
                    "video": {
                        "whitened": False,
                        "clips": {
                            "footage": {"folder": str(shared_data / "videos"), "size": 32, "color": "rgb", "stop": 20},
                            "turntable": {"coil20": "objects.npz"},
                        },
                    }
                },
            }
        ],
    }
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    run = load_plan(path).execute()
    table = run.table("invariance")
    assert not run.failures and (table["status"] == "ok").all() and table["score"].between(1, 100).all()
    assert (table["pictures"].map(len) > 100).all()


def test_the_92_images_take_a_size_and_a_colour(tmp_path, shared_data):
    """A network of small grey pictures is shown the images as it takes them."""
    folder = shared_data / "kriegeskorte92"
    plan = {
        "subjects": [{"source": "torch.nn:Flatten", "name": "pixels"}],
        "measures": [
            {
                "measure": "human-similarity",
                "bootstrap": 0,
                "stimuli": {"brain92": str(folder), "size": 28, "color": "grey"},
            }
        ],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    (measure,) = load_plan(tmp_path / "plan.yaml").measures.values()
    assert measure.stimuli.images.array.shape == (92, 1, 28, 28)
    plan["measures"][0]["stimuli"]["colour"] = "grey"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(AssayError, match=r"unknown key beside 'brain92'.*did you mean 'color'"):
        load_plan(tmp_path / "plan.yaml")
