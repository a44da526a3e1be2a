from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys

import pytest

from assay import AssayError
from assay.core.folder import Folder


@pytest.mark.parametrize("place", ["{tmp}/run", "file://{tmp}/run", "memory://run-{tmp}"])
def test_writes_and_reads_anywhere_fsspec_can(tmp_path, place):
    folder = Folder(place.format(tmp=tmp_path))
    assert not folder.exists("cells/a.parquet")
    folder.write("cells/a.parquet", b"one")
    folder.write("cells/a.parquet", b"two")
    assert folder.read("cells/a.parquet") == b"two"
    assert folder.names("cells", ".parquet") == ["cells/a.parquet"]
    folder.remove("cells/a.parquet")
    assert not folder.exists("cells/a.parquet") and folder.names("nowhere", "") == []


@pytest.mark.slow
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    """A full disk, as the kernel reports it: a limit on the size of files stands in for it."""
    code = f"""
import resource, sys
from assay import AssayError
from assay.core.folder import Folder
folder = Folder({str(tmp_path)!r})
folder.write("table", b"old")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    folder.write("table", bytes(5000))
except AssayError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "make room and run it again" in done.stderr
    assert (tmp_path / "table").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["table"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_sweeping_removes_what_dead_processes_left(tmp_path):
    host = socket.gethostname()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for pid in (dead.pid, os.getpid()):
        (tmp_path / f".tmp-{host}@{pid}@abc").write_bytes(b"half")
    Folder(str(tmp_path)).sweep("")
    assert [p.name for p in tmp_path.iterdir()] == [f".tmp-{host}@{os.getpid()}@abc"]


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AssayError, match=r"cannot write .*choose another folder"):
        Folder(str(tmp_path / "file" / "run")).write("a", b"")
    with pytest.raises(AssayError, match="is not a place assay can write to"):
        Folder("nosuchprotocol://x").write("a", b"")


@pytest.mark.parametrize("url", ["zip://x::file://missing.zip", "reference://x", "data:text/plain,x", "nosuch://x"])
def test_a_place_that_cannot_be_written_to_is_one_sentence(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssayError, match=r"not a place|cannot write") as refused:
        Folder(url).write("manifest.json", b"{}")
    assert url in str(refused.value) and "\n" not in str(refused.value)
