"""Texts to show to language models: sequences of tokens, without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from assay.core.errors import AssayError, first_line, shown
from assay.core.fingerprint import fingerprint
from assay.stimuli.clips import Clip
from assay.stimuli.pictures import Array, as_array
from assay.stimuli.sequences import Sequences


@dataclass(frozen=True, eq=False, repr=False)
class Text(Clip):
    """One text as a sequence of tokens: its frames are the token ids, one at a time.

    Args:
        name: What tables call the text.
        ids: The ids of its tokens, in order, without padding.
        condition: Whether the text is natural, or which control it is.
        words: The text that the tokens were made of, where it is known.
    """

    name: str
    ids: Array
    condition: str = "natural"
    words: str = ""

    def __post_init__(self) -> None:
        ids = as_array(self.ids, f"text {self.name!r}")
        if ids.ndim != 1 or not len(ids) or not np.issubdtype(ids.dtype, np.integer) or ids.min() < 0:
            raise AssayError(
                f"text {self.name!r} is {ids.dtype} of shape {ids.shape}: give the ids of its tokens, whole numbers "
                "in a row, at least 0"
            )
        ids = ids.astype(np.int64)  # a copy, so that its fingerprint stays true
        ids.setflags(write=False)
        object.__setattr__(self, "ids", ids)

    def frames(self) -> Iterator[Array]:
        """Yield the ids of the tokens in order, each an array of one number."""
        yield from self.ids[:, None]

    def count(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the ids of all tokens."""
        return fingerprint(self.ids)


class Texts(Sequences):
    """A set of texts to show to a language model, and where they come from; `as_texts` makes them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        other = next((clip for clip in self.clips if not isinstance(clip, Text)), None)
        if other is not None:
            raise AssayError(f"clips has {other!r}, which is no text: show clips and texts in measures of their own")

    def __repr__(self) -> str:
        return f"Texts({len(self.clips)} texts from {self.source})"

    def __add__(self, other: Sequences) -> Texts:
        return Texts(self.clips + other.clips, f"{self.source} + {other.source}")

    @property
    def texts(self) -> tuple[Text, ...]:
        """The texts in the order in which they were given."""
        return tuple(clip for clip in self.clips if isinstance(clip, Text))

    @cached_property
    def description(self) -> str:
        """Number, length and source of the texts, in a line."""
        lengths = [text.count() for text in self.texts]
        tokens = f"{min(lengths)} to {max(lengths)}" if min(lengths) < max(lengths) else f"{lengths[0]}"
        return f"{len(self.clips)} texts of {tokens} tokens from {self.source}"

    def pixel_fade(self) -> Sequences:
        """Refuse: texts have no pixels."""
        raise AssayError("texts have no pixels to fade: show them without this control")

    def contrast_fade(self, low: float = 0.1) -> Sequences:
        """Refuse: texts have no contrast."""
        raise AssayError("texts have no contrast to fade: show them without this control")

    def by_length(self, size: int) -> Iterator[tuple[Array, Array]]:
        """Yield texts of equal length together, shortest first: (ids of tokens N×T, index of each text).

        Nothing is padded, so that no token of a text is seen beside anything but that text.

        Args:
            size: The largest number of texts at a time.
        """
        texts = self.texts
        lengths = np.array([text.count() for text in texts])
        for length in np.unique(lengths):
            indices = np.flatnonzero(lengths == length)
            for start in range(0, len(indices), size):
                part = indices[start : start + size]
                yield np.stack([texts[i].ids for i in part]), part


def as_texts(
    texts: Any,
    tokenizer: Callable[[str], Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    condition: str = "natural",
    source: str = "memory",
) -> Texts:
    """Make texts of what people have: words with a tokenizer, lists of token ids, or what a tokenizer returned.

    Where there is an attention mask, tokens whose mask is 0 are padding and left out. `Texts` are returned unchanged.

    Args:
        texts: A list of strings; a list of token ids of each text, or an array of them; or a mapping with
            ``input_ids`` and ``attention_mask``.
        tokenizer: Makes token ids of a string: a tokenizer of Hugging Face, or any function. Special tokens are those
            that it adds.
        names: What tables call the texts; by default ``text 0``, ``text 1``, ….
        condition: What the texts are: ``natural``, or the name of a control such as ``shuffled``.
        source: Where the texts come from, for the report.

    Example:
        >>> padded = {"input_ids": [[5, 6, 7, 0], [5, 8, 9, 4]], "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1]]}
        >>> [text.ids.tolist() for text in as_texts(padded).texts]
        [[5, 6, 7], [5, 8, 9, 4]]
        >>> as_texts(["ab", "abc"], lambda words: [ord(letter) for letter in words]).description
        '2 texts of 2 to 3 tokens from memory'
    """
    if isinstance(texts, Texts):
        return texts
    if isinstance(texts, (str, bytes)) or not hasattr(texts, "__len__"):
        raise AssayError(
            f"texts={shown(texts)} must be a list of strings, lists of token ids, or a mapping of input_ids"
        )
    if not len(texts):
        raise AssayError("texts has none: give at least one text")
    words: list[str] = []
    if isinstance(texts, Mapping) or hasattr(texts, "input_ids"):
        rows = _unpadded(texts)
    elif all(isinstance(text, str) for text in texts):
        if tokenizer is None:
            raise AssayError("texts are strings: give a tokenizer that makes token ids of each, or the ids")
        words = list(texts)
        rows = [_tokens(tokenizer, text) for text in words]
    else:
        rows = list(texts)
    if names is None:
        names = [f"text {i}" for i in range(len(rows))]
    if len(names) != len(rows):
        raise AssayError(f"names has {len(names)} names for {len(rows)} texts: give one for each")
    told = words or [""] * len(rows)
    made = (
        Text(str(name), _row(row, name), condition, text) for name, row, text in zip(names, rows, told, strict=True)
    )
    return Texts(tuple(made), source)


def _tokens(tokenizer: Callable[[str], Any], text: str) -> Any:
    """The token ids of one text, whatever a tokenizer returns them in."""
    try:
        made = tokenizer(text)
    except Exception as error:  # the tokenizer is the user's
        raise AssayError(f"tokenizer cannot take {shown(text)}: {first_line(error)}") from error
    if isinstance(made, Mapping) or hasattr(made, "input_ids"):
        return made["input_ids"]
    return getattr(made, "ids", made)  # of the library tokenizers


def _unpadded(encoded: Any) -> list[Array]:
    """The token ids of each text in what a tokenizer returned for several, without those that the mask leaves out."""
    if "input_ids" not in encoded:
        raise AssayError(f"texts has {', '.join(map(str, encoded))}: give token ids under the name input_ids")
    rows = [as_array(row, "input_ids") for row in encoded["input_ids"]]
    if "attention_mask" not in encoded:
        return rows
    masks = [as_array(mask, "attention_mask") for mask in encoded["attention_mask"]]
    shapes = [row.shape for row in rows], [mask.shape for mask in masks]
    if shapes[0] != shapes[1]:
        raise AssayError("attention_mask must have one number for each of the input_ids")
    return [row[mask != 0] for row, mask in zip(rows, masks, strict=True)]


def _row(row: Any, name: Any) -> Array:
    ids = as_array(row, f"text {name!r}")
    return ids.astype(np.int64) if ids.size == 0 else ids
