"""Hollywood2, the video corpus of the plan: clips from films that show one or more of twelve actions.

The films may not be distributed: `load_hollywood2` reads a local copy and `check_hollywood2` says where it differs
from the one that the plan describes (§4.1). `assay.broad.data.twin_clips.generated_clips` makes one of the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.broad.data.dataset import Dataset, Inputs
from assay.core.errors import AssayError
from assay.stimuli.video import Video

# The order of the release; the first label of a clip is the first in this order.
ACTIONS = (
    "AnswerPhone",
    "DriveCar",
    "Eat",
    "FightPerson",
    "GetOutCar",
    "HandShake",
    "HugPerson",
    "Kiss",
    "Run",
    "SitDown",
    "SitUp",
    "StandUp",
)


@dataclass(frozen=True)
class Shape:
    """Counts that describe a set of clips.

    Args:
        by_labels: Number of clips with 1, 2 and 3 labels.
        class_range: Number of clips in the smallest and in the largest class.
    """

    by_labels: tuple[int, int, int]
    class_range: tuple[int, int]

    @property
    def clips(self) -> int:
        """Number of clips in the set."""
        return sum(self.by_labels)

    @property
    def labels(self) -> int:
        """Number of labels of all clips together."""
        return sum(k * count for k, count in enumerate(self.by_labels, 1))


TRAINING = Shape((750, 68, 5), (24, 135))  # 823 clips, 901 labels
TEST = Shape((798, 84, 2), (33, 146))  # 884 clips, 972 labels


def load_hollywood2(folder: str | Path, strict: bool = True) -> tuple[Dataset, Dataset]:
    """Load the clean training set and the test set of Hollywood2; a clip is decoded when it is asked for.

    The release has the clips in ``AVIClips/NAME.avi`` and, for each action, the lists ``ClipSets/ACTION_train.txt``
    and ``ClipSets/ACTION_test.txt`` of all clips with 1 where it is shown and −1 where not. It does not say which
    film a clip is from; where that is known, a file ``ClipSets/films.txt`` with lines "NAME FILM" gives the groups.

    Args:
        folder: The folder that holds AVIClips and ClipSets.
        strict: Whether a set that is not the plan's (see `check_hollywood2`) is an error.

    Marszałek, Laptev, Schmid 2009, "Actions in context"; plan §4.1.
    """
    folder = Path(folder)
    films = _films(folder / "ClipSets" / "films.txt")
    training, test = (_load(folder, split, films) for split in ("train", "test"))
    if strict and (deviations := check_hollywood2(training, test)):
        raise AssayError(f"{folder} is not Hollywood2: {'; '.join(deviations)} (strict=False loads it as it is)")
    return training, test


def check_hollywood2(training: Dataset, test: Dataset) -> list[str]:
    """List where two sets of clips differ from those of the plan; an empty list if nowhere.

    823 clips with 901 labels (750, 68, 5 clips have 1, 2, 3; 24–135 clips in a class) for training, 884 clips with
    972 labels (798, 84, 2; 33–146) for testing, none in both. Plan §4.1.
    """
    deviations = []
    for name, dataset, expected in (("training", training, TRAINING), ("test", test, TEST)):
        if dataset.labels != ACTIONS:
            deviations.append(f"{name}: classes are {', '.join(dataset.labels)}, not {', '.join(ACTIONS)}")
        per_clip = np.bincount(dataset.targets.sum(axis=1), minlength=4)
        per_class = dataset.targets.sum(axis=0)
        counts = ", ".join(map(str, per_clip[1:]))
        if len(dataset) != expected.clips:
            deviations.append(f"{name}: {len(dataset)} clips, not {expected.clips}")
        if per_class.sum() != expected.labels:
            deviations.append(f"{name}: {per_class.sum()} labels, not {expected.labels}")
        if per_clip[0]:
            deviations.append(f"{name}: {per_clip[0]} clips without a label")
        if tuple(per_clip[1:]) != expected.by_labels:
            deviations.append(
                f"{name}: {counts} clips with 1, 2, 3 labels, not {', '.join(map(str, expected.by_labels))}"
            )
        smallest = int(per_class.min())
        largest = int(per_class.max())
        if (smallest, largest) != expected.class_range:
            low, high = expected.class_range
            deviations.append(f"{name}: {smallest}–{largest} clips in a class, not {low}–{high}")
    shared = set(training.inputs.ids) & set(test.inputs.ids)
    if shared:
        deviations.append(f"{len(shared)} clips are in both sets, {min(shared)} the first")
    return deviations


def _load(folder: Path, split: str, films: dict[str, str] | None) -> Dataset:
    lists = [_clip_set(folder / "ClipSets" / f"{action}_{split}.txt") for action in ACTIONS]
    names = list(lists[0])
    for action, listed in zip(ACTIONS, lists, strict=True):
        differing = sorted(set(names) ^ set(listed))
        if differing:
            raise AssayError(
                f"{ACTIONS[0]}_{split}.txt and {action}_{split}.txt list different clips: {differing[0]} is in one"
            )
    clips = [Video(name, folder / "AVIClips" / f"{name}.avi") for name in names]
    missing = [clip.path for clip in clips if not clip.path.is_file()]
    if missing:
        raise AssayError(f"{len(missing)} of {len(clips)} clips have no file, {missing[0]} the first")
    targets = np.array([[listed[name] for listed in lists] for name in names])
    groups = None
    if films is not None:
        unknown = [name for name in names if name not in films]
        if unknown:
            raise AssayError(f"films.txt gives no film for {len(unknown)} clips, {unknown[0]} the first")
        order = {film: i for i, film in enumerate(dict.fromkeys(films.values()))}
        groups = np.array([order[films[name]] for name in names])
    set_name = "training" if split == "train" else "test"
    return Dataset(f"Hollywood2 {set_name}", "video", Inputs(clips, tuple(names)), targets, ACTIONS, groups)


def _clip_set(path: Path) -> dict[str, bool]:
    """Read whether each clip shows the action, by name."""
    shown: dict[str, bool] = {}
    for line, parts in _lines(path):
        if len(parts) != 2 or parts[1] not in ("1", "+1", "-1"):
            raise AssayError(f"{path}, line {line}: {' '.join(parts)!r} is not a clip with 1 or -1")
        if parts[0] in shown:
            raise AssayError(f"{path}, line {line}: {parts[0]} is listed twice")
        shown[parts[0]] = parts[1] != "-1"
    if not shown:
        raise AssayError(f"{path} lists no clips")
    return shown


def _films(path: Path) -> dict[str, str] | None:
    """Read the film of each clip, by name; None if there is no such file."""
    return {parts[0]: " ".join(parts[1:]) for _, parts in _lines(path)} if path.is_file() else None


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    if not path.is_file():
        raise AssayError(f"Hollywood2: {path} does not exist; the folder must hold AVIClips and ClipSets")
    rows = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [(line, row.split()) for line, row in rows if row.strip()]
