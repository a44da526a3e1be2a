"""Texts in plans: a file of lines and a tokenizer, shown to a language model of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from assay import AssayError, Straightness, evaluate, load_plan
from assay.stimuli import load_texts

LINES = ["the lounge was clean and quiet", "", "staff were friendly but the food was poor", "too short"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = sorted({word for line in LINES for word in line.split()})
    model = tokenizers.models.WordLevel({word: number for number, word in enumerate(["?", *words])}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "texts.txt").write_text("\n".join(LINES))
    config = transformers.GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=2, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "model")
    return tmp_path


def test_lines_become_texts_and_are_cut_to_tokens(folder):
    whole = load_texts(folder / "texts.txt", folder / "tokenizer.json")
    assert [(text.name, text.count()) for text in whole.texts] == [("line 1", 6), ("line 3", 8), ("line 4", 2)]
    cut = load_texts(folder / "texts.txt", folder / "tokenizer.json", tokens=4)
    assert [(text.name, text.count()) for text in cut.texts] == [("line 1", 4), ("line 3", 4)]
    assert np.array_equal(cut.texts[1].ids, whole.texts[1].ids[:4])
    assert len(load_texts(folder / "texts.txt", folder / "tokenizer.json", most=1).texts) == 1


def test_a_plan_follows_texts_through_a_language_model(folder):
    plan = folder / "plan.yaml"
    plan.write_text(
        f"run: run\nsubjects: [{{source: 'hf:{folder}/model', name: small}}]\n"
        "measures:\n  - measure: straightness\n"
        "    sequences: {texts: {path: texts.txt, tokenizer: tokenizer.json, tokens: 4}}\n"
    )
    plan = load_plan(plan)
    subjects = plan.load_subjects()
    table = evaluate(subjects, plan.measures, folder / "run").table("straightness")
    texts = load_texts(folder / "texts.txt", folder / "tokenizer.json", tokens=4)
    direct = Straightness(texts)(subjects[0])
    assert table["curvature_deg"].to_numpy() == pytest.approx(direct["curvature_deg"].to_numpy(), nan_ok=True)
    assert {"tokens", "transformer.h.1"} <= set(table["layer"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{path: texts.txt}", "lacks the key 'tokenizer'"),
        ("{path: none.txt, tokenizer: tokenizer.json}", "none.txt"),
        ("{path: texts.txt, tokenizer: tokenizer.json, tokens: 2}", "tokens=2 must be at least 3"),
        ("{path: texts.txt, tokenizer: tokenizer.json, tokens: 100}", "none of the 3 texts"),
        ("{path: texts.txt, tokenizer: broken.json}", "cannot be loaded"),
    ],
)
def test_what_is_wrong_with_texts_is_named(folder, settings, said):
    (folder / "broken.json").write_text(json.dumps({"model": 1}))
    plan = folder / "plan.yaml"
    plan.write_text(
        f"run: run\nsubjects: [{{source: 'hf:{folder}/model'}}]\n"
        f"measures:\n  - measure: straightness\n    sequences: {{texts: {settings}}}\n"
    )
    with pytest.raises(AssayError, match=said):
        load_plan(plan)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_byte_order_mark_is_no_token_and_only_ends_of_lines_part_texts(folder, end):
    plain = [text.ids.tolist() for text in load_texts(folder / "texts.txt", folder / "tokenizer.json").texts]
    lines = (folder / "texts.txt").read_text().splitlines()
    marked = b"\xef\xbb\xbf" + end.join(line.replace(" ", "\u2028\x0c\x85", 1).encode() for line in lines)
    (folder / "marked.txt").write_bytes(marked)
    found = load_texts(folder / "marked.txt", folder / "tokenizer.json")
    assert [text.ids.tolist() for text in found.texts] == plain


@pytest.mark.parametrize("wrong", [{"tokens": "5"}, {"tokens": 3.5}, {"most": 1.5}, {"most": "2"}, {"most": True}])
def test_numbers_of_another_kind_are_errors_in_words(folder, wrong):
    with pytest.raises(AssayError, match="a whole number"):
        load_texts(folder / "texts.txt", folder / "tokenizer.json", **wrong)


def test_a_tokenizer_in_the_home_folder_is_found(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert load_texts("~/texts.txt", "~/tokenizer.json").texts


def test_a_tokenizer_that_fails_at_a_text_is_one_sentence(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    lacking = tokenizers.Tokenizer(tokenizers.models.WordLevel({"known": 0}, unk_token="[UNK]"))
    lacking.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "texts.txt").write_text("other words\n")
    with pytest.raises(AssayError, match=r"tokenizer\.json' cannot make tokens of a text \(.*UNK"):
        load_texts(tmp_path / "texts.txt", str(tmp_path / "tokenizer.json"))
