"""Limits of weight files, with headers put together by hand."""

import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from limit_table import Limit, Place

from bdforge.models.weights import WeightError
from bdforge.models.weights.gguf_header import read_header
from bdforge.models.weights.huggingface import recognised
from bdforge.models.weights.matrix import WeightFile
from support.weight_files import gguf_string

F32, UINT8, STRING, ARRAY = 0, 0, 8, 9
WHERE = Path("model.gguf")


def _header(
    entries: bytes = b"", tensors: bytes = b"", *, count: int | None = None, tensor_count: int | None = None
) -> bytes:
    entry_count = bool(entries) if count is None else count
    return (
        b"GGUF"
        + struct.pack("<IQQ", 3, bool(tensors) if tensor_count is None else tensor_count, entry_count)
        + entries
        + tensors
    )


def _tensor(name: str = "w", rank: int = 1, type_: int = F32, elements: int = 1) -> bytes:
    dims = struct.pack(f"<{rank}Q", *[1] * (rank - 1), elements)
    return gguf_string(name) + struct.pack("<I", rank) + dims + struct.pack("<IQ", type_, 0)


def _with_data(header: bytes, size: int = 64) -> None:
    read_header(WHERE, header + bytes(-len(header) % 32) + bytes(size))


def _nested(depth: int) -> None:
    arrays = struct.pack("<IQ", ARRAY, 1) * (depth - 1) + struct.pack("<IQB", UINT8, 1, 0)
    read_header(WHERE, _header(gguf_string("k") + struct.pack("<I", ARRAY) + arrays))


def _long_header(size: int) -> None:
    """A header of `size` bytes, the most of them in one string."""
    head = _header(gguf_string("k") + struct.pack("<I", STRING), count=1)
    read_header(WHERE, head + struct.pack("<Q", size - len(head) - 8) + bytes(size - len(head) - 8) + bytes(9))


def _kept_text(size: int) -> None:
    """A string of metadata; longer ones are passed over."""
    text = gguf_string("k") + struct.pack("<I", STRING) + gguf_string("a" * size)
    if "k" not in read_header(WHERE, _header(text)).metadata:
        raise WeightError("not kept")


def _tensors_in(size: int) -> None:
    """One tensor announced, of which so many bytes are missing that `size - 1` of the least 33 are left, or none."""
    read_header(WHERE, _header(tensor_count=1) + bytes(8 + 33 - size)[8:])


def _safetensors(size: int) -> None:
    if not recognised(struct.pack("<Q", size) + b"{"):
        raise WeightError("not recognised")


def _names(count: int) -> None:
    """The nearest name is the last of `count`."""
    names = [*(f"{i:05}" for i in range(count - 1)), "blk.7x"]
    file = SimpleNamespace(path=WHERE, tensors=lambda: dict.fromkeys(names, (32, 32)))
    if "blk.7x" not in (text := str(WeightFile._missing(cast(Any, file), "blk.7"))):
        raise WeightError(text)


def file_limits() -> Iterator[Limit]:
    """Limits of GGUF and safetensors files."""
    gguf = "models.weights.gguf_header."
    text = lambda n: "a" * n  # noqa: E731
    for name, number, case, words in (
        ("RANK_MAX", 4, lambda n: _with_data(_header(tensors=_tensor(rank=n))), "expected 1 to 4"),
        ("NAME_BYTES_MAX", 256, lambda n: _with_data(_header(tensors=_tensor(text(n)))), "expected 1 to 256"),
        (
            "KEY_BYTES_MAX", 65535,
            lambda n: read_header(WHERE, _header(gguf_string(text(n)) + struct.pack("<IB", UINT8, 0))), "1 to 65535",
        ),
        ("VALUE_TEXT_BYTES_MAX", 65535, _kept_text, "not kept"),
        ("ARRAY_DEPTH_MAX", 8, _nested, "nested deeper than 8"),
        ("HEADER_BYTES_MAX", 67108864, _long_header, "headers over 67108864 bytes are not read"),
    ):  # fmt: skip
        yield Limit(gguf + name, number, Place(case, words, WeightError))
    yield Limit(
        "models.weights.huggingface.HEADER_BYTES_MAX", 100000000, Place(_safetensors, "not recognised", WeightError)
    )
    yield Limit("models.weights.matrix.NAMES_COMPARED_MAX", 4096, Place(_names, "nearest of its 4097", WeightError))
