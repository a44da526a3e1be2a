"""`assay list NAME` knows every name that `assay list` prints."""

from __future__ import annotations

import json

from rich.progress import Progress
from typer.testing import CliRunner

from assay import AssayError
from assay.cli import terminal
from assay.cli.main import app
from assay.core.progress import report


def listed(*words: str) -> str:
    shown = CliRunner().invoke(app, ["list", *words])
    assert shown.exit_code == 0, (words, shown.exception)
    return shown.stdout


def test_every_name_that_is_listed_is_accepted():
    groups = json.loads(listed("--json"))
    for group, entries in groups.items():
        for entry in entries if group != "networks" else []:
            assert listed(entry["name"]).strip()


def test_settings_are_told_in_the_words_of_a_plan():
    meanings = [setting["meaning"] for setting in json.loads(listed("margins", "--json"))["settings"]]
    assert any("null for all" in meaning for meaning in meanings) and not any("None" in m for m in meanings)


def test_a_network_that_takes_other_inputs_is_told_by_which_option_to_give_their_shape():
    error = CliRunner().invoke(app, ["list", "assay.networks:small_vgg", "--input", "1x16x16"]).exception
    assert isinstance(error, AssayError) and "cannot take inputs of shape (1, 16, 16)" in str(error)
    assert str(error).endswith("; --input gives the shape of one input that it takes, as --input 1x28x28")


def test_a_name_between_colons_is_a_name_and_no_emoji(capsys):
    for console in (terminal.out, terminal.err):
        console.print("the network ':x:' is odd", markup=False)
    terminal.print_table(":x:", [{":x:": ":x:", "[bold]": "[red]"}])
    shown = capsys.readouterr()
    assert shown.err == "the network ':x:' is odd\n" and shown.out.startswith(shown.err)
    assert shown.out.count(":x:") == 4 and "[bold]" in shown.out and "[red]" in shown.out


def test_a_progress_bar_shows_names_as_they_are(monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(terminal, "on_terminal", lambda stream: True)
    stop = Progress.stop

    def stopped(bars: Progress) -> None:
        shown.extend(str(bars.columns[0](task)) for task in bars.tasks)
        stop(bars)

    monkeypatch.setattr(Progress, "stop", stopped)
    with terminal.progress():
        report(":x: [red]margins", 1, 2)
    assert shown == [":x: [red]margins"]
