from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import assay
from assay.broad.run.watch import Seen, watching


def test_files_are_seen_however_python_opens_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "abcd":
        Path(name).write_bytes(b"x" * 8)
    with watching() as seen:
        Path("a").read_bytes()
        os.close(os.open("b", os.O_RDONLY))
        np.fromfile("c", dtype=np.uint8)
        open(b"d").close()  # noqa: PTH123
    assert [Path(file).name for file in seen.files] == ["a", "b", "c", "d"]
    monkeypatch.chdir("/")  # names are kept as they were meant
    assert len(seen.under([str(tmp_path)])) == len(seen.outside) == 4


def test_nothing_is_noted_outside_of_the_block(tmp_path):
    (tmp_path / "a").write_text("")
    with watching() as seen:
        pass
    (tmp_path / "a").read_text()
    assert seen.files == []


def test_a_block_in_a_block_ends_alone(tmp_path):
    """Even when both have seen the same so far."""
    (tmp_path / "a").write_text("")
    with watching() as outer:
        with watching() as inner:
            (tmp_path / "a").read_text()
        (tmp_path / "a").read_text()
    assert (len(outer.files), len(inner.files)) == (2, 1)


def test_watching_ends_with_an_error(tmp_path):
    with pytest.raises(KeyError), watching() as seen:
        raise KeyError
    (tmp_path / "a").write_text("")
    assert seen.files == []


def test_roots_are_folders_not_beginnings_of_names(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "labels")
    seen = Seen(files=[str(tmp_path / n) for n in ("labels/a", "labels-not", "labels", "link/b")])
    names = [Path(file).name for file in seen.under([str(tmp_path / "labels")])]
    assert names == ["a", "labels", "b"]
    assert Seen(files=["/usrlocal/x", "/usr/x"]).outside == ["/usrlocal/x"]


def test_code_and_packages_are_not_outside(tmp_path, monkeypatch):
    (tmp_path / "lazily_imported.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # as most people have it
    with watching() as seen:
        import lazily_imported  # noqa: F401

        Path(np.__file__).with_name("version.py").read_text()
        Path(os.devnull).read_bytes()
    assert len(seen.files) > 2 and seen.outside == []
    assert Seen(files=[str(Path(assay.__file__).parent / "report" / "page" / "style.css")]).outside == []


def test_the_network_is_seen_and_sockets_of_this_machine_are_not(tmp_path):
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local, watching() as seen:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        with socket.socket(type=socket.SOCK_DGRAM) as packets:
            packets.sendto(b"x", ("127.0.0.1", port))
        with pytest.raises(OSError):
            local.connect(str(tmp_path / "nobody"))
    assert {"127.0.0.1", f"('127.0.0.1', {port})"} == set(seen.network)
    assert len(seen.network) == 3  # looked up, connected to, sent to


def test_programs_are_seen():
    with watching() as seen:
        subprocess.run([sys.executable, "-c", ""], check=True)
        os.system("true")
    assert seen.programs == [sys.executable, "true"]
