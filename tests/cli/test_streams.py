"""Commands whose output cannot be written as usual: closed streams, narrow encodings, threads that go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from assay.cli import main as command_line
from command_kit import assay

NETWORKS = """
import os, threading, time
from torch import nn

class Leaving(nn.Sequential):
    def forward(self, x):
        if not any(thread.name == "left" for thread in threading.enumerate()):
            threading.Thread(target=time.sleep, args=(600,), name="left").start()
            print("ready", flush=True)
        time.sleep(float(os.environ.get("PAUSE", 0)))
        return super().forward(x)

class Stubborn(nn.Sequential):
    def forward(self, x):
        print("ready", flush=True)
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass

def leaving():
    return Leaving(nn.Flatten(), nn.Linear(3 * 12 * 12, 3))

def printing():
    class Printing(nn.Sequential):
        def forward(self, x):
            print("a picture")
            os.system("echo another program")
            return super().forward(x)

    return Printing(nn.Flatten(), nn.Linear(3 * 12 * 12, 3))

def stubborn():
    return Stubborn(nn.Flatten(), nn.Linear(3 * 12 * 12, 3))
"""
PLAN = """
run: done
subjects: ["odd:{network}"]
measures: [{{measure: straightness, sequences: {{camera: {{size: 12, length: 4, pictures: 1}}}}}}]
"""
QUICK = """
import signal
from assay.cli import ending
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background of a shell
ending._PATIENCE_S = ending._FOR_THREADS_S = 1.0
from assay.cli.main import main
main()
"""


def shell(words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m assay {words}"
    return subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("words", ["--help", "--version"])
def test_a_pipe_whose_reader_is_gone_changes_no_exit_code(words):
    script = f"{sys.executable} -m assay {words} | true; echo ${{PIPESTATUS[*]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 0\n", "")


@pytest.mark.parametrize("words", [("run", "plan.yaml"), ("list", "odd:printing", "--input", "3x12x12")])
def test_json_is_all_that_is_on_standard_output_whatever_networks_and_their_programs_print(tmp_path, words):
    (tmp_path / "odd.py").write_text(NETWORKS)
    (tmp_path / "plan.yaml").write_text(PLAN.format(network="printing"))
    done = assay(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0 and isinstance(json.loads(done.stdout), dict), done
    assert "a picture\n" in done.stderr and "another program\n" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_no_error(closed):
    done = shell(f"--help {closed}")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_encoding_without_our_characters_shows_their_numbers():
    done = shell("run 'missing–plan.yaml'", PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 2 and done.stderr == "assay: missing\\u2013plan.yaml cannot be read (no such file)\n"


def test_a_pipe_that_nobody_writes_to_is_no_plan(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = shell(f"run {tmp_path / 'pipe'}")
    assert done.returncode == 2 and "is empty" in done.stderr and done.stderr.count("\n") == 1


def test_a_plan_can_come_through_a_pipe():
    done = shell("run /dev/stdin < /dev/null")
    assert "is empty" in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "assay", "check", "/dev/stdin"], input="nonsense: 1\n", capture_output=True, text=True
    )
    assert "/dev/stdin:1: nonsense: unknown key" in done.stderr


@pytest.mark.kill
@pytest.mark.parametrize(
    ("network", "sent", "code"),
    [("leaving", None, 0), ("leaving", signal.SIGTERM, 143), ("stubborn", signal.SIGINT, 130)],
)
def test_a_command_ends_though_code_of_the_users_does_not(tmp_path, network, sent, code):
    (tmp_path / "odd.py").write_text(NETWORKS)
    (tmp_path / "plan.yaml").write_text(PLAN.format(network=network))
    started = subprocess.Popen(
        [sys.executable, "-c", QUICK, "run", "plan.yaml", "--quiet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PAUSE": "600" if sent else "0"},
    )  # fmt: skip
    assert started.stdout is not None and started.stdout.readline() == "ready\n"
    if sent:
        time.sleep(0.5)
        started.send_signal(sent)
    _, said = started.communicate(timeout=60)
    word = {None: "left a thread", signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}[sent]
    assert started.returncode == code and word in said and said.count("\n") == 1, said


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(24, "Too many open files"), 1, "the machine fails: Too many open files; what is done is kept: allow"),
        (MemoryError(), 1, "there is not enough memory"),
        (type("Cancelled", (BaseException,), {})("no"), 2, "code of yours raises what ends programs (Cancelled: no)"),
    ],
)
def test_what_a_machine_or_the_users_code_does_is_a_sentence(monkeypatch, capsys, error, code, said):
    def fail(**_):
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == code and capsys.readouterr().err.startswith(f"assay: {said}")
