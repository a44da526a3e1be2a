"""RDMs of files and folders, and the 92-image set."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy import io

from assay import AssayError, compare_rdms, load_plan, noise_ceiling
from assay.stimuli import HumanStimuli, RdmSet, as_images, load_brain92, load_human_stimuli, load_rdms

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


def test_rdms_without_a_name_are_numbered(tmp_path):
    io.savemat(tmp_path / "c.mat", {"rdms": structures([("", MATRICES[0]), (np.zeros((0, 0)), VECTORS[1])])})
    assert load_rdms(tmp_path / "c.mat").names == ("c 0", "c 1")


def test_a_mat_file_of_version_7_3_is_loaded(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["rdm"] = MATRICES[0].T
    head = b"MATLAB 7.3 MAT-file".ljust(512, b" ")
    with (tmp_path / "new.mat").open("r+b") as handle:
        handle.write(head)
    np.testing.assert_array_equal(load_rdms(tmp_path / "new.mat").vectors, VECTORS[:1])


def rsatoolbox_file(path, vectors, stimuli="", **rdm_descriptors):
    """An HDF5 file as rsatoolbox writes it: texts as bytes, numbers of RDMs and patterns beside them."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["dissimilarities"] = vectors
        file["rdm_descriptors/index"] = np.arange(len(vectors))
        file["pattern_descriptors/index"] = np.arange(5)
        for key, values in rdm_descriptors.items():
            file[f"rdm_descriptors/{key}"] = np.array(values).astype("S") if isinstance(values[0], str) else values
        if stimuli:
            file["pattern_descriptors/stimulus"] = np.array(list(stimuli)).astype("S")


def test_a_file_of_rsatoolbox_keeps_the_names_of_stimuli_and_rdms(tmp_path):
    rsatoolbox_file(tmp_path / "a.h5", VECTORS, "vwxyz", subject=["anna", "ben"])
    in_another_order = RdmSet(VECTORS, stimuli=tuple("vwxyz")).reordered("zyxwv")
    rsatoolbox_file(tmp_path / "b.h5", in_another_order.vectors, "zyxwv", subject=["anna", "anna"], session=[1, 2])
    rsatoolbox_file(tmp_path / "c.h5", VECTORS, region=["IT", "IT"])
    first, second, third = (load_rdms(tmp_path / f"{name}.h5") for name in "abc")
    assert first.names == ("anna", "ben") and first.stimuli == tuple("vwxyz")
    assert second.names == ("anna 1", "anna 2") and second.stimuli == tuple("zyxwv")
    assert third.names == ("c 0", "c 1") and third.stimuli == ()
    with pytest.raises(AssayError, match="the same stimuli in another order: stimulus 0 is 'v' and 'z'"):
        compare_rdms(first, second)
    np.testing.assert_allclose(np.diag(compare_rdms(first, second.reordered(first.stimuli))), 1)
    with pytest.raises(AssayError, match=r"a.h5 and b.h5 have the same stimuli in another order"):
        load_rdms(tmp_path)
    assert load_rdms(tmp_path, stimuli=()).stimuli == ()
    with pytest.raises(AssayError, match=r"another order than the file: give load_rdms\(path\).reordered"):
        load_rdms(tmp_path / "a.h5", stimuli="wvxyz")
    assert load_rdms(tmp_path / "a.h5", stimuli="abcde").stimuli == tuple("abcde")


def test_pictures_and_rdms_with_names_must_be_in_one_order(tmp_path):
    (tmp_path / "pictures").mkdir()
    for name in "vwxyz":
        Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / f"{name}.png")
    pictures = tmp_path / "pictures"
    for file, stimuli in {"same.h5": "vwxyz", "shuffled.h5": "zyxwv", "other.h5": "abcde"}.items():
        rsatoolbox_file(tmp_path / file, VECTORS, stimuli)
    assert load_human_stimuli(pictures, tmp_path / "same.h5").names == tuple("vwxyz")
    with pytest.raises(AssayError, match="images and rdms have the same stimuli in another order"):
        load_human_stimuli(pictures, tmp_path / "shuffled.h5")
    with pytest.raises(AssayError, match="images and rdms have the same stimuli in another order"):
        HumanStimuli(as_images(pictures), load_rdms(tmp_path / "shuffled.h5"))
    with pytest.raises(AssayError, match=r"have different stimuli .* stimuli=\[\] to load_human_stimuli"):
        load_human_stimuli(pictures, tmp_path / "other.h5")
    assert load_human_stimuli(pictures, tmp_path / "other.h5", stimuli=[]).names == tuple("vwxyz")
    assert HumanStimuli(pictures, tmp_path / "same.h5").names == tuple("vwxyz")


