"""ggml's blocks: floats in Q8_0, ternary weights in TQ1_0 and TQ2_0 (ggml-common.h, ggml-quants.c).

Q8_0: 32 elements of a row, a float16 scale d and an int8 q each, of value d * q. TQ1_0 and TQ2_0: 256 elements along K
with one float16 scale d. TQ2_0, 66 bytes: of each half of 128 elements, byte m of 32 holds the codes w + 1 of elements
m, m + 32, m + 64, m + 96 at bits 0, 2, 4, 6. TQ1_0, 54 bytes: five elements to a byte, as a fraction of 256 in base 3,
first digit first: byte m of the first 32 holds elements m + 32 i, of the next 16 elements 160 + m + 16 i, of the last
4, which hold four, 240 + m + 4 i.
"""

import numpy as np

FLOAT_BLOCK = 32
Q8_0 = np.dtype([("scale", "<f2"), ("codes", "i1", FLOAT_BLOCK)])


class QuantisedRows:
    """A matrix of blocks, mapped from its file; rows become float32 when they are taken.

    `blocks` is rows x blocks, `shape` counts elements, `nbytes` what the file holds.
    """

    def __init__(self, blocks: np.ndarray):
        self.blocks, self.dtype, self.nbytes = blocks, blocks.dtype, blocks.nbytes
        self.shape = len(blocks), blocks.shape[1] * FLOAT_BLOCK
        self.size = self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        found = self.blocks[rows]
        values = found["codes"].astype(np.float32) * found["scale"][..., None].astype(np.float32)
        return values.reshape(len(found), self.shape[1])


TERNARY_BLOCK = 256
TQ1_0 = np.dtype([("codes", "u1", 52), ("scale", "<f2")])
TQ2_0 = np.dtype([("codes", "u1", 64), ("scale", "<f2")])
_RUNS = ((0, 32, 5), (32, 16, 5), (48, 4, 4))
"""Of TQ1_0: first byte, bytes, digits of each."""
_SHIFTS = np.array([0, 2, 4, 6], np.uint8)


def decode_tq2(codes: np.ndarray) -> np.ndarray:
    """Weights (int8, ... x 256) of codes (uint8, ... x 64); 2 where the code is 3."""
    halves = codes.reshape(*codes.shape[:-1], 2, 1, 32) >> _SHIFTS[:, None] & 3
    return halves.reshape(*codes.shape[:-1], TERNARY_BLOCK).view(np.int8) - np.int8(1)


def decode_tq1(codes: np.ndarray) -> np.ndarray:
    """Weights (int8, ... x 256) of codes (uint8, ... x 52)."""
    weights, element = np.empty((*codes.shape[:-1], TERNARY_BLOCK), np.int8), 0
    for first, count, digits in _RUNS:
        packed = codes[..., first : first + count]
        for _ in range(digits):
            weights[..., element : element + count] = (packed.astype(np.uint16) * 3 >> 8).astype(np.int8) - 1
            packed, element = packed * np.uint8(3), element + count  # the digit in front leaves the byte
    return weights
