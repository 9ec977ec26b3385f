"""The header of a GGUF file: which tensors it holds, and where.

PyPI's `gguf` package refuses tensor types it does not know, bitnet.cpp's type 36 among them; hence this reader.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little endian. Of metadata
numbers and strings are kept, of arrays only that they are there. Every length is compared with what is left of the
file before it is used.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from mmap import mmap
from pathlib import Path
from typing import Any

from bdforge.models.weights.matrix import WeightError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_DEFAULT = 32  # bytes
ALIGNMENT_KEY = "general.alignment"
UINT32, STRING, ARRAY = 4, 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", UINT32: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of metadata in `struct`'s notation."""
SCALAR_BYTES = {kind: struct.calcsize(form) for kind, form in SCALARS.items()}
VALUE_BYTES_MIN = SCALAR_BYTES | {STRING: 8, ARRAY: 12}
ENTRY_BYTES_MIN = 8 + 1 + 4 + 1  # key length, key, value type, value
TENSOR_BYTES_MIN = 8 + 1 + 4 + 8 + 4 + 8  # name length, name, rank, one dimension, type, offset
RANK_MAX = 4  # ggml's GGML_MAX_DIMS
KEY_BYTES_MAX = 65535
NAME_BYTES_MAX = 256  # ggml allows 64, some of its forks more
BITS_MIN = {0: 32, 1: 16, 8: 8.5, 30: 16, 36: 2}
"""Of an element of F32, F16, Q8_0, BF16, I2_S (ggml.h); the others go unchecked."""
VALUE_TEXT_BYTES_MAX = 65535  # of a string that is kept; chat templates of real models take some KiB
HEADER_BYTES_MAX = 64 << 20  # vocabularies of real models take about 10 MiB; keeps damaged files from taking minutes
ARRAY_DEPTH_MAX = 8


ARRAY_VALUE = ()
"""What metadata say of an array, whose elements are not kept."""
Value = bool | int | float | str | tuple[()]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor: `dims` fastest first, in elements; `start` counts bytes from the file's beginning, and so does `end`,
    the start of the next tensor or the file's end, so that padding is included."""

    name: str
    type: int
    dims: tuple[int, ...]
    start: int
    end: int

    @property
    def elements(self) -> int:
        """How many elements the tensor has."""
        return prod(self.dims)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file holds: tensors by name, their starts being multiples of `alignment` bytes, and metadata.

    `metadata` has the entries that are one number or a string of at most 64 KiB, by key, and ARRAY_VALUE for arrays.
    """

    alignment: int
    tensors: dict[str, TensorInfo]
    metadata: Mapping[str, Value]


class Cursor:
    """Reads values one after another and refuses to leave the file."""

    def __init__(self, path: Path, data: mmap | bytes):
        self.path, self.data, self.position = path, data, 0
        self.limit = min(len(data), HEADER_BYTES_MAX)

    def error(self, fault: str) -> WeightError:
        return WeightError(f"{self.path}: GGUF header at byte {self.position}: {fault}; get the file again")

    def need(self, count: int, what: str) -> None:
        """Raise unless `count` more bytes are there."""
        if count <= self.limit - self.position:
            return
        if self.limit < len(self.data):
            raise self.error(f"{what} needs {count} bytes, headers over {self.limit} bytes are not read")
        raise self.error(f"{what} needs {count} bytes, {self.limit - self.position} are left; the file is cut off")

    def take(self, count: int, what: str) -> int:
        """Pass so many bytes; where they begin."""
        self.need(count, what)
        self.position += count
        return self.position - count

    def number(self, form: str, what: str) -> Any:
        """One little-endian number in `struct`'s notation."""
        (value,) = struct.unpack_from(f"<{form}", self.data, self.take(struct.calcsize(form), what))
        return value

    def text(self, limit_bytes: int, what: str) -> str:
        """A string of 1 to `limit_bytes` bytes, as far as it is UTF-8."""
        size = self.number("Q", f"the length of {what}")
        if not 1 <= size <= limit_bytes:
            raise self.error(f"{what} has {size} bytes, expected 1 to {limit_bytes}")
        return self.letters(size, what)

    def letters(self, size: int, what: str) -> str:
        """So many bytes of a string."""
        start = self.take(size, what)
        return self.data[start : start + size].decode(errors="backslashreplace")

    def count(self, element_bytes: int, what: str) -> int:
        """A number of things that take at least `element_bytes` each."""
        count = self.number("Q", f"the number of {what}")
        self.need(count * element_bytes, f"{count} {what}")
        return count


def read_header(path: Path, data: mmap | bytes) -> GgufHeader:
    """The header of the GGUF file whose content is `data`; `path` is for messages.

    Raises `WeightError` for another version or byte order, a header that is cut off or damaged, and a tensor of known
    type that needs more room than it has.
    """
    cursor = Cursor(path, data)
    _read_version(cursor)
    tensor_count = cursor.count(TENSOR_BYTES_MIN, "tensors")
    metadata = _read_metadata(cursor)
    alignment = metadata.get(ALIGNMENT_KEY, ALIGNMENT_DEFAULT)
    assert isinstance(alignment, int)  # _read_alignment saw to it
    tensors = [_read_tensor(cursor) for _ in range(tensor_count)]
    return GgufHeader(alignment, _placed(cursor, tensors, alignment), metadata)


