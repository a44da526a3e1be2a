from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import pgdl_kit as kit
from assay import AssayError
from assay.studies.corpus.corpus import accuracy
from assay.studies.corpus.pgdl import load_pgdl

PICTURES = np.random.default_rng(0).normal(size=(12, 4, 5, 3)).astype(np.float32)
LABELS = [0, 1] * 6


def toy(shared_data):
    return shared_data / "pgdl" / "toy_task" / "toy_data"


def described(width=4, train=0.75, test=0.5, **more):
    levels = {"width": width, "decay": 0.1, **more}
    return {
        "hparams": {name: {"possible_values": [value], "current_value": value} for name, value in levels.items()},
        "metrics": {"train_acc": train, "test_acc": test, "train_loss": 0.1},
    }


def weights(seed):
    rng = np.random.default_rng(seed)
    return [
        {"kernel": rng.normal(size=(3, 3, 3, 4)).astype("f4"), "bias": rng.normal(size=4).astype("f4")},
        {},
        {"kernel": rng.normal(size=(24, 2)).astype("f4"), "bias": rng.normal(size=2).astype("f4")},
    ]


@pytest.fixture
def task(tmp_path):
    """Three small convolutional networks, numbered 2, 10 and 9, in the format of the competition."""
    folder = tmp_path / "task"
    layers = [
        {"layer_name": "Conv2D", "filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"},
        {"layer_name": "Flatten"},
        {"layer_name": "Dense", "units": 2},
    ]
    for number in (2, 10, 9):
        kit.write_keras(folder / f"model_{number}", layers, [4, 5, 3], weights(number))
    kit.write_data(folder / "dataset_1" / "train", PICTURES, LABELS)
    kit.write_data(folder / "dataset_1" / "test", PICTURES[:3], LABELS[:3], shards=1)
    configs = {"2": described(), "10": described(width=[8, 8]), "9": described(width="wide", train=1.0)}
    (folder / "model_configs.json").write_text(json.dumps(configs))
    return folder


def change(task, edit):
    path = task / "model_configs.json"
    configs = json.loads(path.read_text())
    edit(configs)
    path.write_text(json.dumps(configs))


# -- the competition's own networks ---------------------------------------------------------------------------


def test_all_accuracies_of_the_toy_task_recompute_exactly(shared_data):
    corpus = load_pgdl(toy(shared_data))
    assert len(corpus) == 18
    for row, subject in zip(corpus.table.itertuples(), corpus.subjects(), strict=True):
        assert subject.name == row.network
        assert accuracy(subject, corpus.train) == row.train_accuracy
        assert accuracy(subject, corpus.test) == row.test_accuracy


def test_the_toy_task_has_a_grid_of_hyperparameters(shared_data):
    corpus = load_pgdl(toy(shared_data))
    assert corpus.networks == [f"model_{i}" for i in range(18)]
    assert corpus.hyperparameters == ["num_units", "num_layers", "activation_function"]
    assert len(corpus.table[corpus.hyperparameters].drop_duplicates()) == 3 * 3 * 2
    first = corpus.table.iloc[0].to_dict()
    assert first == {
        "network": "model_0", "num_units": 64, "num_layers": 1, "activation_function": "relu",
        "train_accuracy": 0.875, "test_accuracy": 0.9, "gap": 0.875 - 0.9,
    }  # fmt: skip
    assert (corpus.train.description, corpus.test.description) == (
        "200 inputs of 3 in 2 classes from toy_data: train",
        "100 inputs of 3 in 2 classes from toy_data: test",
    )


def test_a_network_is_read_by_its_name(shared_data):
    corpus = load_pgdl(toy(shared_data))
    assert corpus.subject("model_5").layers == [
        "dense_1", "tanh_1", "dense_2", "tanh_2", "dense_3", "tanh_3", "dense_4",
    ]  # fmt: skip
    with pytest.raises(AssayError, match="unknown network 'model_18'; did you mean"):
        corpus.subject("model_18")


# -- pictures, and the order of things ------------------------------------------------------------------------


def test_networks_are_in_the_order_of_their_numbers_and_lists_are_words(task):
    table = load_pgdl(task).table
    assert table["network"].tolist() == ["model_2", "model_9", "model_10"]
    assert table["width"].tolist() == [4, "wide", "8-8"]
    assert table["gap"].tolist() == [0.25, 0.5, 0.25]


def test_pictures_are_shown_channels_first_in_the_order_of_the_files(task):
    corpus = load_pgdl(task)
    assert corpus.train.shape == (3, 4, 5)
    np.testing.assert_array_equal(corpus.train.inputs, PICTURES.transpose(0, 3, 1, 2))
    assert corpus.train.labels.tolist() == LABELS
    assert corpus.train.inputs.dtype == np.float32 and len(corpus.test) == 3


def test_networks_of_pictures_give_the_numbers_of_their_definition(task):
    corpus = load_pgdl(task)
    for number in (2, 9, 10):
        conv, _, dense = weights(number)
        hidden = np.maximum(kit.conv(PICTURES, conv["kernel"], [2, 2], "same") + conv["bias"], 0)
        logits = hidden.reshape(12, -1) @ dense["kernel"] + dense["bias"]
        subject = corpus.subject(f"model_{number}")
        # float32 sums of 27 and 24 terms near 1, against float64
        np.testing.assert_allclose(subject(corpus.train.shown()), logits, rtol=1e-4, atol=1e-4)
        assert accuracy(subject, corpus.train) == np.mean(logits.argmax(1) == LABELS)


