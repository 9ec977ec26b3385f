"""The largest constant and the ends of its numbers: accepted at the limit, refused one above, however it is written."""

import numpy as np
import pytest
from mlir_texts import device, only

from bdforge.array.mlir import MlirError, parse, print_generic, print_module
from bdforge.array.mlir.dense import DENSE_BYTES_MAX
from bdforge.array.mlir.memory_ops import BufferOp

WRITTEN = {  # where the type stands before the constant and where it follows it
    "a buffer": lambda size: device(f"%b = aie.buffer(%c) : memref<{size}xi8> = dense<0>"),
    "a buffer in generic form": lambda size: device(
        f'%b = "aie.buffer"(%c) <{{initial_value = dense<0> : tensor<{size}xi8>}}> : (index) -> memref<{size}xi8>'
    ),
    "a vector": lambda size: device(f"%v = arith.constant dense<0> : vector<{size}xi8>"),
    "a string": lambda size: device(f'%b = aie.buffer(%c) : memref<{size}xi8> = dense<"0x00">'),
}


@pytest.mark.slow
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


CONSTANTS = {  # type: values that it holds at its ends
    "i8": (-128, 127, 255), "i16": (-32768, 32767, 65535), "i32": (-(1 << 31), (1 << 31) - 1, (1 << 32) - 1),
    "ui8": (0, 255), "i64": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip
WRAPPED = {255: -1, 65535: -1, (1 << 32) - 1: -1}


@pytest.mark.parametrize("element", CONSTANTS)
def test_constants_hold_the_ends_of_their_type(element: str):
    values = CONSTANTS[element]
    text = f"aie.buffer(%m) : memref<{len(values)}x{element}> = dense<[{', '.join(map(str, values))}]>"
    module = parse(device(text))
    for read in (module, parse(print_module(module)), parse(print_generic(module))):
        found = only(read, BufferOp).initial_value
        assert isinstance(found, np.ndarray)
        assert found.tolist() == [value if element == "ui8" else WRAPPED.get(value, value) for value in values]


MEMORY: dict[tuple[str, str], tuple[str, list]] = {
    # type, two numbers: as memory holds them, bf16 and hexadecimal floats by their bits; one number stands for all.
    ("f16", "[1.5, -2.0]"): ("float16", [1.5, -2.0]), ("f16", "0x3C00"): ("float16", [1, 1]),
    ("f32", "[1.0, 2.0]"): ("float32", [1, 2]), ("f32", "0x7F800000"): ("float32", [np.inf] * 2),
    ("f64", "[0.1, -2.0]"): ("float64", [0.1, -2.0]),
    ("bf16", "0x3F80"): ("uint16", [0x3F80] * 2),
    ("bf16", "[1.00390625, 1.01171875]"): ("uint16", [0x3F80, 0x3F82]),  # ties, to even
    ("i1", "[true, false]"): ("bool", [True, False]), ("index", "[-1, 5]"): ("int64", [-1, 5]),
    ("ui16", "[65535, 1]"): ("uint16", [65535, 1]), ("i64", "0xFFFFFFFFFFFFFFFF"): ("int64", [-1, -1]),
    ("i4", "[-8, 7]"): ("object", [-8, 7]), ("i24", "[-1, 8388607]"): ("object", [-1, 8388607]),
}  # fmt: skip


@pytest.mark.parametrize(("element", "literal"), MEMORY)
def test_constants_come_as_memory_holds_their_type(element: str, literal: str):
    module = parse(device(f"aie.buffer(%m) : memref<2x{element}> = dense<{literal}>"))
    for read in (module, parse(print_module(module)), parse(print_generic(module))):
        found = only(read, BufferOp).initial_value
        assert isinstance(found, np.ndarray)
        assert (found.dtype.name, found.tolist()) == MEMORY[element, literal]


SPELLED = {  # type and literal: what MLIR says of it, or the values
    ("4xbf16", "1"): "1 is no bf16", ("2xf32", "[1, 2]"): "1 is no f32", ("2xf32", "[1.0, -2]"): "-2 is no f32",
    ("2xf32", "1e5"): "1e5 is no f32", ("2xf32", "true"): "true is no f32", ("2xf32", "-0x1"): "-0x is no f32",
    ("2xbf16", "0x13F80"): "0x13F80 is no bf16", ("2xf16", '"0x003C003C00"'): "5 bytes of data; ",
    ("2xi32", "1.0"): "Expected integer", ("2xi32", "true"): "only allowed for i1", ("2xi32", "[1]"): "Shape mismatch",
    ("2xi32", "[[1, 2]]"): "Shape mismatch", ("2x2xi32", "[1, 2, 3, 4]"): "Shape mismatch",
    ("2x2xi32", "[[1, 2], [3]]"): "inconsistent ranks", ("2xi32", ""): "at least one element",
    ("2xi8", "256"): "out of range", ("2xi8", "-129"): "out of range", ("2xi16", "65536"): "out of range",
    ("2xi32", "4294967296"): "out of range", ("2xui8", "-1"): "non-negative", ("2xi1", "2"): "out of range",
    ("2xf32", "[1.0, -1.5e-3]"): [1, -0.0015], ("2xf32", "[0x3F800000, 2.e1]"): [1, 20],
    ("2xbf16", "0x3F80"): [0x3F80] * 2, ("2xi1", "[1, 0]"): [True, False], ("1xi32", "[3]"): [3],
    ("2xf16", '"0x003C"'): [1, 1], ("2x2xi32", "[[1, 2], [3, 4]]"): [[1, 2], [3, 4]],
}  # fmt: skip


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(("kind", "literal"), SPELLED)
@pytest.mark.parametrize(
    "text",
    [
        "%b = aie.buffer(%c) : memref<{0}> = dense<{1}>",
        "%b = aie.buffer(%c) {{initial_value = dense<{1}> : tensor<{0}>}} : memref<{0}>",
        'memref.global "private" constant @g : memref<{0}> = dense<{1}>',
        "func.func @f() {{ %v = arith.constant dense<{1}> : vector<{0}> return }}",
    ],
)
def test_constants_are_spelled_as_their_type_and_shape_ask(kind: str, literal: str, text: str):
    wanted = SPELLED[kind, literal]
    if isinstance(wanted, str):
        with pytest.raises(MlirError) as caught:
            parse(device(text.format(kind, literal)))
        assert wanted in caught.value.message
        return
    module = parse(device(text.format(kind, literal)))
    if text.startswith("%b"):
        found = only(module, BufferOp).initial_value
        assert found is not None
        np.testing.assert_allclose(found.astype(float), wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(("literal", "taken"), [("1", False), ("-1", False), ("1.0", True), ("0x3F80", True)])
def test_one_float_is_spelled_as_those_of_constants(kind: str, literal: str, taken: bool):
    text = device(f"func.func @f() {{ %v = arith.constant {literal} : {kind} return }}")
    if taken:
        parse(text)
        return
    with pytest.raises(MlirError, match=f"{literal} is no {kind}: write {literal}.0"):
        parse(text)
