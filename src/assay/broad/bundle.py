"""The results of an evaluation as one file, to send from a team's site and to take in at the evaluators' (plan §6)."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

from assay.broad.run.results import Results
from assay.core.errors import AssayError
from assay.core.folder import Folder
from assay.core.reading import reading

# What a bundle holds: the manifest, records and predictions of runs, and tables; neither truth nor anything to run.
_FILES = re.compile(r"manifest\.json|runs/[\w.-]+/[\w.-]+/(run\.json|fold\d+\.npz)|analysis/\w+\.csv")
_MOST_BYTES = 8 * 2**30
_NAME = re.compile(r"[\w-]+")


def pack(folder: str, file: str | Path) -> list[str]:
    """Write the results of an evaluation into one file, without truth, features or learners; return what it holds."""
    place = Path(Folder(folder).path())
    Results(folder).read_manifest()
    names = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    kept = [name for name in names if _FILES.fullmatch(name)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in kept:
            archive.writestr(zipfile.ZipInfo(name), (place / name).read_bytes())
    target = Path(file)
    Folder(str(target.parent)).write(target.name, buffer.getvalue())
    return kept


def ingest(folder: str, file: str | Path, name: str) -> str:
    """Take the results of another site into an evaluation, under ``sites/NAME``; return that folder.

    Nothing in the file is run or unpickled. It is refused unless it holds results of tasks that the evaluation has, on
    the same partitions.

    Args:
        folder: Folder of the evaluators' evaluation.
        file: File that `pack` wrote at the other site.
        name: Name of the site: letters, digits, ``-`` and ``_``.
    """
    if not _NAME.fullmatch(name):
        raise AssayError(f"name={name!r}: a site is named by letters, digits, '-' and '_'")
    ours = {task["name"]: task["partition"] for task in Results(folder).read_manifest()["tasks"]}
    files = _files_in(Path(file))
    try:
        tasks = json.loads(files["manifest.json"])["tasks"]
        theirs = {str(task["name"]): str(task["partition"]) for task in tasks}
    except (KeyError, TypeError, ValueError) as error:
        raise AssayError(f"{file} holds no manifest of a broad evaluation: write it by assay broad pack") from error
    if not set(ours) & set(theirs):
        raise AssayError(f"{file} has results of {', '.join(theirs)}; {folder} has {', '.join(ours)}: none is shared")
    other = sorted(task for task in set(ours) & set(theirs) if ours[task] != theirs[task])
    if other:
        raise AssayError(f"{file} has another partition of {', '.join(other)}: it needs the same seed, data and sizes")
    target = Folder(f"{folder.rstrip('/')}/sites/{name}")
    if target.exists("manifest.json"):
        raise AssayError(f"{folder} has results of a site {name!r} already: choose another name")
    for path in sorted(files, reverse=True):  # runs before the manifest, which makes them an evaluation
        if path != "manifest.json":
            target.write(path, files[path])
    target.write("manifest.json", files["manifest.json"])
    return target.path()


def sites(folder: str) -> list[str]:
    """Names of the sites whose results were taken in."""
    place = Path(Folder(folder).path()) / "sites"
    return sorted(path.parent.name for path in place.glob("*/manifest.json"))


def _files_in(file: Path) -> dict[str, bytes]:
    """Read the files of a bundle; an error unless each is one that a bundle holds."""
    with reading(file, "results of a site"), zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        strange = [entry.filename for entry in entries if not _FILES.fullmatch(entry.filename)]
        if strange:
            raise AssayError(f"{file} holds {strange[0]!r}, which results do not have: nothing was taken in")
        if sum(entry.file_size for entry in entries) > _MOST_BYTES:
            raise AssayError(f"{file} unpacks to more than {_MOST_BYTES / 2**30:g} GiB: nothing was taken in")
        return {entry.filename: archive.read(entry) for entry in entries}