def test_the_test_data_are_needed_only_when_asked_for(task):
    shutil.rmtree(task / "dataset_1" / "test")
    corpus = load_pgdl(task)
    assert len(corpus.train) == 12
    with pytest.raises(AssayError, match=r"test holds no \.tfrecord files"):
        _ = corpus.test


# -- what is wrong is said ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("model_configs.json", "task is no PGDL task: it has no model_configs.json"),
        ("model_9", r"model_9.config\.json is missing"),
        ("model_10/weights.hdf5", r"model_10.weights\.hdf5 is missing"),
        ("dataset_1", r"train holds no \.tfrecord files"),
    ],
)
def test_what_is_missing_is_named(task, missing, message):
    path = task / missing
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises(AssayError, match=message):
        load_pgdl(task)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.clear(), "describes no network"),
        (lambda c: c.update(best=described()), "the network 'best' has no number"),
        (lambda c: c["9"].pop("metrics"), "model_9 needs .*'metrics'"),
        (lambda c: c["9"].update(hparams=[1]), "model_9 needs 'hparams'"),
        (lambda c: c["9"]["hparams"]["width"].pop("current_value"), "model_9 needs .*'current_value'"),
        (lambda c: c["9"]["metrics"].pop("test_acc"), "model_9 needs .*'test_acc'"),
        (lambda c: c["9"]["metrics"].update(test_acc=97.0), r"test_acc=97\.0 of model_9 is not between 0 and 1"),
        (lambda c: c["9"]["metrics"].update(train_acc=float("nan")), "train_acc=nan of model_9 is not between"),
        (lambda c: c["9"].update(described(depth=3)), "model_9 and model_2 do not both have depth"),
        (lambda c: c["9"].update(described(gap=3)), "is called 'gap', like a column of results"),
        (lambda c: c["9"].update(described(width=None)), "width=None of model_9 is neither a number nor a word"),
        (lambda c: c["9"].update(described(width=float("nan"))), "width=nan of model_9 is neither a number nor a word"),
    ],
)
def test_wrong_descriptions_are_named(task, edit, message):
    change(task, edit)
    with pytest.raises(AssayError, match=rf"model_configs\.json.*{message}"):
        load_pgdl(task)


def test_damaged_json_is_named(task):
    path = task / "model_configs.json"
    path.write_text(path.read_text()[:-5])
    with pytest.raises(AssayError, match=r"model_configs\.json cannot be read as JSON"):
        load_pgdl(task)


def test_damaged_records_are_named_with_their_place(task):
    path = task / "dataset_1" / "train" / "shard_1.tfrecord"
    data = bytearray(path.read_bytes())
    size = len(data) // 6
    data[2 * size + 40] ^= 4
    path.write_bytes(data)
    with pytest.raises(AssayError, match=rf"shard_1\.tfrecord is damaged: .* at byte {2 * size} "):
        _ = load_pgdl(task).train


ONE = np.array(1, dtype="i4")


def serialized(inputs=PICTURES[0], output=ONE):
    return kit.example({
        "inputs": ("bytes_list", [kit.tensor(inputs)]), "output": ("bytes_list", [kit.tensor(output)]),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (kit.example({"inputs": ("float_list", [1.0])}), "no feature 'inputs' that is one serialized tensor"),
        (kit.example({"inputs": ("bytes_list", [b"", b""])}), "no feature 'inputs' that is one serialized tensor"),
        (kit.example({"inputs": ("bytes_list", [kit.tensor(PICTURES[0])])}), "no feature 'output'"),
        (serialized(inputs=PICTURES[0, :2]), r"its inputs are \(2, 5, 3\), those before are \(4, 5, 3\)"),
        (serialized(output=np.array([0, 1], dtype="i4")), r"its output is int32 of shape \(2,\), not one whole number"),
        (serialized(output=np.array(0.5, dtype="f4")), "its output is float32"),
        (b"\xff", "a message ends within a number"),
    ],
)
def test_records_that_are_no_examples_are_named_with_their_place(task, payload, message):
    (task / "dataset_1" / "train" / "shard_2.tfrecord").write_bytes(kit.record(serialized()) + kit.record(payload))
    place = len(kit.record(serialized()))
    with pytest.raises(AssayError, match=rf"shard_2\.tfrecord, the record at byte {place}: .*{message}"):
        _ = load_pgdl(task).train


def test_data_without_examples_are_named(task):
    for path in (task / "dataset_1" / "train").iterdir():
        path.write_bytes(b"")
    with pytest.raises(AssayError, match="train holds no examples"):
        _ = load_pgdl(task).train


def test_wrong_weights_are_named_with_their_network(task):
    shutil.copy(task / "model_2" / "weights.hdf5", task / "model_9" / "weights.hdf5")
    config = json.loads((task / "model_9" / "config.json").read_text())
    config["model_config"][2]["units"] = 3
    (task / "model_9" / "config.json").write_text(json.dumps(config))
    place = re.escape(str(task / "model_9" / "weights.hdf5"))
    with pytest.raises(AssayError, match=place + r": the kernel of dense_1 is \(24, 2\), the network needs \(24, 3\)"):
        load_pgdl(task).subject("model_9")
