"""Positive floats of a row in scalar integers, step by step as `kernels/include/row_floats.h` has them.

A float is two registers, mantissa / 2^32 * 2^exponent with a mantissa from 2^31 on. r6 and r10 to r15 are worked with.
"""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.pipeline.pipelined_function import set_register

Ops = Iterator[AssemblyOp]
Float = tuple[str, str]
"""Registers of mantissa and exponent."""


def op(operation: str, to: str, first: str, second: str) -> AssemblyOp:
    return AssemblyOp(f"{operation} {to}, {first}, {second}")


def with_constant(operation: str, to: str, source: str, value: int, reverse: bool = False) -> Ops:
    """to = source OPERATION value, or the other way round."""
    operands = ("r6", source) if reverse else (source, "r6")
    yield from (set_register("r6", value), op(operation, to, *operands))


def short_root(root: str, x: str, spare: str) -> Ops:
    """2^15 / sqrt(x / 2^14): a quadratic, and two steps of Newton's."""
    yield from with_constant("mul", root, x, 3356)
    yield from with_constant("lshl", root, root, -15)
    yield from with_constant("sub", root, root, 13457, reverse=True)
    yield op("mul", root, root, x)
    yield from with_constant("lshl", root, root, -14)
    yield from with_constant("sub", root, root, 43759, reverse=True)
    for _ in range(2):
        yield op("mul", spare, root, root)
        yield from with_constant("lshl", spare, spare, -15)
        yield op("mul", spare, spare, x)
        yield from with_constant("lshl", spare, spare, -14)
        yield from with_constant("sub", spare, spare, 98304, reverse=True)
        yield op("mul", root, root, spare)
        yield from with_constant("lshl", root, root, -16)


def high(to: str, a: str, b: str) -> Ops:
    """The upper half of a product; `to` may be an operand."""
    for above, below, source in (("r10", "r11", a), ("r12", "r13", b)):
        yield from with_constant("lshl", above, source, -16)
        yield from with_constant("and", below, source, 0xFFFF)
    yield from (op("mul", "r14", "r10", "r13"), op("mul", "r15", "r11", "r13"))
    yield from with_constant("lshl", "r15", "r15", -16)
    yield from (op("add", "r14", "r14", "r15"), op("mul", "r15", "r11", "r12"))
    yield from with_constant("and", "r13", "r14", 0xFFFF)
    yield from (op("add", "r15", "r15", "r13"), op("mul", to, "r10", "r12"))
    for half in ("r14", "r15"):
        yield from with_constant("lshl", half, half, -16)
        yield op("add", to, to, half)


def high_of_constant(to: str, a: str, value: int) -> Ops:
    yield from (set_register("r15", value), *high(to, a, "r15"))


def normal(to: Float) -> Ops:
    """Of a mantissa from 2^30 on."""
    yield from with_constant("lshl", "r10", to[0], -31)
    yield from with_constant("sub", "r10", "r10", 1, reverse=True)
    yield from (op("lshl", to[0], to[0], "r10"), op("sub", to[1], to[1], "r10"))


def product(to: Float, a: Float, b: Float) -> Ops:
    yield from (*high(to[0], a[0], b[0]), op("add", to[1], a[1], b[1]), *normal(to))


def scaled(to: Float, a: Float, mantissa: int, exponent: int) -> Ops:
    """A product with a constant."""
    yield from high_of_constant(to[0], a[0], mantissa)
    yield from (*with_constant("add", to[1], a[1], exponent), *normal(to))


def of_bits(to: Float, bits: str) -> Ops:
    """Of a float's bits."""
    yield from with_constant("lshl", to[1], bits, -23)
    yield from with_constant("add", to[1], to[1], -126)
    yield from with_constant("lshl", to[0], bits, 8)
    yield from with_constant("or", to[0], to[0], 0x80000000)


def bits_of(to: str, a: Float) -> Ops:
    """A float's bits, to nearest; `to` is no part of `a`."""
    yield from with_constant("add", to, a[1], 125)
    yield from with_constant("lshl", to, to, 23)
    for shift, mask in ((-8, None), (-7, 1)):
        yield from with_constant("lshl", "r10", a[0], shift)
        yield from with_constant("and", "r10", "r10", mask) if mask else ()
        yield op("add", to, to, "r10")


def inverse_root(to: Float, a: Float, spare: Float) -> Ops:
    """1 / sqrt(a); `to` is no part of `a`."""
    near, odd = spare
    yield from with_constant("and", odd, a[1], 1)
    yield from with_constant("sub", near, odd, 0, reverse=True)
    yield from (op("lshl", near, a[0], near), op("add", to[1], a[1], odd))
    yield from with_constant("lshl", "r10", near, -16)
    yield from short_root(to[0], "r10", "r11")
    yield from with_constant("lshl", to[0], to[0], 17)
    yield from (*high(odd, to[0], to[0]), *high(near, odd, near))
    yield from with_constant("sub", near, near, 3 << 30, reverse=True)
    yield from (*high(to[0], to[0], near), *with_constant("lshl", to[0], to[0], 1))
    yield from with_constant("ashl", to[1], to[1], -1)
    yield from with_constant("sub", to[1], to[1], 1, reverse=True)


def inverse(to: Float, a: Float, spare: str) -> Ops:
    """1 / a; `to` is no part of `a`."""
    yield from high_of_constant(to[0], a[0], 2021161081)
    yield from with_constant("sub", to[0], to[0], 3031741620, reverse=True)
    yield from with_constant("lshl", to[0], to[0], 1)
    for _ in range(3):
        yield from (*high(spare, a[0], to[0]), *with_constant("sub", spare, spare, 0, reverse=True))
        yield from (*high(to[0], to[0], spare), *with_constant("lshl", to[0], to[0], 1))
    yield from with_constant("sub", to[1], a[1], 1, reverse=True)


def select(to: str, then: str, mask: str) -> Ops:
    """`then` in `to` where the bits of `mask` are set."""
    yield from (op("xor", "r10", to, then), op("and", "r10", "r10", mask), op("xor", to, to, "r10"))
