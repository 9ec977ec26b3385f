"""The table of element types against numpy, ml_dtypes and the sizes that MLIR, papers and the AIE API give."""

from typing import get_args

import ml_dtypes
import numpy as np
import pytest

from bdforge.devices import AIE2, AIE2P
from bdforge.devices.types import ORDERS, PEAK_MACS, TYPES, Order, TypeNameError, order_named, type_named
from bdforge.formats import BLOCK, BLOCK_BYTES, encode


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


@pytest.mark.parametrize(
    ("text", "name"),
    [("i8", "int8"), (" INT4 ", "int4"), ("ternary", "int2"), ("bfloat16", "bf16"), ("fp32", "f32"), ("u8", "int8")],
)
def test_other_spellings_are_read(text, name):
    assert type_named(text) is TYPES[name]


def test_unknown_names_list_the_known_ones():
    with pytest.raises(TypeNameError, match=r"unknown element type 'i9'; known: int2, int4, int8, .* i8"):
        type_named("i9")
    with pytest.raises(TypeNameError, match="unknown order 'diag'; known: row, column, packed"):
        order_named("diag")


def test_orders():
    assert get_args(Order) == ORDERS
    assert [order_named(text) for text in ("row", "col", "Column-Major", "packed")] == [
        "row",
        "column",
        "column",
        "packed",
    ]


def test_every_generation_multiplies_known_types():
    """256 products of 8 bits a cycle on AIE2 (020), twice as many on AIE2P; all are powers of two."""
    assert set(PEAK_MACS) == {AIE2.name, AIE2P.name}
    assert {name for peaks in PEAK_MACS.values() for pair in peaks for name in pair} <= set(TYPES)
    assert (PEAK_MACS["AIE2"]["int8", "int8"], PEAK_MACS["AIE2P"]["int8", "int8"]) == (256, 512)
    assert all(macs & (macs - 1) == 0 for peaks in PEAK_MACS.values() for macs in peaks.values())
