"""Number formats of the cores that numpy lacks, how they narrow sums, and the orders in which they take numbers."""

from bdforge.formats.bfp16 import BLOCK, BLOCK_BYTES, FormatError, decode, encode, rounded
from bdforge.formats.bounds import error_bound
from bdforge.formats.narrowing import shifted
from bdforge.formats.tiles import (
    TILE_BYTES,
    pack_bf16_b,
    pack_bfp16,
    pack_bfp16_b,
    unpack_bf16_b,
    unpack_bfp16,
    unpack_bfp16_b,
)

__all__ = [
    "BLOCK", "BLOCK_BYTES", "TILE_BYTES", "FormatError", "decode", "encode", "error_bound", "pack_bf16_b", "pack_bfp16",
    "pack_bfp16_b", "rounded", "shifted", "unpack_bf16_b", "unpack_bfp16", "unpack_bfp16_b",
]  # fmt: skip
