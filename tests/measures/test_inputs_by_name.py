"""Measures of networks that take words or several inputs: one is varied, the others are held."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import assay
from assay import AssayError, Subject
from assay.stimuli import Labelled

LABELS = np.arange(12) % 2


class Gated(nn.Module):
    """Class scores of a picture, whose sign the gate decides."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.see = nn.Linear(4, 2, bias=False)

    def forward(self, picture: Tensor, gate: Tensor) -> Tensor:
        return self.see(picture) * gate


class Plain(Gated):
    def forward(self, picture: Tensor) -> Tensor:  # type: ignore[override]
        return self.see(picture)


def pair(n: int = 12) -> tuple[Labelled, Labelled]:
    x = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    gate = np.ones((n, 1), dtype=np.float32)
    return Labelled({"picture": x, "gate": gate}, LABELS), Labelled(x, LABELS)


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: assay.PerturbationResponse(data, ("intra", "noise"), layer=(0, 1), magnitudes=5),
        lambda data: assay.Margins(data, layers="see"),
        lambda data: assay.Sharpness(data, kinds=("sigma", "alpha"), draws=2, steps=4, ascent=2),
        lambda data: assay.ClusterSeparation(data, rounds=2),
        lambda data: assay.PacBayes(data, draws=2, steps=4),
    ],
)
def test_an_input_that_is_held_at_one_changes_no_number(ask):
    several, single = pair()
    table, expected = (
        ask(data)(Subject(network, initial_weights={n: 2 * t for n, t in network.state_dict().items()}))
        for data, network in ((several, Gated()), (single, Plain()))
    )
    assert table.drop(columns="layer").round(5).equals(expected.drop(columns="layer").round(5))


def test_the_input_that_is_held_is_not_mixed():
    data, _ = pair()
    gates: list[Tensor] = []
    network = Gated()

    def note(module: nn.Module, args: object, kwargs: dict[str, Tensor]) -> None:
        if type(kwargs["gate"]) is Tensor:  # not one that stands in for it while the network is captured
            gates.append(kwargs["gate"].clone())

    network.register_forward_pre_hook(note, with_kwargs=True)
    marked = Labelled({"picture": data.inputs["picture"], "gate": 1.0 + np.arange(12)[:, None]}, LABELS)
    assay.PerturbationResponse(marked, "intra", magnitudes=3, bootstrap=0)(Subject(network))
    assert gates and all(float(gate) in range(1, 13) for batch in gates for gate in batch)


def test_pictures_are_augmented_while_the_rest_is_held():
    class Sees(nn.Module):
        def forward(self, ids: Tensor, picture: Tensor) -> Tensor:
            assert ids.dtype == torch.int64 and ids.shape[1:] == (3,)
            return torch.stack([picture.flatten(1)[:, :4].sum(1), ids.sum(1) * 0.0], 1)

    draw = np.random.default_rng(0)
    inputs = {"ids": np.arange(36).reshape(12, 3), "picture": draw.integers(0, 256, (12, 1, 4, 4), dtype=np.uint8)}
    table = assay.AugmentationRobustness(Labelled(inputs, LABELS), ("erase",), bootstrap=0)(Subject(Sees()))
    assert set(table["status"]) == {"ok"} and (table["n"] == 12).all()


class Reads(nn.Module):
    """The mean of the embeddings of the words that are not masked, read out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(20, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        embedded = self.words(input_ids) * attention_mask[..., None]
        return {"hidden": embedded, "logits": self.head(embedded.sum(1) / attention_mask.sum(1, keepdim=True))}


def read() -> Labelled:
    ids = np.random.default_rng(0).integers(0, 20, (12, 5))
    return Labelled({"input_ids": ids, "attention_mask": (ids > 3) | (np.arange(5) == 0)}, LABELS)


@pytest.mark.parametrize("frozen", [False, True])
def test_margins_of_words_are_measured_at_layers_and_the_output(frozen):
    network = Reads().requires_grad_(not frozen)
    table = assay.Margins(read(), layers="words", bootstrap=0)(Subject(network)).set_index(["quantity", "layer"])
    assert table.status["normalised margin mean", "input"] == "the inputs are whole numbers, without a gradient"
    assert np.isfinite(table.value["normalised margin mean", "words"])
    data = read()
    words = data.shown()
    with torch.no_grad():
        margin = network(**words)["logits"] @ torch.tensor([1.0, -1.0]) * torch.tensor(1 - 2 * LABELS)
    assert table.value["mean margin", ""] == pytest.approx(margin.mean().item(), rel=1e-5)


def test_words_cannot_be_mixed_but_the_layer_after_them_can():
    data = read()
    with pytest.raises(AssayError, match="are whole numbers, which cannot be changed by degrees: choose a layer"):
        assay.PerturbationResponse(data, bootstrap=0).check(Subject(Reads()))
    table = assay.PerturbationResponse(data, layer=1, magnitudes=3, bootstrap=0)(Subject(Reads()))
    assert set(table["at"]) == {"words"} and set(table["status"]) == {"ok"}


def test_features_are_not_taken_for_class_scores():
    class Features(Reads):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
            hidden = self.words(input_ids)
            return {"last_hidden_state": hidden, "pooler_output": hidden[:, 0]}

    message = "gives dict of last_hidden_state, pooler_output, not one number for each class of 1 inputs"
    with pytest.raises(AssayError, match=message):
        assay.Margins(read())(Subject(Features()))


def test_a_layer_without_influence_is_not_called_robust():
    class Ignores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.recurrent(x)[1][0][-1])  # the state, not the output

    data = Labelled(np.random.default_rng(0).random((12, 5, 3)), LABELS)
    with pytest.raises(AssayError, match=r"the first tensor that layer 'recurrent' .* has no influence on the class"):
        assay.PerturbationResponse(data, layer=1, magnitudes=3, bootstrap=0)(Subject(Ignores()))


def test_norms_of_a_network_of_words_leave_out_the_path_norm():
    subject = Subject(Reads(), example=read().shown(slice(0, 1)))
    table = assay.Norms()(subject).set_index(["quantity", "layer"])
    expected = torch.linalg.matrix_norm(subject.module.head.weight.detach()).item()
    assert table.value["frobenius norm", "head"] == pytest.approx(expected, rel=1e-6)
    assert np.isnan(table.value["log path norm", ""]) and table.status["log path norm", ""] != "ok"


def test_measures_that_show_pictures_say_so():
    clips = assay.stimuli.Sequences.of(noise=np.random.default_rng(0).random((4, 1, 4, 4)))
    with pytest.raises(AssayError, match="straightness shows frames of sequences, and 'Reads' cannot take inputs of"):
        assay.Straightness(clips)(Subject(Reads()))
