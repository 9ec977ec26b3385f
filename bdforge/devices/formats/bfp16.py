"""bfp16ebs8: blocks of 8 values that share an exponent, 9 bytes each, as AIE2P multiplies them.

Byte 0 of a block is the exponent E, biased by 127; bytes 1 to 8 are the mantissas, int8 in two's complement. A value is
mantissa * 2^(E - 133): mantissa 64 at E = 127 is 1.0. (AIE API, detail/aie2p/accum.hpp and block_vector.hpp.)

Conversion, as the cores do it under rounding mode conv_even: E is the largest biased exponent of the eight float32;
mantissas are rounded to nearest, ties to even. Where one would be +128 all eight are rounded again with E + 1. At
E = 254 they are clamped to -127 to 127 instead, so that every value is a finite float32. Subnormal float32 count as 0,
as cores flush them. A block of zeros has E = 0. No block holds infinity or NaN.

Tiles are 8 x 8 values, 72 bytes: 8 blocks, a row of A each. Hosts hold A (M x K) and C (M x N) as [M/8][K/8][72]; a C,
with its blocks along N, can be the A of a next product.
"""

import numpy as np

from bdforge.common.messages import InputError
from bdforge.devices.types import BFP16EBS8


class FormatError(InputError):
    """Values or sizes that a format cannot hold. The message names the value or size, the limit and the next step."""


def refuse(action: str, problems: list[str]) -> None:
    """Raise `FormatError` with all problems, if there are any."""
    if problems:
        raise FormatError(f"{action}: {'; '.join(problems)}")


BLOCK = BFP16EBS8.values
"""Values that share an exponent."""
BLOCK_BYTES = BFP16EBS8.bytes

_MANTISSA_BIAS = 127 + 6
_LARGEST_EXPONENT = 254
_FLOATS = ("float32", "bfloat16", "float16")


def encode(values: np.ndarray) -> np.ndarray:
    """`values`, floats of shape (..., 8 b), as blocks along the last axis: uint8 (..., b, 9).

    float32, float16 or bfloat16. Raises `FormatError` for another dtype or length, and for infinity and NaN (with the
    place of the first).
    """
    refuse("encode", _value_problems(values))
    single = np.ascontiguousarray(values, np.float32)
    _refuse_infinite(single)
    exponents = (single.view(np.uint32) >> 23 & 255).astype(np.int16)
    flushed = np.where(exponents == 0, np.float32(0), single).astype(np.float64)
    shape = (*single.shape[:-1], -1, BLOCK)
    shared = exponents.reshape(shape).max(axis=-1, keepdims=True)
    flushed = flushed.reshape(shape)
    mantissas = _mantissas(flushed, shared)
    shared = shared + ((mantissas.max(axis=-1, keepdims=True) > 127) & (shared < _LARGEST_EXPONENT))
    lowest = np.where(shared < _LARGEST_EXPONENT, -128, -127)
    mantissas = np.clip(_mantissas(flushed, shared), lowest, 127)
    return np.concatenate([shared.astype(np.uint8), mantissas.astype(np.int8).view(np.uint8)], axis=-1)


def decode(blocks: np.ndarray) -> np.ndarray:
    """The values, float32 (..., 8 b), of uint8 blocks (..., b, 9); magnitudes from 2^128 on become infinite.

    Raises `FormatError` for another dtype or shape.
    """
    expected = f"(..., blocks, {BLOCK_BYTES})"
    refuse("decode", _byte_problems("blocks", blocks, blocks.ndim > 1, BLOCK_BYTES, expected))
    mantissas = np.ascontiguousarray(blocks[..., 1:]).view(np.int8).astype(np.float64)
    values = np.ldexp(mantissas, blocks[..., :1].astype(np.int32) - _MANTISSA_BIAS)
    with np.errstate(over="ignore"):
        return values.astype(np.float32).reshape(*blocks.shape[:-2], -1)


def rounded(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The float32 that `values` become in blocks along `axis`, the last one filled with 0: a product's operands."""
    lines = np.moveaxis(np.asarray(values), axis, -1)
    length = lines.shape[-1]
    filled = np.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(0, -length % BLOCK)])
    return np.moveaxis(decode(encode(filled))[..., :length], -1, axis)


def _mantissas(values: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Rounded to nearest even at exponent `shared`; exact until then, as float64 has room."""
    return np.rint(np.ldexp(values, _MANTISSA_BIAS - shared.astype(np.int32)))


def _value_problems(values: np.ndarray) -> list[str]:
    problems = []
    if values.dtype.name not in _FLOATS:
        problems.append(f"values are {values.dtype}, expected float32, float16 or bfloat16; use .astype(np.float32)")
    if values.ndim == 0 or values.shape[-1] % BLOCK or not values.size:
        problems.append(f"values have shape {values.shape}, the last must be a positive multiple of {BLOCK}")
    return problems


def _byte_problems(what: str, array: np.ndarray, has_rank: bool, last: int, expected: str) -> list[str]:
    problems = []
    if array.dtype != np.uint8:
        problems.append(f"{what} are {array.dtype}, expected uint8")
    if not has_rank or array.shape[-1] != last or not array.size:
        problems.append(f"{what} have shape {array.shape}, expected {expected}")
    return problems


def _refuse_infinite(values: np.ndarray) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    place = tuple(int(i) for i in np.unravel_index(int((~finite).argmax()), values.shape))
    raise FormatError(
        f"encode: the value at {place} is {values[place]}, which block floats cannot hold; clip or replace it first"
    )


TILE_BYTES = BLOCK * BLOCK_BYTES
"""Bytes of 8 x 8 block-float values."""


def pack_bfp16(a: np.ndarray) -> np.ndarray:
    """A, floats of shape (M, K), as block floats along K: uint8 (M//8, K//8, 72), C-contiguous.

    Raises `FormatError` for sizes that are no multiples of 8, and for what `encode` refuses.
    """
    refuse("pack_bfp16", _matrix_problems(a))
    rows, columns = a.shape
    blocks = encode(a).reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK_BYTES)
    return blocks.transpose(0, 2, 1, 3).copy(order="C").reshape(rows // BLOCK, columns // BLOCK, TILE_BYTES)


def unpack_bfp16(tiles: np.ndarray) -> np.ndarray:
    """The float32 matrix (M, K) of tiles uint8 (M//8, K//8, 72) in the order of `pack_bfp16`. Raises `FormatError`."""
    refuse("unpack_bfp16", _byte_problems("tiles", tiles, tiles.ndim == 3, TILE_BYTES, "(M//8, K//8, 72)"))
    rows, columns, _ = tiles.shape
    blocks = tiles.reshape(rows, columns, BLOCK, BLOCK_BYTES).transpose(0, 2, 1, 3)
    return decode(blocks).reshape(rows * BLOCK, columns * BLOCK)


def _matrix_problems(matrix: np.ndarray) -> list[str]:
    if matrix.ndim != 2 or not matrix.size:
        return [f"the matrix has shape {matrix.shape}, expected (M x K)"]
    return [
        f"{name} = {size} is no multiple of {BLOCK}, pad it to {-(-size // BLOCK) * BLOCK}"
        for name, size in zip("MK", matrix.shape, strict=True)
        if size % BLOCK
    ]
