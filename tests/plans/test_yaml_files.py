"""YAML that is no plan is refused in a sentence, whatever it holds."""

from __future__ import annotations

import time

import pytest

from assay import AssayError
from assay.plans import yaml_files
from assay.plans.yaml_files import read_values

BOMB = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))


def read(tmp_path, text):
    path = tmp_path / "plan.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_values(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\0\0\0\0", "not valid YAML"),
        ("a: \x07\n", "not valid YAML"),
        (b"a: \xe9\n", "not a text file in UTF-8"),
        ('a: "\\x1b[31m"\n', "holds the character U\\+001B"),
        ('a: "\\ud800"\n', "holds the character U\\+D800"),
        ('"\\0": 1\n', "the key .* holds the character U\\+0000"),
        ("a:\n  b: " + "9" * 400 + "\n", r"plan\.yaml:2: a\.b: is a whole number of 1329 bits"),
        ("a: " + "9" * 5000 + "\n", "not valid YAML"),
        ("a: 0x" + "f" * 9000 + "\n", "is a whole number of 36000 bits"),
        ("a: .nan\n", "nan is no number that a setting can have"),
        ("a: [1, -.inf]\n", r"a\[1\]: -inf is no number"),
        ("a: 2020-01-01\n", "is a date, which no plan has: put it in quotes"),
        ("a: 2020-13-45\n", "not valid YAML"),
        ("a: !!binary aGk=\n", "is bytes"),
        ("a: !!set {b}\n", "which no plan has"),
        ("a: !!omap [b: 1]\n", "which no plan has"),
        ("a: !!int x\n", "not valid YAML"),
        ("a: !!bool maybe\n", "not valid YAML"),
        ("a: &a [*a]\n", "more than 50 lists and mappings inside each other"),
        ("a: &a {b: *a}\n", "more than 50 lists and mappings inside each other"),
        ("a: " + "[" * 60 + "]" * 60, "more than 50 lists and mappings inside each other"),
        ("a: " + "[" * 999 + "]" * 999, "more than 50 lists and mappings inside each other"),
        (BOMB, "holds more than 100,000 values"),
        (MERGED, "more than 50 lists|holds more than 100,000 values"),
        ("{[a]: 1}\n", "a list or mapping cannot be a key"),
        ("{1: a, 1.0: b}\n", "is there twice"),
        ("{yes: a, true: b}\n", "the key True is there twice"),
        ("{2020-01-01: a}\n", "is not a word: put it in quotes"),
        ("{<<: 1}\n", "not valid YAML"),
        ("a: 1\n---\na: 2\n", "not valid YAML"),
        ("# nothing\n", "is empty"),
    ],
)
def test_what_no_plan_holds_is_refused_in_one_sentence(tmp_path, text, said):
    begin = time.process_time()
    with pytest.raises(AssayError, match=said) as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500
    assert time.process_time() - begin < 20


def test_aliases_merges_and_a_mark_of_the_byte_order_are_read(tmp_path):
    text = "base: &base {size: 3}\nmore: {<<: *base, length: 4}\nlist: [*base, *base]\n"
    value, lines = read(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert value["more"] == {"size": 3, "length": 4} and value["list"] == [{"size": 3}] * 2
    assert lines["more",] == 2 and lines["list", 1, "size"] == 1


def test_a_file_without_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_files, "MOST_BYTES", 1000)
    with pytest.raises(AssayError, match="longer than"):
        read(tmp_path, "a: 1 # " + "x" * 1000)
