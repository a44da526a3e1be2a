from __future__ import annotations

import os
import sys
import types

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import zoo
from assay import AssayError
from assay.subject.source import SubjectSource, load_weights
from assay.subject.subject import Subject


def test_a_factory_makes_the_same_network_from_the_same_seed():
    a, b, c = (SubjectSource("assay.networks:small_vgg", seed=s).load() for s in (0, 0, 1))
    assert a.fingerprint == b.fingerprint != c.fingerprint and a.name == "small_vgg"


def test_arguments_preprocessing_precision_and_format_arrive():
    source = SubjectSource(
        "assay.networks:small_resnet",
        "mine",
        {"classes": 4},
        preprocess="imagenet",
        dtype="bfloat16",
        channels_last=True,
    )
    subject = source.load()
    assert subject.name == "mine" and subject.dtype == torch.bfloat16 and subject.channels_last
    assert subject(torch.rand(2, 3, 32, 32)).shape == (2, 4)


@pytest.mark.parametrize("kind", ["safetensors", "state_dict", "nested", "parallel"])
def test_checkpoints_of_every_kind_load(tmp_path, kind):
    trained = zoo.build("vgg", seed=5)
    state = trained.state_dict()
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pt")
    if kind == "safetensors":
        save_file(state, path)
    elif kind == "parallel":
        torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}, path)
    else:
        torch.save(state if kind == "state_dict" else {"model": state}, path)
    fresh = zoo.build("vgg")
    load_weights(fresh, path)
    assert Subject(fresh).fingerprint == Subject(trained).fingerprint


def test_a_checkpoint_with_code_in_it_is_refused_unread(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    torch.save({"state_dict": Hostile()}, tmp_path / "w.pt")
    with pytest.raises(AssayError, match="was not loaded, because loading it could run code"):
        load_weights(zoo.build("mlp"), tmp_path / "w.pt")
    assert not (tmp_path / "pwned").exists()


def test_real_cifar_weights_load_into_a_network_of_their_shape_only(shared_data):
    path = shared_data / "cifar10_networks" / "resnet20-12fca82f.th"
    with pytest.raises(AssayError, match=r"do not fit Sequential: they lack '1.bias', .* and 3 more, have"):
        load_weights(zoo.build("mlp"), path)


@pytest.mark.slow
def test_onnx_networks_are_subjects_and_can_be_cut(shared_data):
    path = shared_data / "cifar10_networks" / "resnet_4b_pgd.onnx"
    subject = SubjectSource(str(path)).load()
    assert subject.name == "resnet_4b_pgd"
    with np.load(shared_data / "cifar10_subset" / "cifar10_subset.npz") as data:
        images, labels = data["test_images"], data["test_labels"]
    x = torch.from_numpy(images.transpose(0, 3, 1, 2)).float() / 255
    logits = subject(x)
    accuracy = (logits.argmax(1).numpy() == labels).mean()
    assert 0.5 < accuracy < 0.9  # adversarially trained: well above chance, below a standard network
    split = subject.split(0.5)
    torch.testing.assert_close(split.rest(*split.prefix(x[:8])), logits[:8], rtol=0, atol=1e-5)
    assert split.captured


@pytest.mark.hf
def test_hugging_face_by_name(tmp_path):
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(tmp_path)
    subject = SubjectSource(f"hf:{tmp_path}").load()
    assert "encoder" in subject.record({"input_ids": torch.arange(6)[None]})
    with pytest.raises(AssayError, match=r"source='hf:/no/such/folder' cannot be loaded \(no such folder\)"):
        SubjectSource("hf:/no/such/folder").load()


def test_timm_by_name_when_installed(monkeypatch):
    """timm needs torchvision; where it is absent a module of its interface stands in for the loading code."""
    with pytest.raises(AssayError, match=r"needs timm: pip install 'assay\[timm\]'"):
        monkeypatch.setitem(sys.modules, "timm", None)
        SubjectSource("timm:resnet18").load()

    def create_model(name, **kwargs):
        if name != "resnet18":
            raise RuntimeError(f"Unknown model ({name})")
        return zoo.build("resnet")

    stand_in = types.SimpleNamespace(create_model=create_model, list_models=lambda: ["resnet18", "vgg11"])
    monkeypatch.setitem(sys.modules, "timm", stand_in)
    assert SubjectSource("timm:resnet18").load().name == "resnet18"
    with pytest.raises(AssayError, match="did you mean 'resnet18'"):
        SubjectSource("timm:resnet19").load()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SubjectSource("nowhere"), "give 'package.module:factory', 'file.onnx'"),
        (SubjectSource("no.such.package:net"), "cannot import 'no.such.package'"),
        (SubjectSource("assay.networks:small_vg"), "has no 'small_vg'; did you mean 'small_vgg'"),
        (SubjectSource("assay.networks:classifier"), "has no 'classifier'; known: "),  # classifiers is a package
        (SubjectSource("assay.networks:small_vgg", args={"depth": 3}), "does not take args={'depth': 3}"),
        (SubjectSource("os:getcwd"), "made a str, not a torch.nn.Module"),
        (SubjectSource("os:name"), "is a str, not a factory"),
        (SubjectSource("weights.safetensors"), "holds weights but no network"),
        (SubjectSource("missing.onnx"), "no such file"),
        (
            SubjectSource("there.onnx", args={"width": 2}),
            "args={'width': 2} is given to a file of ONNX, which takes none",
        ),
        (SubjectSource("assay.networks:small_vgg", dtype="float8"), "unknown dtype 'float8'"),
        (SubjectSource("assay.networks:small_vgg", device="tpu9"), "device='tpu9' cannot be used"),
        (SubjectSource("assay.networks:small_vgg", preprocess="gray"), "unknown transform 'gray'; did you mean 'grey'"),
    ],
)
def test_a_wrong_source_says_what_to_give(source, message):
    with pytest.raises(AssayError, match=message):
        source.load()
