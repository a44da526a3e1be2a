from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import pgdl_kit as kit
from assay import AssayError
from assay.stimuli import tfrecord
from assay.stimuli.tfrecord import crc32c, parse_example, parse_tensor, read_records

FEATURES = st.dictionaries(
    st.text(max_size=5),
    st.one_of(
        st.tuples(st.just("bytes_list"), st.lists(st.binary(max_size=300), max_size=3)),
        st.tuples(st.just("float_list"), st.lists(st.floats(width=32, allow_nan=False), max_size=50)),
        st.tuples(st.just("int64_list"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50)),
    ),
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksums_are_those_of_rfc_3720(data, expected):
    assert crc32c(data) == kit.crc32c(data) == expected


@given(st.binary(max_size=200))
def test_the_checksum_is_that_of_the_definition(data):
    assert crc32c(data) == kit.crc32c(data)


@given(st.lists(st.binary(max_size=20), max_size=12))
def test_records_come_back_with_the_bytes_they_begin_at(tmp_path_factory, payloads):
    path = tmp_path_factory.mktemp("records") / "shard"
    written = [kit.record(payload) for payload in payloads]
    path.write_bytes(b"".join(written))
    starts = np.cumsum([0, *map(len, written)])[:-1]
    assert list(read_records(path)) == list(zip(starts, payloads, strict=True))


def test_records_of_one_length_are_checked_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecord, "_BLOCK", 100)  # two records of 66 bytes at a time
    payloads = [bytes([i]) * 50 for i in range(9)]
    data = bytearray(b"".join(map(kit.record, payloads)))
    (tmp_path / "shard").write_bytes(data)
    assert [payload for _, payload in read_records(tmp_path / "shard")] == payloads
    data[7 * 66 + 30] ^= 1
    (tmp_path / "shard").write_bytes(data)
    with pytest.raises(AssayError, match=f"payload of the record at byte {7 * 66} "):
        list(read_records(tmp_path / "shard"))


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=4), st.data())
def test_a_changed_byte_is_found_in_its_record(tmp_path_factory, payloads, data):
    written = [kit.record(payload) for payload in payloads]
    damaged = bytearray(b"".join(written))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    start = max(start for start in np.cumsum([0, *map(len, written)]) if start <= at)
    path = tmp_path_factory.mktemp("records") / "shard"
    path.write_bytes(damaged)
    with pytest.raises(AssayError, match=re.escape(str(path)) + f" is damaged: .* at byte {start} "):
        list(read_records(path))


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=4), st.data())
def test_a_file_cut_short_gives_its_whole_records_or_an_error(tmp_path_factory, payloads, data):
    written = [kit.record(payload) for payload in payloads]
    starts = [int(start) for start in np.cumsum([0, *map(len, written)])]
    end = data.draw(st.integers(0, starts[-1] - 1))
    path = tmp_path_factory.mktemp("records") / "shard"
    path.write_bytes(b"".join(written)[:end])
    if end in starts:
        assert [payload for _, payload in read_records(path)] == payloads[: starts.index(end)]
    else:
        start = max(start for start in starts if start < end)
        with pytest.raises(AssayError, match=f"cut short: the record at byte {start} "):
            list(read_records(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(AssayError, match="nowhere cannot be read"):
        list(read_records(tmp_path / "nowhere"))


@pytest.mark.slow
@given(FEATURES, st.booleans())
def test_examples_are_read_as_google_s_library_writes_them(features, packed):
    read = parse_example(kit.example(features, packed))
    assert set(read) == set(features)
    for name, (kind, values) in features.items():
        if kind == "bytes_list":
            assert read[name] == values
        else:
            expected = np.array(values, dtype=np.float32 if kind == "float_list" else np.int64)
            assert read[name].dtype == expected.dtype
            np.testing.assert_array_equal(read[name], expected)


def test_messages_that_come_in_parts_are_merged():
    a, b = kit.example({"a": ("int64_list", [1])}), kit.example({"b": ("float_list", [2.0])})
    assert {name: values.tolist() for name, values in parse_example(a + b).items()} == {"a": [1], "b": [2.0]}


def test_a_feature_without_a_list_is_left_out_and_one_with_two_is_refused():
    made = kit.SCHEMAS[True]("Example")()
    made.features.feature.add(key="none").value.SetInParent()
    assert parse_example(made.SerializeToString()) == {}
    both = made.features.feature.add(key="both").value
    both.float_list.value.append(1)
    both.int64_list.value.append(1)
    with pytest.raises(AssayError, match="'both' is float_list and int64_list at once"):
        parse_example(made.SerializeToString())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    for parse in (parse_example, parse_tensor):
        with suppress(AssayError):
            parse(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05\x01", "ends within its field 1"),
        (b"\x0a", "ends within a number"),
        (b"\xff" * 11, "ends within a number"),
        (b"\x0b", "wire type 3"),
    ],
)
def test_what_is_no_message_is_refused(data, message):
    with pytest.raises(AssayError, match=message):
        parse_example(data)


@given(
    arrays.arrays(
        st.sampled_from([np.dtype(name) for name in kit.DTYPES]),
        arrays.array_shapes(min_dims=0, min_side=0, max_side=4),
    )
)
def test_tensors_are_read_as_google_s_library_writes_them(array):
    read = parse_tensor(kit.tensor(array))
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read, array)


def test_tensors_of_other_types_or_without_content_are_refused():
    made = kit.SCHEMAS[True]("TensorProto")(dtype=7, tensor_content=b"word")
    with pytest.raises(AssayError, match="type number 7"):
        parse_tensor(made.SerializeToString())
    made = kit.SCHEMAS[True]("TensorProto")(dtype=1, tensor_content=b"1234")
    made.tensor_shape.dim.add(size=2)
    with pytest.raises(AssayError, match="tensor 2 of float32 has 4 bytes"):
        parse_tensor(made.SerializeToString())
    made = kit.SCHEMAS[True]("TensorProto")(dtype=1)
    made.tensor_shape.dim.add(size=0)
    made.tensor_shape.dim.add(size=-1)
    with pytest.raises(AssayError, match="a tensor has the shape"):
        parse_tensor(made.SerializeToString())


def test_real_shards_are_whole(shared_data):
    data = shared_data / "pgdl" / "toy_task" / "toy_data" / "dataset_1"
    counts = {s: [len(list(read_records(p))) for p in sorted((data / s).iterdir())] for s in ("train", "test")}
    assert counts == {"train": [67, 67, 66], "test": [34, 33, 33]}
