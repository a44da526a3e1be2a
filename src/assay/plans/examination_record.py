"""What an examination keeps in its run: with how many inputs every question is asked, and what time left out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from assay.core.folder import Folder
from assay.core.reading import reading
from assay.core.records import record_of

FILE = "examination.json"
_ANEW = "delete it and examine the network again"


@dataclass
class ExaminationRecord:
    """The choices of an examination, with which it goes on when it is asked for again.

    Args:
        sizes: Number of inputs of every question that was asked, by label.
        notes: By label what was left out or shown with less for want of time, in a sentence each.
        time: How much time was asked for and taken, in a sentence, where more was taken.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    time: str = ""

    @classmethod
    def read(cls, folder: Folder) -> ExaminationRecord:
        """Read it from the folder of a run; an empty one where there is none."""
        kept = folder.read_json(FILE, _ANEW) if folder.exists(FILE) else {}
        with reading(folder.path(FILE), remedy=_ANEW):
            if isinstance(kept, dict) and "sizes" not in kept:  # as it was first written: the sizes alone
                kept = {"sizes": kept}
            return record_of(cls, kept)

    def write(self, folder: Folder) -> None:
        """Write it into the folder of a run."""
        folder.write(FILE, json.dumps({"sizes": self.sizes, "notes": self.notes, "time": self.time}, indent=1).encode())

    @property
    def sentences(self) -> list[str]:
        """All that a reader should know of it."""
        return [*self.notes.values(), *([self.time] if self.time else [])]
