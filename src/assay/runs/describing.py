"""How the manifest describes a measure: its name, its settings, and which of them are not at their default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.core.fingerprint import fingerprint
from assay.measures.base import Measure
from assay.runs.manifest import MeasureRecord


def measure_record(measure: Measure, content: str = "") -> MeasureRecord:
    """Describe a measure as the manifest does.

    Args:
        measure: The measure.
        content: Its fingerprint, where it is known.
    """
    given = measure.given
    return MeasureRecord(
        measure=measure.name or type(measure).__qualname__,
        value=measure.value,
        quantity=measure.quantity,
        higher_is=measure.higher_is,
        code_version=measure.code_version,
        fingerprint=content,
        settings={name: _plain(value) for name, value in measure.settings.items()},
        given=given,
        defaulted=[name for name in measure.settings if name not in given],
    )


def _plain(value: Any) -> Any:
    """A setting as JSON: as it is where it can be, else what it says of itself and its fingerprint."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    described = getattr(value, "description", None) or str(value)[:200]
    return {"is": described, "fingerprint": fingerprint(value)}
