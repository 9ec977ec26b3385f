"""Sums and products of int8, element by element: the kernel `elementwise_i8` of AIE2P."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bdforge.codegen.errors import CodegenError
from bdforge.codegen.kernels.function import Function, Options

_LANES = 64
_GROUP = 4  # vectors of a pass
_FUNCTIONS = ("add", "mul")
_PRODUCTS = 0x328  # 64 products, both signed


@dataclass(frozen=True, slots=True)
class _Elements:
    """What is computed of how many vectors, and how it is narrowed."""

    function: str
    vectors: int
    shift: int
    rounding: int


def elementwise(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes the kernel; CodegenError for a type, a function or a size without an assembled kernel."""
    function, elements = options.given.get("FUNCTION", ""), options.number("TILE_ELEMENTS", 0)
    if name != "elementwise_i8" or generation != "aie2p" or function not in _FUNCTIONS:
        known = " and ".join(_FUNCTIONS)
        raise CodegenError(f"{name} is not assembled for {generation} as {function or 'nothing'}: of int8 {known} are")
    if elements < 1 or elements % _LANES:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {_LANES}")
    return partial(_written, _Elements(function, elements // _LANES, options.number("SHIFT", 0), options.rounding))


def _written(wanted: _Elements) -> str:
    sign = "+" if wanted.function == "add" else "*"
    about = f"elementwise_i8: y = (a {sign} b) >> {wanted.shift} of {wanted.vectors * _LANES} elements"
    f = Function("elementwise_i8", "aie2p", f"{about}; p0 = a, p1 = b, p2 = y.")
    f.control("crRnd", wanted.rounding, "rounding")
    f.control("crSat", 1, "saturate")
    f.control("crSRSMode", 0, "lanes of 32 bits")
    f.control("crUPSMode", 0)
    f.set("r0", _PRODUCTS if wanted.function == "mul" else 0)
    f.set("r8", 0)
    f.add("mov s0, r8", "no shift up")
    f.set("r10", wanted.shift)
    f.add("mov s1, r10", "SHIFT")
    passes, rest = divmod(wanted.vectors, _GROUP)
    step = _sums if wanted.function == "add" else _products
    f.loop("r9", passes, lambda: step(f, _GROUP), "vectors")
    step(f, rest)
    return f.text()


def _sums(f: Function, count: int) -> None:
    for i in range(count):
        sums = f"dm{i % 2}"
        f.add(f"vlda.ups.4x {sums}, s0, [p0], #64, upsSign1", "", "a")
        f.add(f"vlda.ups.4x dm{2 + i % 2}, s0, [p1], #64, upsSign1", "", "b")
        f.add(f"vadd {sums}, {sums}, dm{2 + i % 2}, r0")
        f.add(f"vst.srs.4x {sums}, s1, [p2], #64, srsSign1", "", "y")


def _products(f: Function, count: int) -> None:
    for i in range(count):
        f.add(f"vlda x{i}, [p0], #64", "", "a")
        f.add(f"vldb x{_GROUP + i}, [p1], #64", "", "b")
        f.add(f"vmul dm{i}, x{i}, x{_GROUP + i}, r0")
        f.add(f"vst.srs.4x dm{i}, s1, [p2], #64, srsSign1", "", "y")
