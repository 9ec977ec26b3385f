"""Damaged and hostile GGUF headers."""

import struct
from pathlib import Path

import pytest

from bdforge.models.weights import WeightError, gguf_header
from bdforge.models.weights.gguf_header import read_header
from support.weight_files import gguf_entry, gguf_file, gguf_string

F32 = 0
HUGE = (1 << 64) - 1
TENSOR = {"w": (F32, (8,), bytes(32))}
UNKNOWN = (13, 99, HUGE >> 32)
"""Types of values that there are none of."""


def refused(content, reason):
    with pytest.raises(WeightError, match=reason) as caught:
        read_header(Path("model.gguf"), content)
    assert str(caught.value).startswith("model.gguf: ")


def head(version=3, tensors=0, entries=0):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def test_positions_count_from_the_beginning_of_the_file():
    header = read_header(Path("model.gguf"), gguf_file({"a": (F32, (1,), b"abcd"), "b": (F32, (2, 1), b"efghijkl")}))
    a, b = header.tensors["a"], header.tensors["b"]
    assert (a.dims, b.dims, header.alignment) == ((1,), (2, 1), 32)
    assert (a.end - a.start, b.end - b.start) == (32, 8)
    content = gguf_file({"a": (F32, (1,), b"abcd"), "b": (F32, (2, 1), b"efghijkl")})
    assert content[a.start : a.start + 4] + content[b.start : b.end] == b"abcdefghijkl"


