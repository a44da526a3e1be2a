from __future__ import annotations

import pytest

from assay import ALL, AssayError, choose_layers

KNOWN = ["conv1", "layer1.0.relu", "layer1.0.relu#2", "layer1.0", "layer1", "fc"]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (ALL, KNOWN),
        ("fc", ["fc"]),
        ("layer1.*", ["layer1.0.relu", "layer1.0.relu#2", "layer1.0"]),
        ("*relu#2", ["layer1.0.relu#2"]),
        ("depth=1", ["conv1", "layer1", "fc"]),
        ("depth=3", ["layer1.0.relu", "layer1.0.relu#2"]),
        (0, ["conv1"]),
        (-1, ["fc"]),
        (0.0, ["conv1"]),
        (1.0, ["fc"]),
        (["fc", "conv1", "fc"], ["conv1", "fc"]),
    ],
)
def test_chooses_in_order_of_execution(wanted, chosen):
    assert choose_layers(KNOWN, wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("conv2", "unknown layer 'conv2'; did you mean 'conv1'"),
        ("block*", "no layer matches 'block\\*'"),
        ("depth=9", "no layer matches 'depth=9'"),
        (17, "position 17 is out of range: the network has 6 layers"),
        (1.5, "1.5 is not a fraction"),
        ([], "chooses nothing"),
        (True, "not a choice of layers"),
        (None, "not a choice of layers"),
        (object(), "not a choice of layers"),
    ],
)
def test_a_wrong_choice_says_what_is_wrong(wanted, message):
    with pytest.raises(AssayError, match=message):
        choose_layers(KNOWN, wanted)
