"""The largest constant that is read: accepted at its size, refused one byte above it, however it is written."""

import pytest
from mlir_texts import device, only

from bdforge.mlir import BufferOp, MlirError, parse
from bdforge.mlir.dense import DENSE_BYTES_MAX

WRITTEN = {  # where the type stands before the constant and where it follows it
    "a buffer": lambda size: device(f"%b = aie.buffer(%c) : memref<{size}xi8> = dense<0>"),
    "a buffer in generic form": lambda size: device(
        f'%b = "aie.buffer"(%c) <{{initial_value = dense<0> : tensor<{size}xi8>}}> : (index) -> memref<{size}xi8>'
    ),
    "a vector": lambda size: device(f"%v = arith.constant dense<0> : vector<{size}xi8>"),
    "a string": lambda size: device(f'%b = aie.buffer(%c) : memref<{size}xi8> = dense<"0x00">'),
}


def test_a_constant_of_the_largest_size_is_read():
    value = only(parse(WRITTEN["a buffer"](DENSE_BYTES_MAX)), BufferOp).initial_value
    assert value is not None
    assert value.nbytes == 1 << 28


@pytest.mark.parametrize("way", WRITTEN)
def test_a_constant_of_one_byte_more_is_refused_by_its_size(way: str):
    with pytest.raises(MlirError) as caught:
        parse(WRITTEN[way](DENSE_BYTES_MAX + 1))
    assert caught.value.message == "a constant of 268435457 bytes is too large; the limit is 268435456"


def test_the_limit_counts_bytes_not_elements():
    text = "%b = aie.buffer(%c) : memref<{}x2xi64> = dense<0>"
    with pytest.raises(MlirError, match="a constant of 268435472 bytes is too large"):
        parse(device(text.format(DENSE_BYTES_MAX // 16 + 1)))
