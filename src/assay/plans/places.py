"""Places that a plan names: files relative to its own, folders and URLs of runs, ``~`` for the home folder."""

from __future__ import annotations

from pathlib import Path

from assay.core.errors import AssayError


def path_in(plan: Path, written: str) -> Path:
    """A path as a plan writes it: ``~`` is the home folder, and other paths are relative to the plan's file.

    Example:
        >>> path_in(Path("plans/first.yaml"), "data.npz").as_posix()
        'plans/data.npz'
        >>> path_in(Path("plans/first.yaml"), "~/data.npz") == Path.home() / "data.npz"
        True
    """
    try:
        return plan.parent / Path(written).expanduser()
    except RuntimeError as error:
        raise AssayError(f"{written}: the home folder of this user is not known: write the whole path") from error


def folder_in(plan: Path, written: str) -> str:
    """A folder or URL for results as a plan writes it, for `assay.core.folder.Folder`.

    The whole path, so that results stay in one place though code of the user's may change the working directory.

    Example:
        >>> folder_in(Path("plans/first.yaml"), "s3://bucket/first")
        's3://bucket/first'
        >>> folder_in(Path("plans/first.yaml"), "runs/a") == str(Path.cwd() / "plans/runs/a")
        True
    """
    return written if "://" in written else str(path_in(plan, written).absolute())
