"""The one reader of files: whatever is wrong with a file is a sentence that says which file, what, and what to do."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError, first_line, reason
from assay.core.limits import require_bytes

_TABLE = 8  # bytes in memory of a byte of text that becomes a cell of a table


class FileMissing(AssayError):
    """A file that should be in a folder is not there."""


@contextmanager
def reading(path: str | Path, kind: str = "", remedy: str = "") -> Iterator[None]:
    """Read a file inside the block: whatever is raised there is said of the file, in one sentence.

    The readers of the formats raise what they like where a file is damaged: errors of zip, of Unicode, of their own, or
    of memory where damaged bytes ask for too much. Errors of assay's own pass unchanged.

    Args:
        path: The file, as the sentence names it. One on this machine that is neither a file nor a folder (a pipe, a
            device) is refused before it is opened, because reading it may never end.
        kind: What it is read as, such as ``"a picture"``; empty for a file that assay wrote, which can only be damaged.
        remedy: What to do where it is damaged.

    Example:
        >>> with reading("a.json", "JSON", "restore it"):
        ...     json.loads("1}")
        Traceback (most recent call last):
        assay.core.errors.AssayError: a.json cannot be read as JSON (Extra data: line 1 column 2 (char 1)): restore it
    """
    _require_an_end(path)
    try:
        yield
    except AssayError:
        raise
    except Exception as error:  # the point of this function
        raise _said_of(str(path), error, kind, remedy) from error


def _said_of(path: str, error: Exception, kind: str, remedy: str) -> AssayError:
    then = f": {remedy}" if remedy else ""
    if isinstance(error, FileNotFoundError):
        return FileMissing(f"{path} cannot be read (no such file)")
    if isinstance(error, IsADirectoryError):
        return AssayError(f"{path} cannot be read (it is a folder, and a file is wanted){then}")
    if isinstance(error, OSError) and error.errno is not None:
        return AssayError(f"{path} cannot be read ({error.strerror or first_line(error)})")
    wrong = f"cannot be read as {kind}" if kind else "is damaged"
    return AssayError(f"{path} {wrong} ({_fault(error)}){then}")


def _fault(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return first_line(error) if isinstance(error, (ValueError, OSError)) else reason(error)


def _require_an_end(path: str | Path) -> None:
    """Refuse what is neither a file nor a folder: a pipe that nobody writes to is waited for, a device has no end."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # not there, or not on this machine
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise AssayError(f"{path} cannot be read (it is a pipe or a device, and a file is wanted)")


def require_room(path: str | Path, table: bool = False) -> None:
    """Refuse a file of this machine that is too large to be read as a whole, before memory is asked for.

    Args:
        path: The file.
        table: Whether it is text that becomes a table, which takes more memory than the file has bytes.
    """
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):  # not there, or not on this machine
        return
    require_bytes(f"{path}{' as a table' if table else ''}", size * (_TABLE if table else 1))


def is_there(path: str | Path) -> bool:
    """Whether there is a file or folder; an error where that cannot be seen, as in a folder that is closed to us."""
    with reading(path):
        return Path(path).exists()


def is_file(path: str | Path) -> bool:
    """Whether there is a file, or a link to one; an error where that cannot be seen."""
    with reading(path):
        return Path(path).is_file()


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder, or a link to one; an error where that cannot be seen."""
    with reading(path):
        return Path(path).is_dir()


def visible(paths: Iterable[Path], folder: Path) -> list[Path]:
    """What was found in a folder, in the order of names, without what is hidden or lies in a hidden folder.

    Hidden are names that begin with a dot, such as the ``._a.jpg`` that macOS puts beside ``a.jpg`` on foreign disks
    and ``.ipynb_checkpoints``, and ``__MACOSX``, the folder of such files in archives.

    Args:
        found: Paths below the folder, such as ``folder.iterdir()``.
        folder: The folder; whether it is hidden itself does not matter.

    Example:
        >>> names = ["cat/2.jpg", "cat/1.jpg", "cat/._1.jpg", ".cache/3.jpg", "__MACOSX/cat/1.jpg"]
        >>> [str(path) for path in visible(map(Path, names), Path())]
        ['cat/1.jpg', 'cat/2.jpg']
    """
    return sorted(
        path
        for path in paths
        if not any(part.startswith(".") or part == "__MACOSX" for part in path.relative_to(folder).parts)
    )


def read_bytes(path: str | Path, kind: str = "", remedy: str = "") -> bytes:
    """Read all bytes of a file."""
    with reading(path, kind, remedy):
        require_room(path)
        return Path(path).read_bytes()


def read_text(path: str | Path, kind: str = "text", remedy: str = "", encoding: str = "utf-8") -> str:
    """Read a file of text; one in another encoding is an error that says so."""
    with reading(path, kind, remedy):
        require_room(path)
        try:
            return Path(path).read_text(encoding=encoding)
        except UnicodeDecodeError as error:
            raise AssayError(f"{path} cannot be read as {kind} (it is not text in UTF-8): save it as UTF-8") from error


def read_json(path: str | Path, remedy: str = "") -> Any:
    """Read a file of JSON."""
    with reading(path, "JSON", remedy):
        require_room(path)
        return json.loads(Path(path).read_bytes())
