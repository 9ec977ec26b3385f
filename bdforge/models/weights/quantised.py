"""Floats in ggml's blocks of Q8_0: 32 elements of a row, a float16 scale d and an int8 q each, of value d * q."""

import numpy as np

BLOCK = 32
Q8_0 = np.dtype([("scale", "<f2"), ("codes", "i1", BLOCK)])


class QuantisedRows:
    """A matrix of blocks, mapped from its file; rows become float32 when they are taken.

    `blocks` is rows x blocks, `shape` counts elements, `nbytes` what the file holds.
    """

    def __init__(self, blocks: np.ndarray):
        self.blocks, self.dtype, self.nbytes = blocks, blocks.dtype, blocks.nbytes
        self.shape = len(blocks), blocks.shape[1] * BLOCK
        self.size = self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        found = self.blocks[rows]
        values = found["codes"].astype(np.float32) * found["scale"][..., None].astype(np.float32)
        return values.reshape(len(found), self.shape[1])
