from __future__ import annotations

from dataclasses import replace

import av
import numpy as np
import pytest

from assay import AssayError
from assay.broad.data.hollywood2 import ACTIONS, TEST, TRAINING, check_hollywood2, load_hollywood2
from assay.broad.data.twin_clips import generated_clips
from assay.stimuli.video import Video


@pytest.fixture(scope="module")
def avi(tmp_path_factory):
    path = tmp_path_factory.mktemp("avi") / "clip.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 16
        stream.pix_fmt = "yuv420p"
        for t in range(3):
            frame = np.full((16, 16, 3), 80 * t, dtype=np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def write_release(folder, avi, training, test, films=None):
    """A folder laid out like the release, all clips the same video."""
    (folder / "AVIClips").mkdir()
    (folder / "ClipSets").mkdir()
    for split, targets in (("train", training), ("test", test)):
        names = [f"actionclip{split}{i:05d}" for i in range(1, len(targets) + 1)]
        for name in names:
            (folder / "AVIClips" / f"{name}.avi").hardlink_to(avi)
        for action, column in zip(ACTIONS, np.asarray(targets).T, strict=True):
            rows = [f"{name}  {1 if shown else -1}\n" for name, shown in zip(names, column, strict=True)]
            (folder / "ClipSets" / f"{action}_{split}.txt").write_text("".join(rows))
    if films:
        (folder / "ClipSets" / "films.txt").write_text(films)
    return folder


@pytest.fixture
def tiny(tmp_path, avi):
    return write_release(tmp_path, avi, np.eye(12, dtype=bool), np.eye(12, dtype=bool)[::-1])


def test_the_plans_numbers_add_up():
    assert (TRAINING.clips, TRAINING.labels, TEST.clips, TEST.labels) == (823, 901, 884, 972)


def test_a_release_with_the_plans_numbers_loads_strictly(tmp_path, avi):
    twins = generated_clips()
    folder = write_release(tmp_path, avi, *(twin.targets for twin in twins))
    for found, twin in zip(load_hollywood2(folder), twins, strict=True):
        np.testing.assert_array_equal(found.targets, twin.targets)
        assert found.labels == ACTIONS and found.targets.dtype == bool and found.groups is None
    training, test = load_hollywood2(folder)
    assert training.inputs.ids[0] == "actioncliptrain00001" and test.inputs.ids[-1] == "actioncliptest00884"


def test_clips_are_decoded_when_asked_for(tiny):
    (tiny / "AVIClips" / "actioncliptrain00002.avi").unlink()
    (tiny / "AVIClips" / "actioncliptrain00002.avi").write_bytes(b"no video")
    training, _ = load_hollywood2(tiny, strict=False)
    first, second, *_ = training.inputs.items
    assert isinstance(first, Video) and len(list(first.frames())) == 3
    with pytest.raises(AssayError, match=r"actioncliptrain00002\.avi"):
        list(second.frames())


@pytest.mark.requirement("B1")
def test_labels_are_in_the_order_of_the_class_list_not_of_the_alphabet_of_files(tiny):
    training, test = load_hollywood2(tiny, strict=False)
    np.testing.assert_array_equal(training.targets, np.eye(12, dtype=bool))
    np.testing.assert_array_equal(test.targets, np.eye(12, dtype=bool)[::-1])


def test_films_give_the_groups_where_they_are_known(tiny):
    rows = [f"actioncliptrain{i:05d} Big Fish" for i in range(1, 13)]
    rows += [f"actioncliptest{i:05d} {'Fargo' if i % 2 else 'Big Fish'}" for i in range(1, 13)]
    (tiny / "ClipSets" / "films.txt").write_text("\n".join(rows))
    training, test = load_hollywood2(tiny, strict=False)
    assert training.groups.tolist() == [0] * 12 and test.groups.tolist() == [1, 0] * 6
    (tiny / "ClipSets" / "films.txt").write_text("\n".join(rows[:-1]))
    with pytest.raises(AssayError, match=r"films\.txt gives no film for 1 clips, actioncliptest00012"):
        load_hollywood2(tiny, strict=False)


@pytest.mark.requirement("B2")
def test_every_deviation_from_the_plan_is_named(tiny):
    training, test = load_hollywood2(tiny, strict=False)
    assert check_hollywood2(training, test) == [
        "training: 12 clips, not 823",
        "training: 12 labels, not 901",
        "training: 12, 0, 0 clips with 1, 2, 3 labels, not 750, 68, 5",
        "training: 1–1 clips in a class, not 24–135",
        "test: 12 clips, not 884",
        "test: 12 labels, not 972",
        "test: 12, 0, 0 clips with 1, 2, 3 labels, not 798, 84, 2",
        "test: 1–1 clips in a class, not 33–146",
    ]
    with pytest.raises(AssayError, match=r"is not Hollywood2: training: 12 clips, not 823; .*strict=False"):
        load_hollywood2(tiny)


def test_one_wrong_label_in_the_full_set_is_noticed():
    training, test = generated_clips()
    one = int(np.flatnonzero(training.targets.sum(axis=1) == 1)[0])
    targets = training.targets.copy()
    targets[one] = False
    found = check_hollywood2(replace(training, targets=targets), test)
    assert "training: 900 labels, not 901" in found and "training: 1 clips without a label" in found
    assert "training: 749, 68, 5 clips with 1, 2, 3 labels, not 750, 68, 5" in found
    targets[one, :4] = True
    assert any("749, 68, 5, 1 clips" in line for line in check_hollywood2(replace(training, targets=targets), test))


def test_clips_in_both_sets_and_other_class_orders_are_noticed():
    training, test = generated_clips()
    shared = replace(test, inputs=replace(test.inputs, ids=("training00001", *test.inputs.ids[1:])))
    assert check_hollywood2(training, shared) == ["1 clips are in both sets, training00001 the first"]
    renamed = replace(training, labels=tuple(sorted(ACTIONS, reverse=True)))
    (line,) = check_hollywood2(renamed, test)
    assert line.startswith("training: classes are StandUp, ")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("Kiss_test.txt", None, r"Kiss_test\.txt does not exist; the folder must hold AVIClips and ClipSets"),
        ("Kiss_test.txt", "", r"Kiss_test\.txt lists no clips"),
        ("Eat_train.txt", "a  1\n\nb  0\n", r"Eat_train\.txt, line 3: 'b 0' is not a clip with 1 or -1"),
        ("Eat_train.txt", "a  1\nb\n", r"Eat_train\.txt, line 2: 'b'"),
        ("Eat_train.txt", "a  1\na  -1\n", r"line 2: a is listed twice"),
        ("Run_train.txt", "other  1\n", r"AnswerPhone_train\.txt and Run_train\.txt list different clips"),
    ],
)
def test_broken_lists_are_one_clear_sentence(tiny, file, text, message):
    path = tiny / "ClipSets" / file
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(AssayError, match=message):
        load_hollywood2(tiny, strict=False)


def test_a_listed_clip_without_a_file_is_an_error(tiny):
    (tiny / "AVIClips" / "actioncliptest00003.avi").unlink()
    with pytest.raises(AssayError, match=r"1 of 12 clips have no file, .*actioncliptest00003\.avi the first"):
        load_hollywood2(tiny, strict=False)
