"""Number formats of the cores that numpy lacks, how they narrow sums, and the order in which they take numbers."""

from bdforge.devices.formats.bfp16 import (
    BLOCK,
    BLOCK_BYTES,
    TILE_BYTES,
    FormatError,
    decode,
    encode,
    pack_bfp16,
    rounded,
    unpack_bfp16,
)
from bdforge.devices.formats.bounds import error_bound
from bdforge.devices.formats.narrowing import shifted

__all__ = [
    "BLOCK", "BLOCK_BYTES", "TILE_BYTES", "FormatError", "decode", "encode", "error_bound", "pack_bfp16", "rounded",
    "shifted", "unpack_bfp16",
]  # fmt: skip
