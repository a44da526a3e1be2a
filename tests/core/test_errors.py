"""What other people's exceptions say, as part of a sentence."""

from __future__ import annotations

from assay.core.errors import first_line, reason


def test_an_exception_that_cannot_say_anything_is_called_by_its_type():
    def __str__(self):
        raise RuntimeError("no")

    silent = type("Silent", (Exception,), {"__str__": __str__})()
    assert first_line(silent) == reason(silent) == "Silent"


def test_a_message_of_any_length_is_cut():
    assert len(first_line(ValueError("x" * 10**6))) == 1001
