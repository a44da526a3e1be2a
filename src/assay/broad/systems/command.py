"""A module of a system that is a command: called with files, in a process of its own, in any language."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from assay.broad.data.dataset import Features
from assay.broad.data.features import unpacked
from assay.broad.data.violation import Violation
from assay.broad.systems.team import require_tuning
from assay.core.errors import AssayError, first_line

# Stands between the harness and the command, and ends the command if the harness dies, even if it is killed.
_GUARD = """
import os, signal, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def end():
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end, daemon=True).start()
code = child.wait()
os._exit(code if code >= 0 else 128 - code)
"""
_OWN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # of the harness: not handed on to the command


class Command:
    """A command that learns into a folder and answers from it; connected by files only.

    What was learned is kept as ``model_``, file by file, and laid out anew for each call; if an answer changes it, it
    is taken as changed, so that learning at test time shows.

    Args:
        command: Program and its arguments.
        parameters: The system's own parameters, handed on as a JSON file.
        environment: Environment variables to set, on top of the present ones.
        timeout_s: Seconds that one call may take; None for no limit.
        workdir: Folder to run in, and to which file names in ``command`` and ``sources`` are relative.
        sources: Files and folders the system is made of, besides the files named in ``command``.
    """

    never_from_file = ("command", "environment", "workdir", "sources")  # or a file could name a program to run

    def __init__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        workdir: str | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        if isinstance(command, str) or not command:
            raise AssayError(f"command={command!r} is a list of words, the program first")
        if timeout_s is not None and not timeout_s > 0:
            raise AssayError(f"timeout_s={timeout_s} must be positive, or None for no limit")
        require_tuning(parameters or {}, "parameters")
        self.command = tuple(command)
        self.parameters = dict(parameters or {})
        self.environment = dict(environment or {})
        self.timeout_s = timeout_s
        self.workdir = workdir
        self.sources: tuple[str, ...] = tuple(sources)
        self.model_: dict[str, bytes] = {}

    @staticmethod
    def frozen_files(
        command: Sequence[str], workdir: str | None = None, sources: Sequence[str] = (), **_: Any
    ) -> list[Path]:
        """The files that make the system what it is: those in the command and in ``sources``.

        The program itself, an interpreter as a rule, counts only if the command names no other file.
        """
        place = Path(workdir or ".")
        files = [place / word for word in command[1:] if (place / word).is_file()]
        for source in sources:
            path = place / source
            if not path.exists():
                raise AssayError(f"sources: there is no {path}")
            files += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        program = place / command[0] if (place / command[0]).is_file() else shutil.which(command[0])
        return files or ([Path(program)] if program else [])

    def _learn(self, files: Mapping[str, bytes], *words: str) -> None:
        """Call ``fit`` with these files, and keep what it learned; a word that names a file becomes its path."""
        with self._laid_out(files) as folder:
            model = folder / "model"
            model.mkdir()
            self._call(folder, "fit", *self._placed(folder, files, words), "--model", model)
            self.model_ = _read(model)
        if not self.model_:
            raise AssayError(f"{self._name} fit ended well, but left nothing in the folder given as --model")

    def _answer(self, verb: str, files: Mapping[str, bytes], *words: str) -> Features:
        """Call a verb that answers from what was learned, and give the features it wrote."""
        if not self.model_:
            raise AssayError(f"this {self._kind} has not learned yet: fit first")
        with self._laid_out(files) as folder:
            model = folder / "model"
            out = folder / "Y.npz"
            _write(model, self.model_)
            self._call(folder, verb, "--model", model, *self._placed(folder, files, words), "--out", out)
            self.model_ = _read(model)
            if not out.is_file():
                raise AssayError(f"{self._name} {verb} ended well, but did not write the file given as --out")
            try:
                return _features(out.read_bytes())
            except Exception as error:
                raise AssayError(
                    f"{self._name} {verb} wrote a file that holds no features ({first_line(error)}): it has "
                    "'matrix', or 'data', 'indices', 'indptr', 'shape', or 'list', 'a0', 'a1', …; or is text, the "
                    "numbers of an instance on each line"
                ) from error

    @contextmanager
    def _laid_out(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        """A temporary folder with these files."""
        with tempfile.TemporaryDirectory(prefix="assay-") as temporary:
            folder = Path(temporary)
            for name, data in files.items():
                (folder / name).write_bytes(data)
            yield folder

    @staticmethod
    def _placed(folder: Path, files: Mapping[str, bytes], words: Sequence[str]) -> list[str]:
        return [str(folder / word) if word in files else word for word in words]

    @property
    def _kind(self) -> str:
        return type(self).__name__.removeprefix("Subprocess").lower()

    @property
    def _options(self) -> tuple[str, ...]:
        """Options that every call has."""
        return ()

    @property
    def _name(self) -> str:
        return " ".join(Path(word).name for word in self.command[:2])

    def _call(self, folder: Path, verb: str, *words: str | int | Path) -> str:
        """Run the command to its end and give the last line it printed."""
        environment = {k: v for k, v in os.environ.items() if k not in _OWN_VARIABLES} | self.environment
        out = folder / "stdout"
        err = folder / "stderr"
        parameters = folder / "parameters.json"
        parameters.write_text(json.dumps(self.parameters))
        command_line = [sys.executable, "-I", "-S", "-c", _GUARD, *self.command, verb, *map(str, words)]
        command_line += [*self._options, "--parameters", str(parameters)]
        with (
            out.open("wb") as to_out, err.open("wb") as to_err,
            subprocess.Popen(
                command_line, stdin=subprocess.PIPE, stdout=to_out, stderr=to_err, env=environment, cwd=self.workdir,
                start_new_session=True,
            ) as process,
        ):  # fmt: skip
            try:
                code = process.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                raise Violation("timeout", f"{self._name} {verb} took longer than {self.timeout_s:g} s") from None
            finally:
                with suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
                    os.killpg(process.pid, signal.SIGKILL)
        if code:
            raise AssayError(f"{self._name} {verb} ended with exit code {code}: {_last_line(err) or 'it said nothing'}")
        return _last_line(out)


def _features(data: bytes) -> Features:
    """The features in a file that a command wrote: an npz archive, or text, the numbers of an instance on each line.

    >>> _features(b"1,2\\n3.5 4\\n").tolist()
    [[1.0, 2.0], [3.5, 4.0]]
    """
    if data.startswith(b"PK"):
        return unpacked(data)
    lines = [line.replace(",", " ").split() for line in data.decode().splitlines()]
    return np.array([[float(word) for word in line] for line in lines], dtype=np.float64)


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _read(folder: Path) -> dict[str, bytes]:
    """Read the plain files in a folder, by name."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for name, data in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise AssayError(f"model_ has a file {name!r} that would lie outside of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
