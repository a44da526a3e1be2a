"""The fuzzer of files: what assay wrote, or people gave it, comes to harm, and is read.

A reader refuses, by one sentence, or reads. Beyond that, of a run: cells that were not harmed are kept byte for byte,
and running it again makes its tables whole, whatever became of its manifest.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from pathlib import Path

from fuzz.damage import copied, damage
from fuzz.file_world import KINDS, Use
from fuzz.harness import Case


class Files:
    """Damages files and reads them; the quick one only in ways that take a moment, for the tests."""

    def __init__(self, quick: bool) -> None:
        self.uses: dict[str, tuple[Use, ...]] = {}
        for name, kind in KINDS.items():
            if uses := kind.quick if quick else kind.quick + kind.slow:
                self.uses[name] = uses

    def prepare(self, shared: Path) -> None:
        for name in self.uses:
            place = shared / name
            place.mkdir()
            KINDS[name].make(place)
            for use in set(self.uses[name]):  # holds where nothing is harmed; and what it imports is loaded once
                with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                    root = copied(place, Path(folder, name))
                    os.chdir(root)
                    use(root, Case(random.Random(0), shared, Path(folder), str))

    def run_case(self, case: Case) -> None:
        kind = case.draw.choice(list(self.uses))
        root = copied(case.shared / kind, case.folder / kind)
        os.chdir(root)
        files = sorted(p for p in root.rglob("*") if p.is_file())
        others = sorted(p for p in case.shared.rglob("*") if p.is_file() and p.stat().st_size < 10**6)
        user = os.geteuid()
        for _ in range(case.draw.choice((1, 1, 1, 2))):
            file = case.draw.choice(files)
            files.remove(file)
            if os.geteuid() == user and file.is_file():
                case.note(damage(file, root, others, case.canary, case.draw))
        use = case.draw.choice(self.uses[kind])
        case.note(f"{kind}: {use.__name__}")
        use(root, case)


WHOLE, QUICK = Files(quick=False), Files(quick=True)
prepare, run_case = WHOLE.prepare, WHOLE.run_case
