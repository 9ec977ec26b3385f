"""BitNet's packed safetensors, written byte by byte."""

import json
import struct

import numpy as np
import pytest

from bdforge.models.weights import WeightError, floats, metadata, read, tensors
from bdforge.models.weights.huggingface import HEADER_BYTES_MAX, recognised
from support.differences import same
from support.weight_files import (
    bf16_bytes,
    bitnet_bytes,
    bitnet_entries,
    safetensors_file,
    ternary,
    write_safetensors_bitnet,
)

NAME = "model.layers.0.mlp.gate_proj.weight"


def by_hand(w, scale):
    """The file with one tensor, every byte from the layout's description."""
    depth, columns = w.shape
    content = bytearray()
    for i in range(columns // 4):
        for k in range(depth):
            codes = [int(w[k, i + part * columns // 4]) + 1 for part in range(4)]
            content.append(codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6)
    size = len(content)
    header = {
        "__metadata__": {"format": "pt"},
        NAME: {"dtype": "U8", "shape": [columns // 4, depth], "data_offsets": [0, size]},
        f"{NAME}_scale": {"dtype": "BF16", "shape": [1], "data_offsets": [size, size + 2]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(content) + struct.pack("<f", scale)[2:]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.safetensors"


def write(file, entries):
    file.write_bytes(safetensors_file(entries))
    return file


@pytest.mark.parametrize(("depth", "columns"), [(1, 4), (5, 12), (24, 8)])
def test_a_file_written_byte_by_byte_reads_back(file, depth, columns):
    w = ternary(1, depth, columns)
    file.write_bytes(by_hand(w, 1.5))
    matrix = read(file, [NAME])
    same(matrix.weights, w, strict=True)
    assert matrix.weights.flags.c_contiguous
    assert (matrix.name, matrix.scales, matrix.columns) == (NAME, (1.5,), (columns,))


@pytest.mark.parametrize(("dtype", "scale", "shape"), [("BF16", -0.09375, []), ("F32", 1 / 3, []), ("F32", 7e-9, [1])])
def test_scales_are_floats(file, dtype, scale, shape):
    entries = bitnet_entries({"w": (ternary(3, 3, 8), scale)}, dtype)
    _, _, content = entries["w_scale"]
    write(file, entries | {"w_scale": (dtype, shape, content)})
    assert read(file, ["w"]).scales == (pytest.approx(scale, rel=1e-7),)
    half = np.array([scale], "<f2")
    write(file, entries | {"w_scale": ("F16", [1], half.tobytes())})
    assert read(file, ["w"]).scales == (float(half[0]),)


def test_without_a_scale_it_is_one(file):
    write_safetensors_bitnet(file, {"w": (ternary(4, 3, 8), None)})
    assert read(file, ["w"]).scales == (1.0,)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (("I16", [1], b"\0\0"), "I16 of shape .1., expected one of F32, F16, BF16"),
        (("F16", [1, 1], b"\0\0"), "F16 of shape .1, 1., expected one"),
        (("F32", [2], bytes(8)), "F32 of shape .2., expected one"),
        (("F32", [1], struct.pack("<f", np.nan)), "is nan, expected a finite number"),
        (("BF16", [1], bf16_bytes(np.inf)), "is inf, expected a finite number"),
    ],
)
def test_other_scales_are_refused(file, entry, reason):
    write(file, bitnet_entries({"w": (ternary(5, 3, 8), None)}) | {"w_scale": entry})
    with pytest.raises(WeightError, match=f"scale w_scale .*{reason}"):
        read(file, ["w"])


def test_only_uint8_matrices_are_listed(file):
    others = {"norm": ("F32", [2], bytes(8)), "flags": ("U8", [4], bytes(4)), "empty": ("U8", [0, 4], b"")}
    write(file, bitnet_entries({"b": (ternary(6, 3, 8), 1.0), "a": (ternary(7, 5, 4), 1.0)}) | others)
    assert sorted(tensors(file)) == [("a", (5, 4)), ("b", (3, 8))]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (("F32", [2, 3], bytes(24)), "F32 of shape .2, 3., expected packed ternary weights, U8"),
        (("BF16", [2, 3], bytes(12)), "BF16 of shape"),
        (("I8", [2, 3], bytes(6)), "I8 of shape"),
        (("U8", [6], bytes(6)), "U8 of shape .6., expected"),
        (("U8", [2, 3, 1], bytes(6)), "U8 of shape .2, 3, 1., expected"),
        (("U8", [2, 0], b""), "U8 of shape .2, 0., expected"),
    ],
)
def test_tensors_of_another_kind_are_refused(file, entry, reason):
    with pytest.raises(WeightError, match=f"tensor w is {reason}"):
        read(write(file, {"w": entry}), ["w"])


def test_code_3_is_named_by_row_and_column(file):
    content = bytearray(bitnet_bytes(ternary(8, 5, 12)))
    content[2 * 5 + 4] |= 3 << 4  # byte [i, k] = [2, 4], field 2
    with pytest.raises(WeightError, match=r"tensor w: code 3 at row 4, column 8 \(of K x N\)"):
        read(write(file, {"w": ("U8", [3, 5], bytes(content))}), ["w"])


def test_a_file_cut_anywhere_is_refused(file):
    whole = by_hand(ternary(9, 5, 8), 1.0)
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(WeightError, match=r"model\.safetensors: "):
            read(file, [NAME])


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"dtype": "U8", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 4]}},
        {"w": {"dtype": "U8", "shape": [2, 2], "data_offsets": [0, 1 << 63]}},
        {"w": {"dtype": "U8", "shape": [2, 2], "data_offsets": [4, 0]}},
        {"w": {"dtype": "U8", "shape": [2, 3], "data_offsets": [0, 4]}},
        {"w": {"dtype": "U2", "shape": [2, 2], "data_offsets": [0, 4]}},
        {"w": []},
        {"w": {"dtype": "U8"}},
    ],
)
def test_headers_that_contradict_themselves_are_refused(file, header):
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    with pytest.raises(WeightError, match="no intact safetensors file"):
        read(file, ["w"])


def test_floats_are_mapped_in_their_own_type(tmp_path):
    entries = {
        "brain": ("BF16", [2, 1], b"\x80\x3f\x00\x40"),
        "half": ("F16", [2], np.array([1.5, -2], "<f2").tobytes()),
        "single": ("F32", [1, 3], np.arange(3, dtype="<f4").tobytes()),
        "codes": ("U8", [4], bytes(4)),
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file(entries))
    for name, wanted in {"single": [[0, 1, 2]], "half": [1.5, -2], "brain": [[1], [2]]}.items():
        found = floats(path, name)
        assert isinstance(found, np.memmap)
        same(found.astype(np.float64), wanted)
    assert floats(path, "nothing") is None
    assert metadata(path) is None
    with pytest.raises(WeightError, match="tensor codes is U8, expected F32, F16, BF16"):
        floats(path, "codes")


@pytest.mark.parametrize(
    ("length", "after", "known"),
    [(HEADER_BYTES_MAX, b"{", True), (HEADER_BYTES_MAX + 1, b"{", False), (2, b"[", False), (2, b"", False)],
)
def test_safetensors_begin_with_a_length_and_an_object(length: int, after: bytes, known: bool):
    assert recognised(struct.pack("<Q", length) + after) is known
