"""Why a run has no ordinary result: a system broke the protocol, or cannot be used on these features at all."""

from __future__ import annotations

from assay.core.errors import AssayError


class Violation(AssayError):
    """Raised where a system did what the protocol forbids; ``status`` says what."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class NotApplicable(AssayError):
    """Raised where a module, or one of its settings, cannot be used on the features at all; the message says why.

    This is not a failure: the run (or that point of a grid) has the status "not applicable".
    """
