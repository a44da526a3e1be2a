"""Labels that differ: what tables call things that share a name."""

from __future__ import annotations

from collections.abc import Collection


def numbered(name: str, taken: Collection[str]) -> str:
    """A name that is not taken yet: the name itself, or the name with the first free number from 2 on.

    >>> numbered("ResNet", []), numbered("ResNet", ["ResNet", "ResNet-2"])
    ('ResNet', 'ResNet-3')
    """
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name}-{number}"
    return label
