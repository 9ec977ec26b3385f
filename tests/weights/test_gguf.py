"""bitnet.cpp's I2_S tensors in GGUF files, written byte by byte."""

import struct

import numpy as np
import pytest

from bdforge.models.weights import ARRAY_VALUE, QuantisedRows, WeightError, floats, metadata, names, read, tensors
from support.differences import same
from support.weight_files import (
    TERNARY_BLOCKS,
    gguf_entry,
    gguf_file,
    gguf_string,
    i2s_bytes,
    i2s_entries,
    ternary,
    write_gguf_i2s,
)

NAME = "blk.0.ffn_gate.weight"
F32, I2_S = 0, 36


def by_hand(w, scale, version=3):
    """The file with one tensor, every byte from the layout's description."""
    depth, columns = w.shape
    head = b"GGUF" + struct.pack("<IQQ", version, 1, 1)
    head += struct.pack("<Q", 5) + b"a.key" + struct.pack("<I", 4) + struct.pack("<I", 7)
    head += struct.pack("<Q", len(NAME)) + NAME.encode() + struct.pack("<IQQIQ", 2, depth, columns, 36, 0)
    head += b"\0" * (-len(head) % 32)
    content = bytearray(depth * columns // 4)
    for row in range(columns):
        for element in range(depth):
            block, inside = divmod(element, 128)
            bit = 6 - 2 * (inside // 32)
            content[row * depth // 4 + block * 32 + inside % 32] |= (int(w[element, row]) + 1) << bit
    return head + bytes(content) + struct.pack("<f", scale) + bytes(28)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.gguf"


def write(file, entries, **options):
    file.write_bytes(gguf_file(entries, **options))
    return file


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("depth", "columns"), [(128, 1), (384, 5)])
def test_a_file_written_byte_by_byte_reads_back(file, depth, columns, version):
    w = ternary(1, depth, columns)
    file.write_bytes(by_hand(w, 0.75, version))
    matrix = read(file, [NAME])
    same(matrix.weights, w, strict=True)
    assert matrix.weights.flags.c_contiguous
    assert (matrix.name, matrix.scales, matrix.columns) == (NAME, (0.75,), (columns,))


def test_matrices_are_listed_with_k_and_n(file):
    others = {"norm": (F32, (8,), bytes(32)), "flat": (I2_S, (128,), bytes(64))}
    write(file, others | i2s_entries({"b": (ternary(3, 256, 3), 1.0), "a": (ternary(4, 128, 2), 1.0)}))
    assert tensors(file) == [("b", (256, 3)), ("a", (128, 2))]


@pytest.mark.parametrize("alignment", [8, 32, 64, 4096])
def test_tensors_are_found_at_any_alignment(file, alignment):
    metadata = (gguf_entry("general.alignment", 4, struct.pack("<I", alignment)),)
    weights = {name: (ternary(seed, 128, 1 + seed), 1.0) for seed, name in enumerate("abc")}
    norm = {"norm": (F32, (3,), bytes(12))}
    write(file, norm | i2s_entries(weights), alignment=alignment, metadata=metadata)
    for name, (w, _) in weights.items():
        same(read(file, [name]).weights, w)


def test_padding_after_the_last_tensor_is_accepted(file):
    metadata = (gguf_entry("general.alignment", 4, struct.pack("<I", 128)),)
    w = ternary(5, 128, 2)
    content = gguf_file(i2s_entries({"w": (w, 1.0)}), alignment=128, metadata=metadata)
    file.write_bytes(content + bytes(-len(content) % 128))
    same(read(file, ["w"]).weights, w)


@pytest.mark.parametrize(
    ("kind", "dims", "content", "reason"),
    [
        (F32, (128, 2), bytes(1024), r"has type 0, expected 36 \(I2_S\)"),
        (I2_S, (128,), bytes(64), "has 1 dimensions, expected 2"),
        (I2_S, (128, 2, 1), bytes(96), "has 3 dimensions, expected 2"),
        (I2_S, (64, 4), bytes(96), "has K = 64, expected a multiple of 128"),
        (I2_S, (128, 2), bytes(64), "takes 64 bytes, expected 96 for 128 x 2"),
        (I2_S, (128, 2), bytes(128), "takes 128 bytes, expected 96"),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_tensors_that_do_not_fit_the_layout_are_refused(file, kind, dims, content, reason, last):
    entries = {"w": (kind, dims, content)} | ({} if last else {"after": (F32, (8,), bytes(32))})
    with pytest.raises(WeightError, match=f"tensor w {reason}"):
        read(write(file, entries), ["w"])
    assert tensors(file) == []


def test_code_3_is_named_by_row_and_column(file):
    content = bytearray(i2s_bytes(ternary(7, 256, 3), 1.0))
    content[2 * 64 + 32 + 5] |= 3 << 2  # row 2, block 1, byte 5, field 2: element 128 + 64 + 5
    with pytest.raises(WeightError, match=r"tensor w: code 3 at row 197, column 2 \(of K x N\)"):
        read(write(file, {"w": (I2_S, (256, 3), bytes(content))}), ["w"])


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_a_scale_that_is_not_finite_is_refused(file, scale):
    write_gguf_i2s(file, {"w": (ternary(8, 128, 2), scale)})
    with pytest.raises(WeightError, match=f"the scale of tensor w is {scale}"):
        read(file, ["w"])


def test_a_file_cut_anywhere_is_refused(file):
    whole = by_hand(ternary(9, 128, 3), 1.0)
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(WeightError, match=r"model\.gguf: "):
            read(file, [NAME])


@pytest.mark.parametrize(
    ("cut", "reason"), [(33, "tensor last of 256 elements needs 64"), (96, "tensor last begins at")]
)
def test_a_file_cut_off_is_refused_for_its_whole_tensors_too(file, cut, reason):
    whole = gguf_file(i2s_entries({"first": (ternary(10, 128, 2), 1.0), "last": (ternary(11, 128, 2), 1.0)}))
    file.write_bytes(whole[:-cut])
    with pytest.raises(WeightError, match=f"{reason}.*the file is cut off"):
        read(file, ["first"])


@pytest.mark.parametrize("kind", [F32, 1, 30, I2_S])
@pytest.mark.parametrize("dims", [(128, 1 << 62), ((1 << 64) - 128, (1 << 64) - 1)])
def test_absurd_dimensions_are_refused(file, kind, dims):
    write(file, {"w": (kind, dims, bytes(64))})
    for call in (tensors, lambda file: read(file, ["w"])):
        with pytest.raises(WeightError, match=r"tensor w of .* elements needs .* bytes, it has 64"):
            call(file)


@pytest.mark.parametrize("kind", TERNARY_BLOCKS)
@pytest.mark.parametrize(("depth", "columns"), [(256, 1), (768, 3)])
def test_ternary_blocks_read_back(file, kind, depth, columns):
    w = ternary(kind, depth, columns)
    w[:256, 0] = 0  # a block without a scale
    write(file, {NAME: (kind, (depth, columns), TERNARY_BLOCKS[kind](w, 0.25))})
    matrix = read(file, [NAME])
    same(matrix.weights, w, strict=True)
    assert matrix.scales == ((0.25,) if w.any() else (0.0,))
    assert tensors(file) == [(NAME, (depth, columns))]


@pytest.mark.parametrize("kind", TERNARY_BLOCKS)
def test_blocks_of_unequal_scales_are_no_bitnet(file, kind):
    one, other = (TERNARY_BLOCKS[kind](np.ones((256, 1), np.int8), scale) for scale in (0.25, 0.5))
    write(file, {NAME: (kind, (512, 1), one + other)})
    with pytest.raises(WeightError, match=r"its blocks have 2 scales, from 0\.25 to 0\.5"):
        read(file, [NAME])


@pytest.mark.parametrize("kind", TERNARY_BLOCKS)
def test_ternary_blocks_must_fit_their_tensor(file, kind):
    content = TERNARY_BLOCKS[kind](ternary(1, 256, 2), 1.0)
    write(file, {NAME: (kind, (256, 2), content[:-1])})
    with pytest.raises(WeightError, match=f"takes {len(content) - 1} bytes, expected {len(content)}"):
        read(file, [NAME])
    write(file, {NAME: (kind, (128, 4), content)})
    with pytest.raises(WeightError, match="has K = 128, expected a multiple of 256"):
        read(file, [NAME])


def test_floats_and_metadata_are_read(file):
    entries = {
        "single": (0, (3, 2), np.arange(6, dtype="<f4").tobytes()),
        "half": (1, (2,), np.array([1.5, -2], "<f2").tobytes()),
        "brain": (30, (1, 2), b"\x80\x3f\x00\x40"),
        "codes": (24, (4,), bytes(4)),
    }
    kept = (gguf_entry("a.count", 4, struct.pack("<I", 7)), gguf_entry("a.rate", 6, struct.pack("<f", 0.5)))
    words = (gguf_entry("a.name", 8, gguf_string("tiny")), gguf_entry("a.list", 9, struct.pack("<IQI", 4, 1, 9)))
    write(file, entries, metadata=(*kept, *words))
    assert metadata(file) == {"a.count": 7, "a.rate": 0.5, "a.name": "tiny", "a.list": ARRAY_VALUE}
    assert names(file) == list(entries)
    for name, wanted in {"single": [[0, 1, 2], [3, 4, 5]], "half": [1.5, -2], "brain": [[1], [2]]}.items():
        found = floats(file, name)
        assert isinstance(found, np.ndarray)
        same(found.astype(np.float64), wanted)
    assert floats(file, "nothing") is None
    with pytest.raises(WeightError, match="tensor codes has type 24, expected F32, F16, BF16 or a matrix"):
        floats(file, "codes")


def test_a_matrix_of_q8_0_is_read_by_rows(file):
    """Two rows of two blocks: d, then 32 codes. Other shapes, and a file that is cut off, are refused."""
    codes = np.arange(-64, 64, dtype=np.int8).reshape(4, 32)
    content = b"".join(
        np.array(d, "<f2").tobytes() + row.tobytes() for d, row in zip((1, 0.5, -2, 0), codes, strict=True)
    )
    write(file, {"q": (8, (64, 2), content), "vector": (8, (64,), content[:68]), "odd": (8, (16, 2), content[:68])})
    found = floats(file, "q")
    assert isinstance(found, QuantisedRows)
    assert (found.shape, found.size, found.nbytes, len(found)) == ((2, 64), 128, 136, 2)
    wanted = (codes.astype(np.float64) * [[1], [0.5], [-2], [0]]).reshape(2, 64)
    same(found[np.array([1, 0, 1])], wanted[[1, 0, 1]])
    same(found[1:2], wanted[1:])
    for name in ("vector", "odd"):
        with pytest.raises(WeightError, match=f"tensor {name} has type 8, expected F32, F16, BF16 or a matrix of Q8_0"):
            floats(file, name)
    write(file, {"q": (8, (64, 3), content)})
    with pytest.raises(WeightError, match="tensor q of 192 elements needs 204 bytes"):
        floats(file, "q")
