"""Texts in files, one a line, as tokens of a tokenizer of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.core.errors import AssayError, first_line, optional, shown
from assay.core.reading import read_text
from assay.stimuli.texts import Texts, as_texts


def load_texts(path: str | Path, tokenizer: str | Path, *, tokens: int | None = None, most: int | None = None) -> Texts:
    """Load the texts of a file, one a line, as a tokenizer reads them; empty lines are left out.

    Args:
        path: A file of text, UTF-8.
        tokenizer: A folder made by ``save_pretrained``, a ``tokenizer.json``, or the name of a checkpoint on the hub.
            Code that comes with a tokenizer is never run.
        tokens: Cut every text to so many tokens, and leave out those that have fewer; None for whole texts.
        most: The largest number of texts, the first of the file; None for all.
    """
    for name, value, least in (("tokens", tokens, 3), ("most", most, 1)):
        if value is not None and (type(value) is not int or value < least):
            raise AssayError(f"{name}={shown(value)} must be at least {least}, a whole number")
    path = Path(path).expanduser()
    # A mark of the byte order is no text. Lines end where editors end them, not at every character that may.
    lines = read_text(path, "text, one text a line", encoding="utf-8-sig").split("\n")
    words = {f"line {number}": line.strip() for number, line in enumerate(lines, 1) if line.strip()}
    if not words:
        raise AssayError(f"path={str(path)!r} has no text: write one text a line")
    encode = load_tokenizer(tokenizer)
    rows: dict[str, list[int]] = {}
    for name, line in words.items():
        if most is not None and len(rows) == most:
            break
        ids = encode(line)
        if tokens is None or len(ids) >= tokens:
            rows[name] = ids[:tokens]
    if not rows:
        raise AssayError(f"tokens={tokens}: none of the {len(words)} texts of {path.name} has so many")
    return as_texts(list(rows.values()), names=list(rows), source=path.name)


def load_tokenizer(tokenizer: str | Path) -> Any:
    """A function from a string to token ids, by the tokenizer of a folder, a ``tokenizer.json`` or a name."""
    where = f"tokenizer={str(tokenizer)!r}"
    if str(tokenizer).startswith("~"):
        tokenizer = Path(tokenizer).expanduser()
    if str(tokenizer).startswith((".", "/")) and not Path(tokenizer).exists():
        raise AssayError(f"{where} cannot be loaded (no such file or folder)")
    transformers = optional("transformers", "hf", where)
    try:
        if str(tokenizer).endswith(".json"):
            made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tokenizer))
        else:
            made = transformers.AutoTokenizer.from_pretrained(str(tokenizer), trust_remote_code=False)
    except Exception as error:  # a folder, a file or the hub: transformers raises whatever it meets
        raise AssayError(f"{where} cannot be loaded ({first_line(error)})") from error

    def encode(text: str) -> Any:
        try:
            return made(text)["input_ids"]
        except Exception as error:  # a damaged file may be found out only here
            raise AssayError(f"{where} cannot make tokens of a text ({first_line(error)})") from error

    return encode
