"""Files of weights: told apart by what they hold, and what is wrong with them is said in words that help."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from assay import AssayError
from assay.core.checkpoints import read_tensors, require_checkpoint

STATE = {"weight": torch.arange(2000.0).reshape(40, 50), "bias": torch.zeros(40)}


def as_before(path):
    torch.save(STATE, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt", "w"])
@pytest.mark.parametrize(
    "write", [lambda path: save_file(STATE, path), lambda path: torch.save(STATE, path), as_before]
)
def test_the_content_tells_what_a_file_is_whatever_its_name(tmp_path, name, write):
    write(tmp_path / name)
    read = read_tensors(tmp_path / name)
    assert set(read) == set(STATE) and all(torch.equal(read[key], STATE[key]) for key in STATE)


def test_a_checkpoint_of_training_is_read_for_its_state_dict(tmp_path):
    torch.save({"epoch": 3, "state_dict": STATE, "opt": {"lr": 0.1, "step": [1, 2]}}, tmp_path / "w.pt")
    assert torch.equal(read_tensors(tmp_path / "w.pt")["weight"], STATE["weight"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", r"weights=.*w.pt is empty: download or copy it again"),
        (b"<html>404 Not found</html>\n", r"is neither safetensors nor a torch checkpoint \(it is a web page\): name"),
        (b"root:x:0:0:root\n", r"is neither safetensors nor a torch checkpoint \(it is text\): name another file"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            r"is a pointer of git-lfs, .* \(git lfs pull\)",
        ),
        (bytes(20), "is neither safetensors nor a torch checkpoint: name another file, or download it again"),
        (save(STATE)[:5000], r"cannot be read as safetensors \(.*\): it is damaged; download or copy it again"),
        (save(STATE)[:5], "is neither safetensors nor a torch checkpoint"),
    ],
)
@pytest.mark.parametrize("name", ["w.safetensors", "w.pt"])
def test_what_is_no_checkpoint_is_named_before_its_tensors_are_read(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AssayError, match=words.replace("w.pt", name)):
        require_checkpoint(tmp_path / name)


@pytest.mark.parametrize("write", [lambda path: torch.save(STATE, path), as_before])
def test_a_torch_file_cut_anywhere_is_called_damaged_and_never_code(tmp_path, write):
    write(tmp_path / "w.pt")
    whole = (tmp_path / "w.pt").read_bytes()
    for length in (2, 3, 40, 200, 5000, len(whole) - 10):
        (tmp_path / "w.pt").write_bytes(whole[:length])
        with pytest.raises(AssayError, match=r"as a torch checkpoint \(.*\): it is damaged; download or copy it again"):
            read_tensors(tmp_path / "w.pt")


def test_only_what_could_run_code_is_said_to(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    for new in (True, False):
        torch.save({"state_dict": Hostile()}, tmp_path / "w.safetensors", _use_new_zipfile_serialization=new)
        with pytest.raises(
            AssayError, match="holds more than tensors and was not loaded, because loading it could run"
        ):
            read_tensors(tmp_path / "w.safetensors")
    assert not (tmp_path / "pwned").exists()
    np.savez(tmp_path / "w.npz", a=np.zeros(3))
    with pytest.raises(AssayError, match="is neither safetensors nor a torch checkpoint"):
        read_tensors(tmp_path / "w.npz")
