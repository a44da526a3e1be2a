"""Checkpoints of Hugging Face transformers, made here from tiny configurations."""

from __future__ import annotations

import contextlib
import json
import os

import numpy as np
import pytest
import torch

from assay import AssayError
from assay.networks.imported.image_processor import ImageProcessor, image_processor
from assay.stimuli.transforms import Normalize
from assay.subject.source import SubjectSource

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
PROCESSOR = {
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5, 0.25, 0.2],
    "resample": 2,
    "rescale_factor": 1 / 255,
    "size": {"height": 16, "width": 16},
}


@pytest.fixture
def vit(tmp_path):
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    network = ViTForImageClassification(ViTConfig(**SIZES, image_size=16, patch_size=8, num_labels=10))
    network.save_pretrained(tmp_path)
    return tmp_path, network.eval()


@pytest.mark.hf
def test_the_architecture_that_the_checkpoint_names_is_loaded_with_all_its_weights(vit):
    folder, network = vit
    subject = SubjectSource(f"hf:{folder}").load()
    assert type(subject.module) is type(network)
    x = torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(subject(x).logits, network(x).logits)


@pytest.mark.hf
def test_weights_that_the_checkpoint_lacks_are_an_error_unless_they_are_asked_for(vit):
    folder, _ = vit
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["ViTModel"]}))
    with pytest.raises(AssayError, match=r"no weights for 'pooler.dense.bias' and 1 more of ViTModel, which would be"):
        SubjectSource(f"hf:{folder}").load()
    subject = SubjectSource(f"hf:{folder}", args={"allow_new_weights": True}).load()
    assert "pooler" in subject.record(torch.rand(1, 3, 16, 16))


@pytest.mark.hf
def test_weights_of_another_shape_are_named_with_both_shapes(vit):
    folder, _ = vit
    source = SubjectSource(f"hf:{folder}", args={"num_labels": 4})
    with pytest.raises(AssayError, match=r"'classifier.bias' \(of shape \(4,\), the checkpoint has \(10,\)\)"):
        source.load()
    new = [SubjectSource(source.source, args=source.args | {"allow_new_weights": True}).load() for _ in range(2)]
    assert new[0](torch.rand(1, 3, 16, 16)).logits.shape == (1, 4)
    assert new[0].fingerprint == new[1].fingerprint  # random, but by the seed of the source


@pytest.mark.hf
def test_a_checkpoint_that_names_no_architecture_is_loaded_as_it_was_saved(tmp_path):
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(vocab_size=50, **SIZES)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert type(SubjectSource(f"hf:{tmp_path}").load().module) is BertModel
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BertForDreaming"]}))
    with pytest.raises(AssayError, match=r"is a BertForDreaming, which transformers .* does not have"):
        SubjectSource(f"hf:{tmp_path}").load()


@pytest.mark.hf
def test_the_image_processor_becomes_the_preprocess_unless_one_is_given(vit):
    folder, network = vit
    assert SubjectSource(f"hf:{folder}").load().preprocess is None
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    subject = SubjectSource(f"hf:{folder}").load()
    x = torch.rand(2, 3, 16, 16)
    ready = Normalize((0.5, 0.4, 0.3), (0.5, 0.25, 0.2))(x)
    torch.testing.assert_close(subject(x).logits, network(ready).logits)
    assert subject(torch.rand(2, 3, 40, 30)).logits.shape == (2, 10)
    assert SubjectSource(f"hf:{folder}", preprocess="none").load().preprocess is None
    assert isinstance(SubjectSource(f"hf:{folder}", preprocess="imagenet").load().preprocess, Normalize)


@pytest.mark.hf
@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"height": 12, "width": 20}},
        {"size": {"shortest_edge": 14}, "do_center_crop": True, "crop_size": {"height": 12, "width": 12}},
        {"size": {"shortest_edge": 14}, "resample": 3},
        {"do_resize": False, "do_rescale": False},
    ],
)
def test_it_processes_as_the_library_does(settings):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    settings = {"do_center_crop": False, "do_convert_rgb": False} | PROCESSOR | settings
    picture = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    theirs = CLIPImageProcessorPil(**settings)(picture, return_tensors="np")["pixel_values"][0]
    ours = image_processor(settings, "here")(torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255)[0]
    # Theirs rounds to bytes after resizing: half a byte, divided by the standard deviation.
    tolerance = (1.0 if settings["do_rescale"] else 255) * 2 / 255 / 0.2
    np.testing.assert_allclose(ours.numpy(), theirs, atol=tolerance if settings["do_resize"] else 1e-3)


def test_token_ids_are_never_processed_and_pictures_in_a_mapping_are():
    process = ImageProcessor(normalize=Normalize((0.5,), (0.5,)))
    ids = torch.arange(6).reshape(1, 6)
    assert process(ids) is ids
    batch = process({"input_ids": ids, "pixel_values": torch.ones(1, 1, 2, 2)})
    assert batch["input_ids"] is ids and batch["pixel_values"].eq(1).all()


def test_a_processor_that_does_more_than_is_known_is_refused():
    with pytest.raises(AssayError, match="asks for do_pad, which is not known: give preprocess"):
        image_processor(PROCESSOR | {"do_pad": True}, "source='hf:detr'")
    with pytest.raises(AssayError, match=r"cannot be read \(KeyError\('size'\)\): give preprocess"):
        image_processor({"do_resize": True}, "source='hf:odd'")


@pytest.mark.hf
def test_a_folder_whose_weights_are_pickles_is_refused_and_nothing_in_it_is_run(vit, tmp_path):
    folder, network = vit
    ran = tmp_path / "ran"

    class Hidden:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    (folder / "model.safetensors").unlink()
    for content in ({"a": Hidden()}, network.state_dict()):
        torch.save(content, folder / "pytorch_model.bin")
        with pytest.raises(AssayError, match=r"pytorch_model\.bin is a pickle .* save it as safetensors"):
            SubjectSource(f"hf:{folder}").load()
    assert not ran.exists()


@pytest.mark.hf
def test_code_that_comes_with_a_checkpoint_is_never_run(vit):
    folder, _ = vit
    with pytest.raises(AssayError, match=r"trust_remote_code would run code .* which assay never does"):
        SubjectSource(f"hf:{folder}", args={"trust_remote_code": True}).load()
    for args in ({"use_safetensors": False}, {"weights_only": False}):
        with pytest.raises(AssayError, match="weights are read from safetensors alone"):
            SubjectSource(f"hf:{folder}", args=args).load()
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "own.Config", "AutoModel": "own.Model", "AutoModelForImageClassification": "own.Model"}
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    for change in ({"auto_map": own}, {"auto_map": own, "model_type": "own"}):
        (folder / "config.json").write_text(json.dumps(config | change))
        with contextlib.suppress(AssayError):
            SubjectSource(f"hf:{folder}").load()
        assert not (folder / "ran").exists()