def _read_version(cursor: Cursor) -> None:
    cursor.take(len(MAGIC), "the magic")
    version = cursor.number("I", "the version")
    if version in VERSIONS:
        return
    if version and version % 0x10000 == 0:
        raise WeightError(f"{cursor.path}: big-endian GGUF is not read; convert the file to little endian")
    raise WeightError(f"{cursor.path}: GGUF version {version} is not read, expected 2 or 3; convert the file anew")


def _read_metadata(cursor: Cursor) -> dict[str, Value]:
    """All entries but long strings, which are skipped."""
    found: dict[str, Value] = {}
    for _ in range(cursor.count(ENTRY_BYTES_MIN, "metadata entries")):
        key = cursor.text(KEY_BYTES_MAX, "a metadata key")
        kind = cursor.number("I", "a value's type")
        value = _read_alignment(cursor, kind) if key == ALIGNMENT_KEY else _read_value(cursor, kind)
        if value is not None:
            found[key] = value
    return found


def _read_alignment(cursor: Cursor, kind: int) -> int:
    if kind != UINT32:
        raise cursor.error(f"general.alignment has value type {kind}, expected {UINT32} (uint32)")
    alignment = cursor.number("I", "general.alignment")
    if alignment.bit_count() != 1:
        raise cursor.error(f"general.alignment is {alignment}, expected a power of two")
    return alignment


def _read_value(cursor: Cursor, kind: int, depth: int = 0) -> Value | None:
    """A value as metadata keep it; None for a string that is too long to be worth it."""
    if kind in SCALARS:
        return cursor.number(SCALARS[kind], "a value")
    if kind == STRING:
        size = cursor.number("Q", "the length of a string")
        if size <= VALUE_TEXT_BYTES_MAX:
            return cursor.letters(size, "a string")
        cursor.take(size, "a string")
        return None
    if kind == ARRAY:
        _skip_array(cursor, depth)
        return ARRAY_VALUE
    raise cursor.error(f"value type {kind} is unknown, expected 0 to 12")


def _skip_array(cursor: Cursor, depth: int) -> None:
    if depth == ARRAY_DEPTH_MAX:
        raise cursor.error(f"arrays are nested deeper than {ARRAY_DEPTH_MAX}")
    kind = cursor.number("I", "an array's element type")
    if kind not in VALUE_BYTES_MIN:
        raise cursor.error(f"value type {kind} is unknown, expected 0 to 12")
    count = cursor.count(VALUE_BYTES_MIN[kind], "array elements")
    if kind in SCALAR_BYTES:
        cursor.take(count * SCALAR_BYTES[kind], "an array")
        return
    for _ in range(count):
        _read_value(cursor, kind, depth + 1)


def _read_tensor(cursor: Cursor) -> TensorInfo:
    """A tensor whose start still counts from the data's beginning and whose end is not known yet."""
    name = cursor.text(NAME_BYTES_MAX, "a tensor's name")
    rank = cursor.number("I", f"the rank of {name}")
    if not 1 <= rank <= RANK_MAX:
        raise cursor.error(f"tensor {name} has {rank} dimensions, expected 1 to {RANK_MAX}")
    dims = tuple(cursor.number("Q", f"a dimension of {name}") for _ in range(rank))
    if min(dims) < 1:
        raise cursor.error(f"tensor {name} has dimensions {dims}, expected at least 1 each")
    kind = cursor.number("I", f"the type of {name}")
    return TensorInfo(name, kind, dims, cursor.number("Q", f"the offset of {name}"), 0)


def _placed(cursor: Cursor, tensors: list[TensorInfo], alignment: int) -> dict[str, TensorInfo]:
    """The tensors by name, with start and end in the file."""
    file_bytes = len(cursor.data)
    data_start = round_up(cursor.position, alignment)
    ordered = sorted(tensors, key=lambda tensor: tensor.start)
    ends = [*(data_start + tensor.start for tensor in ordered[1:]), file_bytes][: len(ordered)]
    placed = {}
    for tensor, end in zip(ordered, ends, strict=True):
        start = data_start + tensor.start
        if tensor.name in placed:
            raise cursor.error(f"two tensors are called {tensor.name}")
        if tensor.start % alignment:
            raise cursor.error(f"tensor {tensor.name} has offset {tensor.start}, no multiple of {alignment}")
        if start >= file_bytes:
            raise cursor.error(
                f"tensor {tensor.name} begins at byte {start}, the file has {file_bytes}; the file is cut off"
            )
        least_bytes = int(tensor.elements * BITS_MIN.get(tensor.type, 0)) // 8
        if end - start < least_bytes:
            raise cursor.error(
                f"tensor {tensor.name} of {tensor.elements} elements needs {least_bytes} bytes, it has {end - start}; "
                "the file is cut off"
            )
        placed[tensor.name] = TensorInfo(tensor.name, tensor.type, tensor.dims, start, end)
    return placed


def round_up(size: int, multiple: int) -> int:
    """The least multiple that is not below `size`."""
    return -(-size // multiple) * multiple
