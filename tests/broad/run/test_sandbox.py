"""Workers: what they see, that they end as a whole, and that the keeper believes nothing they say without looking."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from assay.broad.data.violation import Violation
from assay.broad.run import sandbox
from assay.broad.run.messages import features_as_arrays, features_of_arrays, receive, send
from assay.broad.run.sandbox import Worker, kind_of_walls
from assay.broad.run.warden import PLAIN, PRIVATE, Walls
from processes import wait_until

KINDS = [PLAIN, pytest.param(PRIVATE, marks=pytest.mark.skipif(kind_of_walls() != PRIVATE, reason="no namespaces"))]
SERVES = """
import json, os, subprocess, sys, time
from pathlib import Path

def looks(connection):
    place = connection.recv_bytes().decode()
    found = {"hidden": sorted(p.name for p in Path(place, "hidden").iterdir()), "secret": os.environ.get("SECRET"),
             "shown": sorted(p.name for p in Path(place, "hidden", "shown").glob("*")),
             "processes": sum(p.name.isdigit() for p in Path("/proc").iterdir())}
    try:
        Path(place, "written").write_text("")
    except OSError as error:
        found["write"] = error.errno
    connection.send_bytes(json.dumps(found).encode())

def daemon(connection):
    marker = connection.recv_bytes().decode()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", marker])
        os._exit(0)
    time.sleep(0.3)
    connection.send_bytes(b"started")
    time.sleep(600)

def fills(connection):
    written = 0
    try:
        with open(os.environ["TMPDIR"] + "/much", "wb") as file:
            for _ in range(64):
                written += file.write(bytes(2**20))
                file.flush()
    except OSError as error:
        connection.send_bytes(json.dumps([written, error.errno]).encode())

def links(connection):
    os.symlink(connection.recv_bytes().decode(), os.environ["TMPDIR"] + "/link")
    connection.send_bytes(b"linked")

def dies(connection):
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def code(tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "served_in_tests.py").write_text(SERVES)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))


def living(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_worker_sees(tmp_path, kind, monkeypatch):
    monkeypatch.setenv("SECRET", "seed")
    (tmp_path / "hidden" / "shown").mkdir(parents=True)
    (tmp_path / "hidden" / "labels").write_text("5")
    (tmp_path / "hidden" / "shown" / "clip").write_text("")
    shown = tmp_path / "hidden" / "shown"  # and a file in it, as a command beside the plan is
    walls = Walls("served_in_tests:looks", (str(tmp_path / "hidden"),), (str(shown), str(shown / "clip")), kind=kind)
    with Worker(walls) as worker:
        worker.connection.send_bytes(str(tmp_path).encode())
        seen = json.loads(worker.connection.recv_bytes())
    assert seen["secret"] is None and seen["shown"] == ["clip"]
    if kind == PRIVATE:
        assert seen["hidden"] == ["shown"] and seen["processes"] == 2
        assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_worker_started_ends_with_it(kind):
    marker = f"assay-daemon-{os.getpid()}-{kind[:5]}"
    with Worker(Walls("served_in_tests:daemon", kind=kind)) as worker:
        worker.connection.send_bytes(marker.encode())
        assert worker.connection.recv_bytes() == b"started"
        assert living(marker)
    assert not living(marker)


@pytest.mark.parametrize("kind", KINDS)
def test_how_a_worker_ended_is_known(kind):
    assert Worker(Walls("served_in_tests:dies", kind=kind)).wait()["exit"] == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="no namespaces")
def test_a_worker_that_was_ended_by_accident_does_not_make_the_walls_lower(monkeypatch):
    answers: list[bytes | None] = []

    class Asked:
        def __init__(self, walls: Walls) -> None:
            self.connection = self

        def recv_bytes(self, most: int) -> bytes:
            if (answer := answers.pop(0)) is None:
                raise EOFError
            return answer

        def __enter__(self) -> Asked:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(sandbox, "Worker", Asked)
    for answers, kind in (([None, b"1"], PRIVATE), ([None, None], PLAIN)):
        assert sandbox._kind.__wrapped__() == kind and not answers


