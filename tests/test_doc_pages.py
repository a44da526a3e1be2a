"""What a newcomer reads runs: every page, block after block, in a new folder.

A block of Python with prompts is a doctest, and all of a page share their names. A block whose first line is a comment
with a file name, such as ``# plan.yaml``, is that file. A block of ``bash`` is run, unless its first line says
``# not run here:`` and why, or all it does is to set up: ``make``, ``pip install``. What is not meant to run is a block
of ``text``.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import command_kit
from assay import Measure

ROOT = Path(__file__).parents[1]
FIRST = ["README.md", "docs/tutorial.md", "docs/examine.md", "docs/concepts.md"]
FOLDERS = ("docs", "docs/measures", "reproductions/*")
PAGES = [
    *map(ROOT.joinpath, FIRST),
    *sorted({page for folder in FOLDERS for page in ROOT.glob(f"{folder}/*.md")} - set(map(ROOT.joinpath, FIRST))),
    ROOT / "CONTRIBUTING.md",
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\b")
NOT_RUN = re.compile(r"# not run here: .+|(?:(?:make|pip install|pre-commit) [^\n]*\n)+$")
SHELL = re.compile(r"[|&;<>$`*]")  # what a shell does more than to pass words on
SHOWN_ONLY = ("text", "yaml")  # plans are loaded by test_docs.py
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.slow


def path_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A new folder in which the page is followed; modules and measures that it defines are forgotten afterwards."""
    monkeypatch.setattr(Measure, "_registry", Measure.known())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_every_block_of_a_page_runs_in_order(page, folder):
    names: dict[str, object] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        line = text.count("\n", 0, block.start(2))
        where = f"{path_of(page)}:{line + 1}"
        if file := FILE.match(content):
            (folder / file[1]).write_text(content, encoding="utf-8")
        elif language == "python":
            assert ">>>" in content, f"{where} is neither an example nor a file"
            run_examples(content, names, page, line)
        elif language == "bash":
            if not NOT_RUN.match(content):
                run_commands(content, where)
        else:
            assert language in SHOWN_ONLY, f"{where} is {language!r}: say python, bash, yaml or text"


def run_examples(content: str, names: dict[str, object], page: Path, line: int) -> None:
    """Run the examples of a block with the names that earlier blocks left, and fail with what doctest says."""
    said: list[str] = []
    name = f"{path_of(page)}:{line + 1}"  # of its own, by which doctest finds the lines of an exception
    examples = doctest.DocTestParser().get_doctest(content, names, name, str(page), line)
    examples.globs = names  # not the copy that the parser makes
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(examples, out=said.append, clear_globs=False).failed == 0, "".join(said)


def run_commands(content: str, where: str) -> None:
    """Run the commands of a block as a shell does in which assay is installed, until one fails.

    A plain command of assay is forked from a process that has loaded it already, since there are many.
    """
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    for command in content.replace("\\\n", " ").splitlines():
        words = shlex.split(command, comments=True)
        if words[:1] == ["assay"] and not any(map(SHELL.search, words)):
            done = command_kit.assay(*words[1:], **environment)
        else:
            shell = ["bash", "-euo", "pipefail", "-c", command]
            everything = {**os.environ, **environment}
            done = subprocess.run(shell, capture_output=True, text=True, env=everything, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{where}: {command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_the_pages_first_read_are_there_and_readme_fits_two_screens():
    assert all((ROOT / name).exists() for name in FIRST)
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110 and max(map(len, lines)) <= 210
