"""bitnet.cpp's GGUF tensors of type `I2_S`.

Such a tensor has dims (K, N): N rows of K elements. Of every 128 elements along K, byte j of 32 holds the codes w + 1
of elements j, j + 32, j + 64, j + 96 at bits 6, 4, 2, 0. After the K*N/4 bytes of codes comes a tail of 32 bytes that
begins with the float32 scale (microsoft/BitNet, `quantize_i2_s` in `src/ggml-bitnet-mad.cpp`). Type 36 was also given
to other layouts: a tensor whose size does not fit is refused, another order of codes in the same size cannot be told.

The file is mapped, and only the header and the tensors asked for are touched.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from bdforge.weights.codes import decode, refuse_invalid
from bdforge.weights.errors import WeightError, missing_tensor
from bdforge.weights.gguf_header import MAGIC, Header, TensorInfo, read_header, round_up
from bdforge.weights.matrix import TernaryMatrix

I2_S = 36
ELEMENTS_PER_BYTE = 4
BLOCK_ELEMENTS = 128
BLOCK_BYTES = BLOCK_ELEMENTS // ELEMENTS_PER_BYTE
TAIL_BYTES = 32


def recognised(beginning: bytes) -> bool:
    """Whether a file with these first bytes is GGUF."""
    return beginning.startswith(MAGIC)


def tensors(path: Path) -> list[tuple[str, tuple[int, int]]]:
    """Name and (K, N) of every I2_S matrix of the layout above."""
    with _mapped(path) as data:
        return [(name, _shape(info)) for name, info in _matrices(read_header(path, data)).items()]


def read(path: Path, names: Sequence[str]) -> list[TernaryMatrix]:
    """The tensors called `names`, transposed to K x N.

    Raises `WeightError` for a damaged or cut off file, a missing tensor, one of another type, shape or size, code 3,
    and a scale that is not finite.
    """
    with _mapped(path) as data:
        header = read_header(path, data)
        return [_read_one(path, data, header, name) for name in names]


@contextmanager
def _mapped(path: Path) -> Iterator[mmap]:
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield data
    except OSError as error:
        raise WeightError(f"{path}: cannot be read: {error.strerror}") from error


def _matrices(header: Header) -> dict[str, TensorInfo]:
    return {name: info for name, info in header.tensors.items() if not _problem(info, header.alignment)}


def _shape(info: TensorInfo) -> tuple[int, int]:
    depth, columns = info.dims
    return depth, columns


def _size_bytes(info: TensorInfo) -> int:
    return info.elements // ELEMENTS_PER_BYTE + TAIL_BYTES


def _problem(info: TensorInfo, alignment: int) -> str:
    """Why a tensor is not in the layout above; empty when it is."""
    if info.type != I2_S:
        return f"has type {info.type}, expected {I2_S} (I2_S)"
    if len(info.dims) != 2:
        return f"has {len(info.dims)} dimensions, expected 2 (K, N)"
    if info.dims[0] % BLOCK_ELEMENTS:
        return f"has K = {info.dims[0]}, expected a multiple of {BLOCK_ELEMENTS}"
    expected, room = _size_bytes(info), info.end - info.start
    if expected <= room <= round_up(expected, alignment):
        return ""
    depth, columns = info.dims
    return (
        f"takes {room} bytes, expected {expected} for {depth} x {columns} I2_S weights "
        f"({depth} * {columns} / {ELEMENTS_PER_BYTE} + {TAIL_BYTES}); the file is cut off or another I2_S layout"
    )


def _read_one(path: Path, data: mmap, header: Header, name: str) -> TernaryMatrix:
    info = header.tensors.get(name)
    if info is None:
        raise missing_tensor(path, name, list(_matrices(header)))
    if problem := _problem(info, header.alignment):
        raise WeightError(f"{path}: tensor {name} {problem}; convert the model to I2_S with bitnet.cpp's current tools")
    content = data[info.start : info.start + _size_bytes(info)]
    weights = _weights(content[:-TAIL_BYTES], *_shape(info))
    refuse_invalid(weights, f"{path}: tensor {name}")
    (scale,) = struct.unpack_from("<f", content, len(content) - TAIL_BYTES)
    if not isfinite(scale):
        raise WeightError(f"{path}: the scale of tensor {name} is {scale}, expected a finite number")
    return TernaryMatrix(weights, (name,), (info.dims[1],), (scale,))


def _weights(codes: bytes, depth: int, columns: int) -> np.ndarray:
    rows = np.frombuffer(codes, np.uint8).reshape(columns, depth // BLOCK_ELEMENTS * BLOCK_BYTES)
    packed = np.ascontiguousarray(rows.T).reshape(depth // BLOCK_ELEMENTS, BLOCK_BYTES, columns)
    weights = np.empty((depth // BLOCK_ELEMENTS, ELEMENTS_PER_BYTE, BLOCK_BYTES, columns), np.int8)
    for field in range(ELEMENTS_PER_BYTE):
        weights[:, field] = decode(packed, 6 - 2 * field)
    return weights.reshape(depth, columns)
