"""RDMs of files and folders, and the 92-image set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import io

from assay import AssayError
from assay.stimuli import RdmSet, load_brain92, load_rdms

VECTORS = np.random.default_rng(0).random((2, 10))
MATRICES = RdmSet(VECTORS).matrices


def structures(entries: list[tuple[str, np.ndarray]]) -> np.ndarray:
    array = np.empty((1, len(entries)), dtype=[("RDM", object), ("name", object)])
    for i, (name, rdm) in enumerate(entries):
        array[0, i] = (rdm, name)
    return array


def test_every_kind_of_file_is_loaded(tmp_path):
    h5py = pytest.importorskip("h5py")
    np.save(tmp_path / "a.npy", VECTORS[0])
    np.savez(tmp_path / "b.npz", first=MATRICES[0], second=VECTORS[1], colour=np.array([1.0, 0.0]))
    io.savemat(tmp_path / "c.mat", {"rdms": structures([("Anna", MATRICES[0]), ("Ben", VECTORS[1])])})
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["subjects/one"] = VECTORS[0]
        file["subjects/two"] = MATRICES[1]
    assert load_rdms(tmp_path / "a.npy").names == ("a",)
    assert load_rdms(tmp_path / "b.npz").names == ("first", "second")
    assert load_rdms(tmp_path / "c.mat").names == ("Anna", "Ben")
    assert load_rdms(tmp_path / "d.h5").names == ("subjects/one", "subjects/two")
    for file in ("b.npz", "c.mat", "d.h5"):
        np.testing.assert_array_equal(load_rdms(tmp_path / file).vectors, VECTORS)
    folder = load_rdms(tmp_path, stimuli="vwxyz")
    assert len(folder) == 7 and folder.stimuli == tuple("vwxyz")
    assert load_rdms(tmp_path, names=["Ben", "a"]).names == ("Ben", "a")


def test_a_mat_file_of_version_7_3_is_loaded(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["rdm"] = MATRICES[0].T
    head = b"MATLAB 7.3 MAT-file".ljust(512, b" ")
    with (tmp_path / "new.mat").open("r+b") as handle:
        handle.write(head)
    np.testing.assert_array_equal(load_rdms(tmp_path / "new.mat").vectors, VECTORS[:1])


def test_equal_names_in_several_files_get_the_name_of_the_file(tmp_path):
    for name, vector in zip(("anna", "ben"), VECTORS, strict=True):
        np.savez(tmp_path / f"{name}.npz", early=vector, late=vector[::-1])
    assert load_rdms(tmp_path).names == ("anna: early", "anna: late", "ben: early", "ben: late")


def test_bad_files_are_named(tmp_path):
    with pytest.raises(AssayError, match="does not exist"):
        load_rdms(tmp_path / "none")
    with pytest.raises(AssayError, match="holds no RDMs"):
        load_rdms(tmp_path)
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "damaged.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    (tmp_path / "damaged.h5").write_bytes(b"\x89HDF")
    (tmp_path / "code.npy").write_bytes(b"")
    for name in ("damaged.npy", "damaged.mat", "damaged.h5", "code.npy"):
        with pytest.raises(AssayError, match=r"cannot be read as|holds no RDM"):
            load_rdms(tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(AssayError, match="cannot be read as arrays"):  # no code in a file is run
        load_rdms(tmp_path / "objects.npy")
    np.save(tmp_path / "few.npy", np.arange(5.0))
    with pytest.raises(AssayError, match="holds no RDM"):
        load_rdms(tmp_path / "few.npy")
    np.save(tmp_path / "skew.npy", MATRICES[0] + np.triu(np.ones((5, 5)), 1))
    with pytest.raises(AssayError, match=r"RDM 0 of skew.npy: skew is not symmetric"):
        load_rdms(tmp_path / "skew.npy")
    (tmp_path / "rdm.txt").write_text("0 1")
    with pytest.raises(AssayError, match="is no file of RDMs"):
        load_rdms(tmp_path / "rdm.txt")


def test_rdms_of_different_stimuli_do_not_go_in_one_set(tmp_path):
    np.save(tmp_path / "a.npy", VECTORS[0])
    np.save(tmp_path / "b.npy", VECTORS[0, :6])
    with pytest.raises(AssayError, match=r"a.npy: a is of 5 and b.npy: b is of 4"):
        load_rdms(tmp_path)


def test_sets_name_what_is_wrong_with_names():
    with pytest.raises(AssayError, match="names has 1 entries for 2 RDMs"):
        RdmSet(VECTORS, names=("a",))
    with pytest.raises(AssayError, match="stimuli names 'a' twice"):
        RdmSet(VECTORS, stimuli=tuple("aabcd"))
    with pytest.raises(AssayError, match="stimuli names 'z', which these RDMs lack"):
        RdmSet(VECTORS, stimuli=tuple("abcde")).reordered("az")
    kept = RdmSet(VECTORS, names=("x", "y"), stimuli=tuple("abcde"))
    assert kept.fingerprint == RdmSet(MATRICES, ("x", "y"), tuple("abcde")).fingerprint
    assert kept.fingerprint != kept.reordered("bacde").fingerprint
    assert not kept.vectors.flags.writeable


def test_the_92_images_come_with_their_rdms(shared_data):
    brain = load_brain92(shared_data / "kriegeskorte92")
    assert brain.images.array.shape == (92, 3, 175, 175) and brain.images.labels[0] == "human bodypart"
    assert brain.sessions.names == ("BE 1", "BE 2", "KO 1", "KO 2", "SN 1", "SN 2", "TI 1", "TI 2")
    assert brain.subjects.names == ("BE", "KO", "SN", "TI") and len(brain.models) == 8 and len(brain.behaviour) == 16
    assert brain.categories["animate"].sum() == 48 and brain.categories["inanim"].sum() == 44
    assert brain.stimuli == brain.human.stimuli == brain.monkey.stimuli and len(set(brain.stimuli)) == 92
    np.testing.assert_allclose(brain.human.mean, brain.sessions.matrices.mean(0)[np.triu_indices(92, 1)], rtol=1e-12)


def test_a_missing_subject_or_file_of_the_92_images_is_named(tmp_path, shared_data):
    source = shared_data / "kriegeskorte92"
    with pytest.raises(AssayError, match="is no folder"):
        load_brain92(tmp_path / "none")
    with pytest.raises(AssayError, match=r"lacks 92_brainRDMs.mat"):
        load_brain92(tmp_path)
    pictures = "Kriegeskorte_Neuron2008_supplementalData.mat"
    (tmp_path / pictures).symlink_to(source / pictures)
    entries = io.loadmat(source / "92_brainRDMs.mat")["RDMs"]
    io.savemat(tmp_path / "92_brainRDMs.mat", {"RDMs": entries[:, :3]})
    with pytest.raises(AssayError, match="RDMs of 3×2 subjects and sessions, not 4×2: a subject or session is missing"):
        load_brain92(tmp_path)
    io.savemat(tmp_path / "92_brainRDMs.mat", {"other": entries})
    with pytest.raises(AssayError, match="has no variable 'RDMs'"):
        load_brain92(tmp_path)
    (tmp_path / "92_brainRDMs.mat").write_bytes((source / "92_brainRDMs.mat").read_bytes())
    assert load_brain92(tmp_path).models is None
