from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from assay import AssayError
from assay.core.errors import nearest
from assay.plans.plan import load_measure
from assay.plans.settings import build, read_yaml


@dataclass(frozen=True)
class Everything:
    count: int
    rate: float = 0.5
    kind: Literal["a", "b"] = "a"
    where: Path | None = None
    sides: tuple[int, ...] = ()
    size: int | tuple[int, int] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    active: bool = False


def load(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return build(Everything, read_yaml(path))


def test_values_become_what_the_annotations_say(tmp_path):
    text = "count: 3\nrate: 1\nkind: b\nwhere: x/y\nsides: [1, 2]\nsize: [4, 5]\nmore: {k: 1}\nactive: true\n"
    made = load(tmp_path, text)
    assert made == Everything(3, 1.0, "b", tmp_path / "x/y", (1, 2), (4, 5), {"k": 1}, True)
    assert type(made.rate) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate: 1\n", r"s\.yaml:1: the file lacks the key 'count'"),
        ("count: 3\nrat: 1\n", r"s\.yaml:2: rat: unknown key; did you mean 'rate'\?"),
        ("count: three\n", r"s\.yaml:1: count: is 'three', expected a whole number"),
        ("count: true\n", r"count: is True, expected a whole number"),
        ("count: 1\n\nrate: fast\n", r"s\.yaml:3: rate: is 'fast', expected a number"),
        ("count: 1\nkind: c\n", r"kind: is 'c', expected one of 'a', 'b'"),
        ("count: 1\nsides: [1, x]\n", r"s\.yaml:2: sides\[1\]: is 'x'"),
        ("count: 1\nsize: [1, 2, 3]\n", r"size: has 3 entries, expected 2"),
        ("count: 1\ncount: 2\n", r"s\.yaml:2: the key 'count' is there twice"),
        ("- 1\n", r"the file is a list, not a mapping"),
        ("count: [1\n", r"s\.yaml:\d: not valid YAML"),
        ("count: !!python/object/apply:os.system ['true']\n", r"not valid YAML \(could not determine a constructor"),
        ("", "is empty"),
        ("1: 2\n", "the key 1 is not a word"),
    ],
)
def test_every_complaint_names_file_line_key_value_and_remedy(tmp_path, text, message):
    with pytest.raises(AssayError, match=message):
        load(tmp_path, text)


def test_what_is_wrong_inside_a_list_is_named_and_only_near_names_are_suggested(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("measure: norms\nshape: [[3], 16, 16]\nfoo: 1\n")
    with pytest.raises(AssayError) as raised:
        load_measure(read_yaml(path))
    said = str(raised.value)
    assert "shape[0]: is a list, expected a whole number" in said
    assert "foo: unknown key; known: 'convolution', 'shape'" in said
    assert nearest("foo", ["color", "size"]) == "; known: 'color', 'size'"
