"""`assay examine`: pictures that differ, and what it says in the words of the command line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from assay import AssayError, Run
from assay.cli.broad import broad
from assay.cli.corpus import corpus
from assay.cli.main import app

NETWORK = "assay.networks:small_vgg"


@pytest.fixture
def mixed(tmp_path):
    """Two classes of pictures, grey and in colour, of many sizes."""
    rng = np.random.default_rng(0)
    for i in range(6):
        place = tmp_path / "mixed" / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        shape = (16 + i, 20, 3) if i % 3 else (16 + i, 20)
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(place / f"{i}.png")
    return tmp_path / "mixed"


def said(*words: str) -> str:
    """What the command says it cannot do."""
    error = CliRunner().invoke(app, ["examine", *words]).exception
    assert isinstance(error, AssayError), error
    return str(error)


def test_pictures_of_many_sizes_and_colours_are_made_alike(mixed, tmp_path):
    run = str(tmp_path / "run")
    words = ["--data", str(mixed), "--time", "1s", "--run", run, "--quiet"]
    assert said(NETWORK, *words).endswith(
        "give --size 32, which cuts the central square and resizes it, and --color rgb"
    )
    shown = CliRunner().invoke(app, ["examine", NETWORK, *words, "--size", "16x16", "--color", "rgb"])
    assert shown.exit_code == 0, shown.exception
    assert "norms" in Run(run).measures


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --data, or the shape of one input, as --input 3x32x32"),
        (["--input", "3x-1x8"], "--input='3x-1x8' is not the shape of one input"),
        (["--input", "3x16x16", "--time", "soon"], "--time='soon' is not a time above 0"),
        (["--input", "3x16x16", "--size", "16"], "--size and --color are about the pictures of --data"),
        (["--data", ".", "--size", "1x2x3"], "--size=1x2x3 is no side, as 32, and no height and width"),
        (["--data", ".", "--size", "big"], "--size=big is no side"),
        (["--data", ".", "--color", "blue"], "--color=blue is not grey or rgb"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command_line(words, message):
    assert message in said(NETWORK, *words)


def test_help_breaks_lines_only_where_the_terminal_ends():
    for commands in (app, broad, corpus):
        for registered in commands.registered_commands:
            assert registered.help and not re.search(r"[^\n]\n[^\n]", registered.help)