def test_pictures_of_two_kinds_name_the_arguments_at_hand(tmp_path):
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / "a.png")
    Image.new("L", (9, 9)).save(tmp_path / "pictures" / "b.png")
    np.save(tmp_path / "rdms.npy", VECTORS)
    with pytest.raises(AssayError, match=r"give size=…, .* and color='rgb' or color='grey' to load_human_stimuli$"):
        load_human_stimuli(tmp_path / "pictures", tmp_path / "rdms.npy")
    (tmp_path / "plan.yaml").write_text(
        "subjects: ['torch.nn:Flatten']\nmeasures:\n"
        "  - {measure: human-similarity, stimuli: {images: pictures, rdms: rdms.npy}}\n"
    )
    with pytest.raises(AssayError, match=r"give size: 32, .* and color: rgb, in a mapping with the keys 'images' and"):
        load_plan(tmp_path / "plan.yaml")


def test_matrices_stacked_as_in_matlab_are_loaded(tmp_path):
    last = np.moveaxis(MATRICES, 0, -1)
    cube = RdmSet(np.random.default_rng(1).random((5, 10))).matrices  # five RDMs of five stimuli
    io.savemat(tmp_path / "last.mat", {"RDMs": last, "picture": np.random.default_rng(2).random((8, 8, 3))})
    np.save(tmp_path / "last.npy", last)
    np.save(tmp_path / "cube.npy", np.moveaxis(cube, 0, -1))
    np.save(tmp_path / "first.npy", cube)
    np.save(tmp_path / "picture.npy", np.random.default_rng(2).random((8, 8, 3)))
    for file in ("last.mat", "last.npy"):
        np.testing.assert_array_equal(load_rdms(tmp_path / file).vectors, VECTORS)
    for file in ("cube.npy", "first.npy"):
        np.testing.assert_array_equal(load_rdms(tmp_path / file).matrices, cube)
    with pytest.raises(AssayError, match=r"picture of shape 8×8×3: .* RDMs × m × m or m × m × RDMs"):
        load_rdms(tmp_path / "picture.npy")
    with pytest.raises(AssayError, match=r"of shape 8×8×3 is no stack of RDMs, .*: give RDMs × m × m or m × m × RDMs"):
        RdmSet(np.random.default_rng(2).random((8, 8, 3)))


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


@pytest.mark.parametrize("stimuli", [9, 10, 28])  # of which 10 and 28 are numbers of entries of an upper triangle
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_similarities_are_not_read_as_upper_triangles(tmp_path, stimuli, kind):
    similarities = np.corrcoef(np.random.default_rng(0).normal(size=(stimuli, 20))).astype(kind)
    np.save(tmp_path / "r.npy", similarities)
    for read in (
        lambda: load_rdms(tmp_path / "r.npy"),
        lambda: RdmSet(similarities),
        lambda: noise_ceiling(similarities),
    ):
        with pytest.raises(AssayError, match="is symmetric and not zero on the diagonal, as similarities are"):
            read()
    assert len(RdmSet(1 - similarities)) == 1
    triangles = np.random.default_rng(0).random((10, 10))
    assert len(RdmSet(triangles)) == 10  # a square, but of ten triangles


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


def test_the_92_images_become_small_and_grey(shared_data):
    whole = load_brain92(shared_data / "kriegeskorte92").images.array
    small = load_brain92(shared_data / "kriegeskorte92", size=28, color="grey").images.array
    assert small.shape == (92, 1, 28, 28)
    grey = np.einsum("c,nchw->n", [0.299, 0.587, 0.114], whole) / 175**2  # luma of ITU-R 601
    # Resizing keeps the mean but for rounding to bytes and for borders, of which the filter sees less.
    np.testing.assert_allclose(small.mean((1, 2, 3)), grey, atol=0.01)


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
