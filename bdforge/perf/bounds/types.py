"""Element types of GEMM operands by the names that tables, designs and papers use."""

from bdforge.perf.errors import PerfError

ELEMENT_BYTES = {
    "i2": 0.25, "i4": 0.5, "i8": 1, "i16": 2, "i32": 4, "bf16": 2, "f32": 4,
    "bfp16": 1.125,  # bfp16ebs8: 8 mantissas of a byte and a shared exponent byte (Wang et al., IRON)
}  # fmt: skip
"""Bytes of an element in DRAM and tile memory."""

BLOCK_ROWS = {"bfp16": 8}
"""Rows of a matrix that lie together in DRAM: a block float micro-tile is 8 x 8 (AIE API), 72 contiguous bytes."""

_ALIASES = {
    "int2": "i2", "ternary": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "uint8": "i8",
    "u8": "i8", "bfloat16": "bf16", "float32": "f32", "fp32": "f32", "bfp16ebs8": "bfp16", "v8bfp16ebs8": "bfp16",
}  # fmt: skip


def type_named(name: str) -> str:
    """The type's one name here; PerfError lists the known ones."""
    known = _ALIASES.get(name.strip().lower(), name.strip().lower())
    if known not in ELEMENT_BYTES:
        raise PerfError(f"unknown element type {name!r}; known: {', '.join((*ELEMENT_BYTES, *_ALIASES))}")
    return known
