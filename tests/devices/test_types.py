"""The table of element types against numpy, ml_dtypes and the sizes that MLIR, papers and the AIE API give."""

from typing import get_args

import ml_dtypes
import numpy as np
import pytest

from bdforge.devices.formats import BLOCK, BLOCK_BYTES, encode
from bdforge.devices.types import ORDERS, TYPES, Order, TypeNameError, order_named, type_named


@pytest.mark.parametrize("name", ["int8", "int16", "int32"])
def test_whole_integers_are_numpys(name):
    kind, limits = TYPES[name], np.iinfo(name)
    assert (kind.dtype, kind.bits, kind.memory_bits) == (np.dtype(name), limits.bits, limits.bits)
    assert kind.values == (limits.min, limits.max)
    assert (kind.code, kind.memory) == (name.replace("int", "i"),) * 2
    assert not kind.packed_only


def test_narrow_integers_wait_in_bytes():
    assert {name: TYPES[name].values for name in ("int2", "int4")} == {"int2": (-1, 1), "int4": (-8, 7)}
    for name in ("int2", "int4"):
        kind = TYPES[name]
        assert (kind.dtype, kind.memory, kind.packed_only) == (np.dtype(np.int8), "i8", True)
        assert kind.memory_elements(64) == 64 * kind.bits // 8


def test_floats():
    assert TYPES["bf16"].dtype == np.dtype(ml_dtypes.bfloat16)
    assert [TYPES[name].dtype.itemsize for name in ("bf16", "f32")] == [TYPES[n].bytes for n in ("bf16", "f32")]
    assert not any(TYPES[name].integer for name in ("bf16", "f32", "bfp16"))


def test_blocks_are_as_long_as_the_encoder_makes_them():
    values = np.linspace(-3, 5, 40, dtype=np.float32)
    kind = TYPES["bfp16"]
    assert encode(values).nbytes == kind.bytes * values.size == kind.memory_elements(values.size)
    assert (kind.block, kind.bytes) == (BLOCK, BLOCK_BYTES / BLOCK) == (8, 1.125)


SPELLINGS = {
    "int2": "i2 ternary", "int4": "i4 INT4", "int8": "i8 u8 uint8", "int16": "i16", "int32": "i32",
    "bf16": "bfloat16 BF16", "f32": "fp32 float32", "bfp16": "bfp16ebs8 v8bfp16ebs8",
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in SPELLINGS for text in SPELLINGS[name].split()])
def test_other_spellings_are_read(name: str, text: str):
    assert type_named(text) is type_named(f" {text}\t") is type_named(name) is TYPES[name]


@pytest.mark.parametrize(
    ("order", "text"),
    [("row", "row"), ("row", "row-major"), ("row", "ROW"), ("column", "column"), ("column", "col"),
     ("column", "col-major"), ("column", "Column-Major"), ("packed", "packed")],
)  # fmt: skip
def test_orders_are_read_by_their_usual_names(order: str, text: str):
    assert order_named(text) == order_named(f" {text}\n") == order


def test_unknown_names_list_the_known_ones():
    with pytest.raises(TypeNameError, match=r"unknown element type 'i9'; known: int2, int4, int8, .* i8"):
        type_named("i9")
    with pytest.raises(TypeNameError, match="unknown order 'diag'; known: row, column, packed"):
        order_named("diag")


def test_orders():
    assert get_args(Order) == ORDERS
