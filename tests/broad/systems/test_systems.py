from __future__ import annotations

import dataclasses
import pickle
import sys
from pathlib import Path

import pytest

from assay import AssayError
from assay.broad.systems.sources import own_sources, sources_along
from assay.broad.systems.team import FORBIDDEN, REGISTRY, Module, Parts, Team, require_one_each

SYSTEM = """
from teamwork_helper import SCALE
class System:
    def __init__(self, units, rate=0.1):
        self.units, self.rate = units, rate
"""


@pytest.fixture
def team_code(tmp_path, monkeypatch):
    (tmp_path / "teamwork.py").write_text(SYSTEM)
    (tmp_path / "teamwork_helper.py").write_text("SCALE = 1\n")
    (tmp_path / "teamwork_other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    sources_along.cache_clear()
    for name in ("teamwork", "teamwork_helper"):  # of the test before
        sys.modules.pop(name, None)
    return tmp_path


def parts() -> Parts:
    return Parts(Module("bag_of_words"), Module("random_projections"), Module("linear_svr"))


def test_parameters_reach_the_constructor_and_every_build_is_fresh(team_code):
    module = Module("teamwork:System", {"units": [3, 2]})
    assert module.build() is not module.build()
    assert (module.build().units, module.build().rate) == ((3, 2), 0.1)


@pytest.mark.requirement("J3")
def test_j3_unknown_missing_and_forbidden_parameters(team_code):
    with pytest.raises(AssayError, match="unknown parameter 'unit'; did you mean 'units'"):
        Module("teamwork:System", {"unit": 3}).build()
    with pytest.raises(AssayError, match="the parameter 'units' has no default: give it"):
        Module("teamwork:System").build()
    for key in (*FORBIDDEN, "Architecture"):
        with pytest.raises(AssayError, match=f"'{key}' would choose an architecture"):
            Module("teamwork:System", {key: "resnet"})


def test_unknown_modules_suggest_the_nearest():
    with pytest.raises(AssayError, match=r"no module is called 'linear_svn'; did you mean .*'linear_svm'"):
        Module("linear_svn").build()
    with pytest.raises(AssayError, match="nowhere"):
        Module("nowhere_at_all:System").build()


def test_all_registered_modules_can_be_found_and_hashed():
    for name in REGISTRY:
        given = {"command": ["true"]} if name.startswith("subprocess") else {}
        assert len(Module(name, given).source_hash) == 64, name


@pytest.mark.parametrize("file", ["teamwork.py", "teamwork_helper.py"])
@pytest.mark.requirement("A9")
def test_a9_a_frozen_system_is_refused_when_its_source_or_what_it_imports_changes(team_code, file):
    free = Module("teamwork:System", {"units": 1})
    before = free.source_hash
    frozen = dataclasses.replace(free, frozen=before)
    assert frozen.build().units == 1
    assert dataclasses.replace(frozen, parameters={"units": 2}).build().units == 2  # parameters may change
    with (team_code / file).open("a") as code:
        code.write("# a last improvement\n")
    with pytest.raises(AssayError, match=f"frozen as {before[:12]}…, but its source is .*register it anew"):
        frozen.build()
    assert free.build().units == 1


def test_other_processes_need_not_look_for_the_sources_of_a_large_package_again(team_code, monkeypatch):
    module = Module("teamwork:System", {"units": 3})
    before = module.source_hash
    sent = pickle.loads(pickle.dumps(module))
    monkeypatch.setattr("assay.broad.systems.team.own_sources", lambda _: ())
    assert sent.source_hash == before and sent == module
    (team_code / "teamwork_helper.py").write_text("SCALE = 2\n")
    assert sent.source_hash != before


def test_a9_other_files_may_change(team_code):
    before = Module("teamwork:System").source_hash
    (team_code / "teamwork_other.py").write_text("changed = True\n")
    assert Module("teamwork:System").source_hash == before


def test_a9_all_modules_of_a_package_that_are_imported_count(tmp_path, monkeypatch):
    package = tmp_path / "teampackage"
    (package / "deep").mkdir(parents=True)
    files = {
        "__init__.py": "", "entry.py": "from .deep import layers\nfrom . import settings\nimport numpy\n",
        "deep/__init__.py": "", "deep/layers.py": "import teampackage.maths\nfrom ..deep.more import *\n",
        "deep/more.py": "def System(): ...\n", "maths.py": "", "settings.py": "", "tests.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    sources_along.cache_clear()
    import teampackage.entry  # type: ignore[import-not-found]  # noqa: F401

    found = {path.relative_to(package).as_posix() for path in own_sources("teampackage.entry")}
    assert found == set(files) - {"tests.py"}


def test_what_has_no_source_cannot_be_frozen():
    with pytest.raises(AssayError, match="the source of builtins:dict cannot be found"):
        _ = Module("builtins:dict").source_hash


def test_described_holds_name_parameters_and_source(team_code):
    module = Module("teamwork:System", {"units": 1})
    assert module.described == {
        "module": "teamwork:System",
        "parameters": {"units": 1},
        "source": module.source_hash,
    }


@pytest.mark.requirement("A10", "F6")
def test_a10_a_second_system_of_a_team_is_refused():
    net_scale = Team("n", "Net-Scale", {"text": parts()})
    require_one_each((net_scale, Team("s", "Stanford", {"text": parts()})))
    with pytest.raises(AssayError, match="a second system of team 'n'"):
        require_one_each((net_scale, Team("n", "Another", {"text": parts()})))
    with pytest.raises(AssayError, match="a second system of team 'Net-Scale'"):
        require_one_each((net_scale, Team("o", "Net-Scale", {"video": parts()})))


@pytest.mark.parametrize("letter", ["", "N", "ns", "1"])
def test_letters_of_teams(letter):
    with pytest.raises(AssayError, match="one lower-case letter"):
        Team(letter, "Net-Scale", {})


def test_k1_a_trained_system_needs_a_declaration():
    with pytest.raises(AssayError, match="needs a declaration that it was learned by the protocol"):
        dataclasses.replace(parts(), trained_from=Path("learner.pickle"), declaration=" ")
