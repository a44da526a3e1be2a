"""Whether a cell that is there may be kept, and if not, why it is measured anew."""

from __future__ import annotations

import json
import logging

from assay.core.errors import ANYTHING, AssayError, reason
from assay.core.folder import Folder
from assay.runs.cells import CellKey, read_probe
from assay.runs.manifest import Manifest
from assay.subject.probe import Probe
from assay.subject.subject import Subject

log = logging.getLogger(__name__)


class Trust:
    """Whether cells of a subject were measured on a network that behaves as this one does now."""

    def __init__(self, folder: Folder, subject: Subject) -> None:
        self.folder = folder
        self.subject = subject
        self.differences: dict[bytes, str | None] = {}

    def still_true(self, key: CellKey) -> bool:
        """Compare the answer to the probe that a cell keeps with the answer now; say in the log why it is not."""
        try:
            kept = read_probe(self.folder, key)
            if kept and kept not in self.differences:
                then = Probe.from_json(json.loads(kept))
                answer = self.subject.probe(then.inputs)
                self.differences[kept] = None if answer is None else then.difference(answer)
            difference = self.differences.get(kept)
        except AssayError as error:
            difference = str(error)
        except ANYTHING as error:  # the network itself may raise anything on the probe's input
            difference = f"it cannot be asked again ({reason(error)})"
        if difference is not None:
            log.warning("%s × %s is measured anew: %s", key.subject, key.measure, difference)
        return difference is None


class Changes:
    """What changed since an earlier call left cells in the same folder: why they do not serve now."""

    def __init__(self, before: Manifest | None, now: Manifest, present: set[str]) -> None:
        self.before = before
        self.now = now
        cells = [] if before is None else before.cells
        self.earlier = {(key.subject, key.measure): key for key in cells if key.done in present}

    def tell(self, key: CellKey) -> None:
        """Say in the log why a cell is measured anew, where one of the same names is there under another key."""
        if self.before is None or (key.subject, key.measure) not in self.earlier:
            return
        was, is_now = self.before.subjects.get(key.subject), self.now.subjects[key.subject]
        asked, asks = self.before.measures.get(key.measure), self.now.measures[key.measure]
        reasons = []
        if was is None or was.fingerprint != is_now.fingerprint:
            reasons.append("the network is another (its weights, its code, or an attribute that it keeps)")
        if asked is None or (asked.fingerprint or asks.fingerprint, asked.code_version) != (
            asks.fingerprint,
            asks.code_version,
        ):
            reasons.append("the measure is another (its code, its settings, or a variable that it reads)")
        if self.before.seed != self.now.seed:
            reasons.append(f"the seed is {self.now.seed} and was {self.before.seed}")
        why = " and ".join(reasons) or (
            "it was measured by another version of assay, or on another example or past of the network"
        )
        log.info("%s × %s is measured anew: %s", key.subject, key.measure, why)
