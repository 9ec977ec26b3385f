"""Tensors of GGUF files: bitnet.cpp's ternary type `I2_S`, ggml's `TQ1_0` and `TQ2_0` (`ggml_blocks`), and floats.

An I2_S tensor has dims (K, N): N rows of K elements. Of every 128 elements along K, byte j of 32 holds the codes w + 1
of elements j, j + 32, j + 64, j + 96 at bits 6, 4, 2, 0. After the K*N/4 bytes of codes comes a tail of 32 bytes that
begins with the float32 scale (microsoft/BitNet, `quantize_i2_s` in `src/ggml-bitnet-mad.cpp`). Type 36 was also given
to other layouts: a tensor whose size does not fit is refused, another order of codes in the same size cannot be told.
Blocks of TQ1_0 and TQ2_0 each have a scale; a matrix of BitNet has one, and blocks of zeros, so others are refused.

The file is mapped, and only the header and the tensors asked for are touched.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path

import ml_dtypes
import numpy as np

from bdforge.models.weights.ggml_blocks import (
    FLOAT_BLOCK,
    Q8_0,
    TERNARY_BLOCK,
    TQ1_0,
    TQ2_0,
    QuantisedRows,
    decode_tq1,
    decode_tq2,
)
from bdforge.models.weights.gguf_header import MAGIC, GgufHeader, TensorInfo, Value, read_header, round_up
from bdforge.models.weights.matrix import WeightError, WeightFile, decode

I2_S = 36
ELEMENTS_PER_BYTE = 4
BLOCK_ELEMENTS = 128
BLOCK_BYTES = BLOCK_ELEMENTS // ELEMENTS_PER_BYTE
TAIL_BYTES = 32
FLOATS = {0: np.dtype("<f4"), 1: np.dtype("<f2"), 30: np.dtype(ml_dtypes.bfloat16)}
"""Types of tensors that are no ternary matrices: F32, F16, BF16."""
Q8_0_TYPE = 8


@dataclass(frozen=True, slots=True)
class TernaryLayout:
    """A ternary type: K is a multiple of `block`, a tensor of so many elements takes `size(elements)` bytes."""

    name: str
    block: int
    size: Callable[[int], int]
    read: Callable[[bytes, int, int], tuple[np.ndarray, float]]
    """Weights (K x N, 2 where a code is none) and scale of content, K and N; ValueError says what is odd."""


def recognised(beginning: bytes) -> bool:
    """Whether a file with these first bytes is GGUF."""
    return beginning.startswith(MAGIC)


@contextmanager
def opened(path: Path) -> Iterator["GgufFile"]:
    """The file, mapped while it is open; WeightError for one that cannot be read or has a damaged header."""
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield GgufFile(path, data, read_header(path, data))
    except OSError as error:
        raise WeightError(f"{path}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class GgufFile(WeightFile):
    """A GGUF file that is open; of blocks of unequal scales, too, no matrix is made."""

    path: Path  # pyrefly: ignore[bad-override]  here it cannot be set
    data: mmap
    header: GgufHeader

    def names(self) -> list[str]:
        return list(self.header.tensors)

    def metadata(self) -> Mapping[str, Value]:
        return self.header.metadata

    def shape(self, name: str) -> tuple[int, int]:
        depth, columns = self.header.tensors[name].dims
        return depth, columns

    def weights(self, name: str) -> tuple[np.ndarray, float]:
        info = self.header.tensors[name]
        layout = LAYOUTS[info.type]
        return layout.read(self.data[info.start : info.start + layout.size(info.elements)], *self.shape(name))

    def floats(self, name: str) -> np.ndarray | QuantisedRows | None:
        """F32, F16, BF16, or a matrix of Q8_0; the slowest dimension comes first."""
        info = self.header.tensors.get(name)
        if info is None:
            return None
        if info.type == Q8_0_TYPE and len(info.dims) == 2 and info.dims[0] % FLOAT_BLOCK == 0:
            shape = (info.dims[1], info.dims[0] // FLOAT_BLOCK)
            return QuantisedRows(np.memmap(self.path, Q8_0, "r", info.start, shape))
        if info.type not in FLOATS:
            known = "F32, F16, BF16 or a matrix of Q8_0"
            raise WeightError(f"{self.path}: tensor {name} has type {info.type}, expected {known}: convert it anew")
        return np.memmap(self.path, FLOATS[info.type], "r", info.start, info.dims[::-1])

    def problem(self, name: str) -> str:
        found = self._unfit(self.header.tensors[name])
        return f"{found}; convert the model to I2_S with bitnet.cpp's current tools" if found else ""

    def _unfit(self, info: TensorInfo) -> str:
        """Why a tensor is not in a layout above; empty when it is."""
        layout = LAYOUTS.get(info.type)
        if layout is None:
            known = ", ".join(f"{number} ({layout.name})" for number, layout in LAYOUTS.items())
            return f"has type {info.type}, expected {known}"
        if len(info.dims) != 2:
            return f"has {len(info.dims)} dimensions, expected 2 (K, N)"
        depth, columns = info.dims
        if depth % layout.block:
            return f"has K = {depth}, expected a multiple of {layout.block}"
        expected, room = layout.size(info.elements), info.end - info.start
        if expected <= room <= round_up(expected, self.header.alignment):
            return ""
        return (
            f"takes {room} bytes, expected {expected} for {depth} x {columns} {layout.name} weights; "
            f"the file is cut off or of another {layout.name} layout"
        )


def _i2_s(content: bytes, depth: int, columns: int) -> tuple[np.ndarray, float]:
    codes = np.frombuffer(content[:-TAIL_BYTES], np.uint8)
    rows = codes.reshape(columns, depth // BLOCK_ELEMENTS * BLOCK_BYTES)
    packed = np.ascontiguousarray(rows.T).reshape(depth // BLOCK_ELEMENTS, BLOCK_BYTES, columns)
    weights = np.empty((depth // BLOCK_ELEMENTS, ELEMENTS_PER_BYTE, BLOCK_BYTES, columns), np.int8)
    for field in range(ELEMENTS_PER_BYTE):
        weights[:, field] = decode(packed, 6 - 2 * field)
    (scale,) = struct.unpack_from("<f", content, len(content) - TAIL_BYTES)
    return weights.reshape(depth, columns), scale


def _blocks(content: bytes, depth: int, columns: int, type_: np.dtype, decode: Callable) -> tuple[np.ndarray, float]:
    blocks = np.frombuffer(content, type_).reshape(columns, depth // TERNARY_BLOCK)
    scales = blocks["scale"]
    used = np.unique(scales[scales != 0])
    if len(used) > 1:
        raise ValueError(
            f"its blocks have {len(used)} scales, from {used[0]:g} to {used[-1]:g}; a matrix of BitNet has one: "
            "this is another kind of model"
        )
    weights = decode(blocks["codes"]) * (scales != 0)[..., None].astype(np.int8)
    return np.ascontiguousarray(weights.reshape(columns, depth).T), float(used[0]) if len(used) else 0.0


LAYOUTS = {
    I2_S: TernaryLayout("I2_S", BLOCK_ELEMENTS, lambda elements: elements // ELEMENTS_PER_BYTE + TAIL_BYTES, _i2_s),
    34: TernaryLayout(
        "TQ1_0", TERNARY_BLOCK, lambda elements: elements // TERNARY_BLOCK * TQ1_0.itemsize,
        partial(_blocks, type_=TQ1_0, decode=decode_tq1),
    ),
    35: TernaryLayout(
        "TQ2_0", TERNARY_BLOCK, lambda elements: elements // TERNARY_BLOCK * TQ2_0.itemsize,
        partial(_blocks, type_=TQ2_0, decode=decode_tq2),
    ),
}  # fmt: skip
"""Ternary types by number (ggml.h)."""
