"""Straightness of texts: token by token, without padding, in any language model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from assay import AssayError, Straightness, Subject, curvature, evaluate, surprisal, text_surprisal
from assay.measures.straightness.tokens import token_angles
from assay.stimuli import Sequences, Text, Texts, as_texts

IDS = [[3, 1, 4, 1, 5], [2, 7, 8], [6, 2, 8, 4, 9], [5, 3, 5, 8, 9, 7, 9]]


class Language(nn.Module):
    """A language model in small: states that depend on all tokens before, heads beside tokens, and scores."""

    def __init__(self, heads: int = 5) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(10, 6)
        self.positions = nn.Embedding(20, 6)
        self.state = nn.GRU(6, 8, batch_first=True)
        self.by_head = nn.Identity()
        self.pooled = nn.Identity()
        self.scores = nn.Linear(8, 10)
        self.heads = heads

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1])[None])
        x, _ = self.state(x)
        self.by_head(x[:, None].expand(-1, self.heads, -1, -1))
        self.pooled(x.mean(1))
        return self.scores(x)


@pytest.fixture(scope="module")
def model():
    return Subject(Language(), "small")


def test_the_curvature_of_each_text_is_that_of_its_states_recorded_alone(model):
    table = Straightness(as_texts(IDS))(model)
    for name in ("embedding", "state", "scores"):
        rows = table[table["layer"] == name].set_index("sequence")
        for i, ids in enumerate(IDS):
            alone = model.record(torch.tensor([ids]), name)[name][0]
            # Differences are taken in float32: 24 bits of a value of about 1, in an angle of radians.
            assert rows.curvature_deg[f"text {i}"] == pytest.approx(curvature(alone), abs=1e-3)
            assert rows.n[f"text {i}"] == len(ids) - 2


def test_tokens_turn_by_120_degrees_or_back():
    one_hot = np.eye(10)[IDS[0]]
    assert np.allclose(token_angles(np.array(IDS[0])), [120, 180, 120])
    assert curvature(one_hot) == pytest.approx(np.mean([120, 180, 120]), abs=1e-9)
    assert np.isnan(token_angles(np.array([1, 1, 2, 2]))).all()


def test_change_is_counted_from_the_tokens(model):
    measure = Straightness(as_texts(IDS), layers="state")
    table = measure(model)
    assert table["layer"].unique().tolist() == ["tokens", "state"]
    tokens, state = (table[table["layer"] == layer].curvature_deg.to_numpy() for layer in ("tokens", "state"))
    assert tokens.tolist() == [140.0, 120.0, 120.0, 144.0]
    np.testing.assert_allclose(table[table["layer"] == "state"].change_deg, state - tokens)
    quantities = [evidence.quantity for evidence in measure.evidence(measure.measured(model))]
    assert quantities[0] == "change of curvature from the tokens, at the last layer"


@pytest.mark.parametrize("texts", [IDS, [[3, 1, 4, 1, 5]], [[3, 1, 4, 1, 5]] * 2])
def test_a_layer_without_an_entry_per_token_is_named_so_whatever_the_lengths(model, texts):
    """There are as many heads as tokens in the texts; positions have no entry per text."""
    table = Straightness(as_texts(texts))(model)
    status = table.groupby("layer").status.first()
    assert (status[["by_head", "pooled", "positions"]] == "not per token").all()
    assert (status[["tokens", "embedding", "state", "scores"]] == "ok").all()
    assert table[table["status"] != "ok"].curvature_deg.isna().all()


def test_texts_are_the_same_in_any_order_and_batch(model):
    whole = Straightness(as_texts(IDS), layers="scores")(model)
    one_by_one = Straightness(as_texts(IDS[::-1], names=[f"text {i}" for i in (3, 2, 1, 0)]), "scores", 1)(model)
    one_by_one = one_by_one.sort_values(["order", "sequence"], ignore_index=True)
    np.testing.assert_allclose(whole.curvature_deg, one_by_one.curvature_deg, atol=1e-3)


def test_padding_is_left_out(model):
    padded = {
        "input_ids": np.array([ids + [0] * (7 - len(ids)) for ids in IDS]),
        "attention_mask": np.array([[1] * len(ids) + [0] * (7 - len(ids)) for ids in IDS]),
    }
    texts = as_texts(padded)
    assert [text.ids.tolist() for text in texts.texts] == IDS
    assert texts.fingerprint == as_texts(IDS).fingerprint
    assert texts.description == "4 texts of 3 to 7 tokens from memory"


def test_a_repeated_token_has_no_angle_and_is_counted(model):
    table = Straightness(as_texts([[1, 1, 2, 3], [4, 4, 4, 4]]), layers="state")(model)
    state = table[table["layer"] == "state"].set_index("sequence")
    assert state.n.tolist() == [1, 0] and state.undefined.tolist() == [1, 2]
    assert state.status.tolist() == ["ok", "undefined"]


def test_a_text_of_two_tokens_is_named(model):
    measure = Straightness(as_texts([[1, 2, 3], [1, 2]], names=["long", "short"]))
    for ask in (measure, measure.check):
        with pytest.raises(AssayError, match="text 'short' has 2 tokens: curvature needs at least 3"):
            ask(model)
    Straightness(as_texts(IDS)).check(model)


def test_a_network_of_pictures_is_told_what_it_was_shown():
    with pytest.raises(AssayError, match="straightness shows texts, and 'Conv2d' cannot take"):
        Straightness(as_texts(IDS))(nn.Conv2d(3, 4, 3))


def test_words_are_made_tokens_by_any_tokenizer():
    class Encoded:
        ids = (1, 2, 3)

    letters = as_texts(["abc", "abcd"], lambda words: [ord(c) for c in words])
    assert letters.texts[0].words == "abc" and letters.texts[1].count() == 4
    assert as_texts(["x"], lambda words: {"input_ids": [1, 2], "attention_mask": [1, 1]}).texts[0].count() == 2
    assert as_texts(["x"], lambda words: Encoded()).texts[0].count() == 3
    assert as_texts(letters) is letters


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ("abc", "texts='abc' must be a list of strings"),
        (["abc"], "texts are strings: give a tokenizer"),
        ([[0.5, 1.0]], r"text 'text 0' is float64 of shape \(2,\): give the ids of its tokens"),
        ([[1, -1]], "at least 0"),
        ([[]], "give the ids of its tokens"),
        ([], "texts has none: give at least one text"),
        ({"tokens": [[1]]}, "texts has tokens: give token ids under the name input_ids"),
        ({"input_ids": [[1, 2]], "attention_mask": [[1]]}, "one number for each of the input_ids"),
    ],
)
def test_texts_that_are_none_are_named(texts, match):
    with pytest.raises(AssayError, match=match):
        as_texts(texts)


def test_texts_and_clips_do_not_mix_and_have_no_fades():
    clips = Sequences.of(noise=np.zeros((3, 1, 4, 4), np.float32))
    texts = as_texts(IDS)
    with pytest.raises(AssayError, match="no text: show clips and texts in measures of their own"):
        texts + clips
    for fade in (texts.pixel_fade, texts.contrast_fade):
        with pytest.raises(AssayError, match="texts have no"):
            fade()
    both = texts + as_texts([[1, 2, 3]], condition="shuffled")
    assert isinstance(both, Texts) and isinstance(both.clips[-1], Text) and len(both) == 5
    assert "texts" in repr(both) and "conditions" in both._repr_html_()
    with pytest.raises(AssayError, match="names has 1 names for 4 texts"):
        as_texts(IDS, names=["one"])
    with pytest.raises(AssayError, match="tokenizer cannot take 'a'"):
        as_texts(["a"], lambda words: 1 / 0)


def test_surprisal_is_the_cross_entropy_in_bits(model):
    scores = torch.randn(2, 5, 10)
    ids = torch.tensor([IDS[0], IDS[2]])
    nats = nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    # Theirs is in float32.
    torch.testing.assert_close(surprisal(scores, ids).flatten(), nats.double() / np.log(2), rtol=1e-5, atol=1e-5)
    table = text_surprisal(model, IDS)
    assert table.sequence.tolist() == [f"text {i}" for i in range(4)] and table.n.tolist() == [4, 2, 4, 6]
    alone = surprisal(model(torch.tensor([IDS[1]]))[0], np.array(IDS[1])).mean().item()
    assert table.surprisal_bits[1] == pytest.approx(alone, abs=1e-5)
    with pytest.raises(AssayError, match="1 token: surprisal needs at least 2"):
        text_surprisal(model, [[1]])
    with pytest.raises(AssayError, match="scores of the vocabulary for each token"):
        surprisal(torch.zeros(3, 8), torch.zeros(4))


def test_a_report_of_texts_speaks_of_tokens(model, tmp_path):
    measure = Straightness(as_texts(IDS), layers=["embedding", "state"])
    run = evaluate([Subject(Language(), "one"), Subject(Language(3), "other")], [measure], tmp_path / "run")
    page = Path(run.report().path).read_text()
    assert "4 texts of 3 to 7 tokens" in page and "from tokens" in page
    assert "from pixels" not in page and "images of one size" not in page
    assert measure.plot(measure(model)).figure.axes


@pytest.mark.hf
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_language_models_of_hugging_face_have_their_curvature_by_layer(kind):
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    if kind == "causal":
        network = GPT2LMHeadModel(GPT2Config(vocab_size=10, n_positions=16, n_embd=8, n_layer=2, n_head=2))
        layers = "transformer.h.?"
    else:
        sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
        network = BertForMaskedLM(BertConfig(vocab_size=10, max_position_embeddings=16, **sizes))
        layers = "bert.encoder.layer.?"
    network.eval()
    table = Straightness(as_texts(IDS), layers)(network)
    with torch.no_grad():
        states = [network(torch.tensor([ids]), output_hidden_states=True).hidden_states for ids in IDS]
    first = table[table["order"] == 1].curvature_deg
    assert table["order"].max() == 2 and (table["status"] == "ok").all()
    expected = [curvature(hidden[1][0]) for hidden in states]  # hidden[0] are the embeddings
    np.testing.assert_allclose(first, expected, atol=1e-2)  # differences of float32 states
    whole = Straightness(as_texts(IDS))(network)
    assert {"tokens", "output"} & set(whole["layer"]) and (whole["status"] != "not finite").all()


def test_scores_that_are_not_those_of_the_tokens_are_errors_in_words():
    with pytest.raises(AssayError, match="ids has the token 6, and logits are scores of 4 tokens"):
        text_surprisal(torch.nn.Embedding(9, 4), [[5, 6, 3]])
    network = torch.nn.Embedding(9, 9)
    torch.nn.init.constant_(network.weight, float("nan"))
    with pytest.raises(AssayError, match="text 'text 0' that are not finite"):
        text_surprisal(network, [[5, 6, 3]])
