"""`assay list NAME` knows every name that `assay list` prints."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from assay.cli.main import app


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