@pytest.mark.skipif(kind_of_walls() != PRIVATE, reason="no namespaces")
def test_scratch_has_a_size():
    with Worker(Walls("served_in_tests:fills", scratch_bytes=8 * 2**20)) as worker:
        written, number = json.loads(worker.connection.recv_bytes())
    assert written <= 8 * 2**20 and number == 28


def test_links_left_in_scratch_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    with Worker(Walls("served_in_tests:links", kind=PLAIN)) as worker:
        worker.connection.send_bytes(str(tmp_path / "precious").encode())
        assert worker.connection.recv_bytes() == b"linked"
    assert (tmp_path / "precious" / "file").read_text() == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_and_its_scratch_end_when_its_keeper_is_killed(tmp_path, kind):
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    marker = f"assay-orphan-{os.getpid()}-{kind[:5]}"
    script = tmp_path / "keeper.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path / 'code')!r})\n"
        "from assay.broad.run.sandbox import Worker, prepare\n"
        "from assay.broad.run.warden import Walls\n"
        "prepare()\n"
        f"worker = Worker(Walls('served_in_tests:daemon', kind={kind!r}))\n"
        f"worker.connection.send_bytes({marker.encode()!r})\n"
        "print(worker.connection.recv_bytes(), flush=True)\n"
        "worker.connection.recv_bytes()\n"
    )
    environment = os.environ | {"TMPDIR": str(scratch)}
    keeper = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment)
    try:
        assert keeper.stdout is not None and b"started" in keeper.stdout.readline()
        assert living(marker) and len(list(scratch.iterdir())) == (kind == PLAIN)
    finally:
        keeper.kill()
        keeper.communicate()
    assert wait_until(lambda: not living(marker) and not list(scratch.iterdir()), 60)


# -- messages -----------------------------------------------------------------------------------------------------


def pair() -> tuple[Connection, Connection]:
    a, b = socket.socketpair()
    return Connection(a.detach()), Connection(b.detach())


@pytest.mark.parametrize(
    "features",
    [np.eye(3, dtype=np.float32), [np.ones((2, 3)), np.zeros((1, 3))], sparse.csr_matrix(np.eye(4)), np.zeros((0, 2))],
    ids=["matrix", "list", "sparse", "empty"],
)
def test_features_arrive_as_they_were_sent(features):
    theirs, ours = pair()
    form, arrays = features_as_arrays(features)
    send(theirs, {"form": form}, arrays)
    said, got = receive(ours, 10**6)
    again = features_of_arrays(said["form"], got, "the learner")
    if sparse.issparse(features):
        assert (again != features).nnz == 0
    else:
        assert all(np.array_equal(a, b) for a, b in zip(again, features, strict=True)) and type(again) is type(features)


@pytest.mark.parametrize(
    "message",
    [
        b"not json", b"[]", b"{}", b'{"arrays": 5}', b'{"arrays": [["O", [1]]]}', b'{"arrays": [["<f8", [-1]]]}',
        b'{"arrays": [["<f8", ["x"]]]}', b" " * 2**23, b'{"arrays": [["<f8", [1000000000]]]}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_answers_that_are_none_are_refused(message):
    theirs, ours = pair()
    threading.Thread(target=sends, args=(theirs, message), daemon=True).start()  # it may not fit into the socket
    with pytest.raises(Violation):
        receive(ours, 10**6)


def sends(connection: Connection, message: bytes) -> None:
    with suppress(OSError):  # nobody reads all of it
        connection.send_bytes(message)


def test_what_is_no_number_is_not_sent():
    for odd in (np.array([object()]), np.array(["5"]), np.array([1j])):
        with pytest.raises(Violation, match="no kind of number"):
            send(pair()[0], {}, [odd])
