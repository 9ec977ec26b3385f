"""Sums of int8, on AIE2P also products, element by element: the kernel `elementwise_i8`."""

from collections.abc import Callable
from functools import partial

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_function import Function, Options
from bdforge.core.codegen.pipeline.product import COLUMNS
from bdforge.core.codegen.pipeline.vector_forms import VECTORS, Vectors

_GROUP = 4  # vectors of a pass
_FUNCTIONS = {"aie2p": ("add", "mul"), "aie2": ("add",)}
_PRODUCTS = 0x328  # 64 products, both signed


def elementwise(name: str, generation: str, options: Options) -> Callable[[], str]:
    """What writes the kernel; CodegenError for a type, a function or a size without an assembled kernel."""
    function, elements = options.given.get("FUNCTION", ""), options.number("TILE_ELEMENTS", 0)
    registers = VECTORS[generation]
    lanes = registers.rows * COLUMNS
    if name != "elementwise_i8" or function not in _FUNCTIONS[generation]:
        known = " and ".join(_FUNCTIONS[generation])
        raise CodegenError(
            f"{name} is not assembled for {generation} as {function or 'nothing'}: of int8 there is {known}"
        )
    if elements < 1 or elements % lanes:
        raise CodegenError(f"{name}: {elements} elements are no multiple of {lanes}")
    return partial(_written, function, elements, registers, options.number("SHIFT", 0), options.rounding)


def _written(function: str, elements: int, registers: Vectors, shift: int, rounding: int) -> str:
    generation = registers.generation
    about = f"elementwise_i8: y = (a {'+' if function == 'add' else '*'} b) >> {shift} of {elements} elements"
    f = Function("elementwise_i8", generation, f"{about}; p0 = a, p1 = b, p2 = y.")
    f.control("crRnd", rounding, "rounding")
    f.control("crSat", 1, "saturate")
    if generation == "aie2p":
        f.control("crSRSMode", 0, "lanes of 32 bits")
        f.control("crUPSMode", 0)
    f.set("r0", _PRODUCTS if function == "mul" else 0)
    f.set("r8", 0)
    f.add("mov s0, r8", "no shift up")
    f.set("r10", shift)
    f.add("mov s1, r10", "SHIFT")
    passes, rest = divmod(elements // (registers.rows * COLUMNS), _GROUP)
    step = partial(_sums, f, registers) if function == "add" else partial(_products, f)
    f.loop("r9", passes, lambda: step(_GROUP), "vectors")
    step(rest)
    return f.text()


def _sums(f: Function, registers: Vectors, count: int) -> None:
    up, down, step = registers.widened[1][0], registers.narrowed[1][0], registers.rows * COLUMNS
    for i in range(count):
        a, b = registers.sums(i % 2), registers.sums(2 + i % 2)
        f.add(f"vlda.ups{up} {a}, s0, [p0], #{step}{registers.signs[0]}", "", "a")
        f.add(f"vlda.ups{up} {b}, s0, [p1], #{step}{registers.signs[0]}", "", "b")
        f.add(f"vadd {a}, {a}, {b}, r0")
        f.add(f"vst.srs{down} {a}, s1, [p2], #{step}{registers.signs[1]}", "", "y")


def _products(f: Function, count: int) -> None:
    for i in range(count):
        f.add(f"vlda x{i}, [p0], #64", "", "a")
        f.add(f"vldb x{_GROUP + i}, [p1], #64", "", "b")
        f.add(f"vmul dm{i}, x{i}, x{_GROUP + i}, r0")
        f.add(f"vst.srs.4x dm{i}, s1, [p2], #64, srsSign1", "", "y")
