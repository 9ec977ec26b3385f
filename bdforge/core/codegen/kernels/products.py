"""C += A B: kernels `mm_*` of one core tile, of integers and AIE2's of bfloat16, software pipelined
(`bdforge.core.codegen.pipeline`).

Layouts and rounding are those of the C++ kernels of the same names (kernels/aie2p/mm_*.cc).
"""

from collections.abc import Callable
from functools import partial

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.kernel_function import ROUNDINGS, Options
from bdforge.core.codegen.pipeline import MatrixProduct, Pipelined, pipelined
from bdforge.core.codegen.pipeline.product import FIELDS
from bdforge.core.codegen.pipeline.tile_cover import expected_cycles

_SIZES = {"i8": 1, "i16": 2, "i32": 4}
_FLOAT_SIZES = {"bf16": 2, "f32": 4}
_INTEGERS = ("i8", "i4", "i2")


def multiply(name: str, generation: str, options: Options) -> Callable[[], Pipelined]:
    """What writes the kernel's assembly; CodegenError for types or options without an assembled kernel."""
    return partial(pipelined, name, _product(name, generation, options))


def expected(name: str, generation: str, options: Options) -> float:
    """Cycles of a call, within a few percent, where a search asks for more tiles than are assembled; CodegenError as
    `multiply`."""
    return expected_cycles(_product(name, generation, options))


def _product(name: str, generation: str, options: Options) -> MatrixProduct:
    _, a, weights, c = name.split("_")
    floats = (generation, a, weights) == ("aie2", "bf16", "bf16") and c in _FLOAT_SIZES
    if not floats and (a != "i8" or weights not in _INTEGERS or c not in _SIZES):
        known = "A is int8, B int8, int4 or int2; on AIE2 both may be bfloat16"
        raise CodegenError(f"{name} is not assembled for {generation}: {known}")
    if generation == "aie2" and not floats and options.has("C_TRANSPOSED"):
        raise CodegenError(f"{name} is not assembled with transposed micro-tiles of C")
    rho = options.number("DIM_RHO", 1)
    m, k, n = (options.number(name) for name in ("DIM_M", "DIM_K", "DIM_N"))
    swapped = options.has("C_TRANSPOSED")
    turns_a, turns_b = (options.has(f"{operand}_TRANSPOSED") != swapped for operand in "AB")
    product = MatrixProduct(
        generation, weights, (_FLOAT_SIZES if floats else _SIZES)[c], m // rho, k, n, turns_a, turns_b, swapped,
        rho, options.number("SHIFT", 0), ROUNDINGS["conv_even"] if floats else options.rounding,
        options.hardware_loops, weights == "i2" and options.has("B_TOP_SIGNED"), options.shape,
    )  # fmt: skip
    _check(name, product)
    return product


def _check(name: str, product: MatrixProduct) -> None:
    m, k, n = product.m, product.k, product.n
    columns = product.vectors.columns * (FIELDS if product.weights == "i2" else 1)
    if m % product.vectors.rows or k % product.depth or n % columns:
        least = f"{product.vectors.rows}, {product.depth}, {columns}"
        raise CodegenError(f"{name}: m/rho, k, n = {m}, {k}, {n} are no multiples of {least}")