def entry(kind: int, value: bytes, key: str = "k") -> bytes:
    return gguf_string(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, values: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + values


def first(entry: bytes) -> bytes:
    """A file that ends with its only entry of metadata."""
    return head(entries=1) + entry


def tensor(*info: int, behind: bytes = bytes(100)) -> bytes:
    """A file whose tensor w has this rank, and then dimensions, type and offset."""
    rank, *more = info
    return head(tensors=1) + gguf_string("w") + struct.pack(f"<I{'QIQ' if more else ''}", rank, *more) + behind


def aligned(kind: int, value: bytes) -> bytes:
    return gguf_file(TENSOR, metadata=(gguf_entry("general.alignment", kind, value),))


TWO = gguf_file(TENSOR | {"v": (F32, (8,), bytes(32))})
REFUSED = {
    **{f"version {version}": (head(version), f"version {version} is not read, expected 2 or 3")
       for version in (0, 1, 4, 77)},
    "big endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian GGUF is not read"),
    "a key of no end": (first(struct.pack("<Q", HUGE) + bytes(20)), f"a metadata key has {HUGE} bytes, expected 1 to"),
    "no key": (first(bytes(40)), "a metadata key has 0 bytes"),
    "a long key": (first(entry(7, b"\x01", "k" * 65536)), "a metadata key has 65536 bytes, expected 1 to 65535"),
    "a long name": (head(tensors=1) + struct.pack("<Q", 257) + bytes(400),
                    "a tensor's name has 257 bytes, expected 1 to 256"),
    **{f"a value of type {kind}": (first(entry(kind, bytes(8))), f"value type {kind} is unknown") for kind in UNKNOWN},
    **{f"an array of type {kind}": (first(entry(9, array(kind, 1))), f"value type {kind} is unknown")
       for kind in UNKNOWN},
    **{f"rank {rank}": (tensor(rank), f"tensor w has {rank} dimensions") for rank in (0, 5, 1 << 31)},
    "an empty dimension": (gguf_file({"w": (F32, (8, 0), bytes(32))}),
                           r"tensor w has dimensions \(8, 0\), expected at least 1"),
    "one name twice": (TWO.replace(gguf_string("v"), gguf_string("w")), "two tensors are called w"),
    "alignment 0": (aligned(4, struct.pack("<I", 0)), "general.alignment is 0, expected a power of two"),
    "alignment 24": (aligned(4, struct.pack("<I", 24)), "general.alignment is 24, expected a power of two"),
    "a wide alignment": (aligned(10, struct.pack("<Q", 32)), "general.alignment has value type 10, expected 4"),
    "alignment beyond the file": (aligned(4, struct.pack("<I", 1 << 31)),
                                  f"tensor w begins at byte {1 << 31}, the file has"),
    "offset 4": (tensor(1, 8, F32, 4), "tensor w has offset 4, no multiple of 32"),
    "an offset beyond the file": (tensor(1, 8, F32, 1 << 63), "tensor w begins at byte"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_headers_that_are_none_are_refused(name: str):
    refused(*REFUSED[name])


@pytest.mark.parametrize("count", [1, 1 << 20, 1 << 40, HUGE])
def test_absurd_counts_are_refused_before_anything_is_allocated(count):
    refused(head(tensors=count), f"{count} tensors needs {count * 33} bytes, 8 are left; the file is cut off")
    refused(head(entries=count), f"{count} metadata entries needs {count * 14} bytes, 0 are left")
    refused(first(entry(8, struct.pack("<Q", count))), "a string needs")
    for kind in (0, 4, 8, 9, 12):
        refused(first(entry(9, array(kind, count))), f"{count} array elements needs")


def test_names_that_are_no_utf8_are_readable_in_messages():
    content = gguf_file(TENSOR).replace(b"w", b"\xff")
    assert list(read_header(Path("model.gguf"), content).tensors) == ["\\xff"]


def test_a_header_over_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(gguf_header, "HEADER_BYTES_MAX", 60)
    metadata = (gguf_entry("text", 8, gguf_string("x" * 40)),)
    refused(gguf_file(TENSOR, metadata=metadata), "a string needs 40 bytes, headers over 60 bytes are not read")


def test_a_large_vocabulary_is_skipped():
    count = 128_256  # Llama 3's, which BitNet-b1.58-2B-4T uses
    vocabulary = struct.pack("<IQ", 8, count) + gguf_string("token") * count
    content = gguf_file(TENSOR, metadata=(gguf_entry("tokenizer.ggml.tokens", 9, vocabulary),))
    header = read_header(Path("model.gguf"), content)
    assert header.tensors["w"].end == len(content)


SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes by value type (ggml's gguf.h)


def metadata(kind: int, value: bytes) -> bytes:
    """A header whose one entry, with the shortest key, stands before a tensor of four bytes."""
    tensor = gguf_string("w") + struct.pack("<IQIQ", 1, 1, F32, 0)
    content = head(tensors=1, entries=1) + gguf_string("k") + struct.pack("<I", kind) + value + tensor
    return content + bytes(-len(content) % 32) + b"abcd"


@pytest.mark.parametrize("kind", SCALARS)
def test_values_of_every_type_are_skipped_by_their_size(kind):
    for value in (bytes(SCALARS[kind]), struct.pack("<IQ", kind, 3) + bytes(3 * SCALARS[kind])):
        content = metadata(kind if len(value) <= 8 else 9, value)
        tensor = read_header(Path("model.gguf"), content).tensors["w"]
        assert content[tensor.start : tensor.end] == b"abcd"


def test_arrays_may_be_nested_eight_deep():
    nested = struct.pack("<IQ", 9, 1) * 7 + struct.pack("<IQ", 0, 2) + b"ab"
    assert list(read_header(Path("model.gguf"), metadata(9, nested)).tensors) == ["w"]
    refused(metadata(9, struct.pack("<IQ", 9, 1) + nested), "arrays are nested deeper than 8")


def test_a_header_that_is_cut_off_anywhere_is_refused():
    content = metadata(9, struct.pack("<IQ", 8, 2) + gguf_string("one") + gguf_string("two"))
    read_header(Path("model.gguf"), content)
    for size in range(4, len(content) - 4):
        with pytest.raises(WeightError, match="cut off"):
            read_header(Path("model.gguf"), content[:size])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (entry(0, b"\x07"), {"k": 7}),
        (entry(8, struct.pack("<Q", 0)), {"k": ""}),
        (entry(9, array(0, 3, b"abc")), {"k": ()}),
        (entry(9, array(8, 2, struct.pack("<QQ", 0, 0))), {"k": ()}),
        (entry(9, array(9, 2, array(0, 0) + array(12, 1, bytes(8)))), {"k": ()}),
        (entry(9, array(9, 1, array(8, 0))), {"k": ()}),
        (entry(7, b"\x01", "k" * 65535), {"k" * 65535: True}),
        (entry(8, gguf_string("x" * 65535)), {"k": "x" * 65535}),
        (entry(8, gguf_string("x" * 65536)), {}),
    ],
    ids=["the least", "no letter", "bytes", "empty strings", "arrays", "an empty array", "a key of 65535 bytes",
         "a text of 65535 bytes is kept", "a text of 65536 bytes is not"],
)  # fmt: skip
def test_values_may_be_as_short_as_the_format_allows_and_end_with_the_file(value: bytes, kept: dict):
    header = read_header(Path("model.gguf"), first(value))
    assert {key[:9]: header.metadata[key] for key in header.metadata} == {key[:9]: kept[key] for key in kept}
    assert list(map(len, header.metadata)) == list(map(len, kept))
    refused(first(value[:-1]), "left; the file is cut off")


@pytest.mark.parametrize("size", [1, 256])
def test_a_name_has_up_to_256_bytes(size: int):
    assert list(read_header(Path("model.gguf"), gguf_file({"w" * size: (F32, (1,), b"abcd")})).tensors) == ["w" * size]


def test_the_least_tensor_has_a_letter_and_a_dimension():
    """33 bytes; its data begin at the next multiple of 32."""
    least = tensor(1, 1, F32, 0, behind=b"")
    whole = least.ljust(64, b"\0") + b"abcd"
    (found,) = read_header(Path("model.gguf"), whole).tensors.values()
    assert (found.start, found.end, len(least) - len(head())) == (64, 68, 33)
    refused(whole[:-1], "tensor w of 1 elements needs 4 bytes, it has 3")


WIDTHS = {"F32": (0, 32), "F16": (1, 16), "BF16": (30, 16), "I2_S": (36, 2), "unknown": (99, 0)}
"""Number of a type (ggml.h), and least bits of an element."""


@pytest.mark.parametrize("name", WIDTHS)
def test_a_tensor_has_the_bytes_of_its_elements(name: str):
    """16 elements, whole; of a type that is not known, one byte is enough."""
    kind, bits = WIDTHS[name]
    least = max(1, 16 * bits // 8)
    header = read_header(Path("model.gguf"), gguf_file({"w": (kind, (16,), bytes(least))}))
    assert header.tensors["w"].end - header.tensors["w"].start == least
    reason = f"tensor w of 16 elements needs {least} bytes, it has {least - 1}" if bits else "tensor w begins at byte"
    refused(gguf_file({"w": (kind, (16,), bytes(least))})[:-1], reason)
