"""Kernels that this project assembles, by names of those in `kernels/`: of integers, of elements and of rows.

`lut_i8_i2_i32` alone has no twin there: no design runs it, it is counted beside `mm_i8_i2_i32`.
"""

from collections.abc import Iterable
from functools import lru_cache, partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.attention import KERNELS as ATTENTION
from bdforge.core.codegen.kernels.attention import attention
from bdforge.core.codegen.kernels.block_float_finish import finish_blocks
from bdforge.core.codegen.kernels.block_float_products import (
    BLOCK_FLOAT_PRODUCTS,
    block_float_product,
    expected_block_floats,
)
from bdforge.core.codegen.kernels.code_chunks import CODE_CHUNKS
from bdforge.core.codegen.kernels.convert_floats import CONVERSIONS, convert
from bdforge.core.codegen.kernels.digits import rounded
from bdforge.core.codegen.kernels.element_floats import element_floats
from bdforge.core.codegen.kernels.gates import gate
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, SIZES, Maker, Options
from bdforge.core.codegen.kernels.layer_norm import layernorm
from bdforge.core.codegen.kernels.rope_floats import rope
from bdforge.core.codegen.kernels.row_chunks import CHUNKS
from bdforge.core.codegen.kernels.row_floats import row_norm
from bdforge.core.codegen.kernels.row_scale import residual
from bdforge.core.codegen.kernels.scaled import scaled
from bdforge.core.codegen.kernels.softmax_floats import softmax
from bdforge.core.codegen.kernels.table_products import NAME as TABLE_PRODUCT
from bdforge.core.codegen.kernels.table_products import table_product
from bdforge.core.codegen.kernels.tile_kernels import elementwise, finish, zero
from bdforge.core.codegen.kernels.transpose_tiles import TRANSPOSES, transpose
from bdforge.core.codegen.pipeline.pipelined_kernel import pipelined
from bdforge.core.codegen.pipeline.product import FIELDS, MatrixProduct
from bdforge.core.codegen.pipeline.tile_cover import expected_cycles


def assembled(name: str, generation: str, defines: Iterable[str]) -> AssemblyKernel:
    """The kernel of a name for a tile, with options as `-D` gives them (docs/kernels.md).

    CodegenError where there is none, with the reason.
    """
    return _made(name, generation, tuple(defines))


def refusal(name: str, generation: str, defines: Iterable[str]) -> str | None:
    """Why there is no assembled kernel of a name; None where there is one."""
    try:
        _maker(name, generation, tuple(defines))
    except CodegenError as error:
        return str(error)
    return None


@lru_cache(maxsize=64)
def _made(name: str, generation: str, defines: tuple[str, ...]) -> AssemblyKernel:
    return _maker(name, generation, defines)()


def _maker(name: str, generation: str, defines: tuple[str, ...]) -> Maker:
    maker = _MAKERS_BY_NAME.get(name) or _MAKERS.get(name.partition("_")[0])
    if maker is None:
        raise CodegenError(f"{name} is not assembled: there are {', '.join(f'{prefix}_*' for prefix in _MAKERS)}")
    return maker(name, generation, Options.of(defines))


_WEIGHTS, _SUMS = ("i8", "i4", "i2"), ("i8", "i16", "i32")


def _multiply(name: str, generation: str, options: Options) -> Maker:
    """C += A B, with layouts and rounding of the C++ kernels of the same names (kernels/aie2p/mm_*.cc)."""
    return partial(pipelined, name, _product(name, generation, options))


def expected(name: str, generation: str, options: Options) -> float:
    """Cycles of a call, within a few percent, where a search asks for more tiles than are assembled; CodegenError
    for types or options without an assembled kernel."""
    if name in BLOCK_FLOAT_PRODUCTS:
        return expected_block_floats(name, generation, options)
    return expected_cycles(_product(name, generation, options))


def _product(name: str, generation: str, options: Options) -> MatrixProduct:
    a, weights, c = types if len(types := name.split("_")[1:]) == 3 else ("", "", "")
    floats = (a, weights) == ("bf16", "bf16") and c in ("bf16", "f32")
    if not floats and (a != "i8" or weights not in _WEIGHTS or c not in _SUMS):
        known = "A is int8, B int8, int4 or int2, or both are bfloat16; on AIE2P B is bfp16, A that or bfloat16"
        raise CodegenError(f"{name} is not assembled for {generation}: {known}")
    if generation == "aie2" and not floats and options.has("C_TRANSPOSED"):
        raise CodegenError(f"{name} is not assembled with transposed micro-tiles of C")
    rho = options.number("DIM_RHO", 1)
    m, k, n = (options.number(name) for name in ("DIM_M", "DIM_K", "DIM_N"))
    swapped = options.has("C_TRANSPOSED")
    if floats and generation == "aie2p":  # which lie along k, whatever the order of C
        turns_a, turns_b = options.has("A_TRANSPOSED"), not options.has("B_TRANSPOSED")
    else:
        turns_a, turns_b = (options.has(f"{operand}_TRANSPOSED") != swapped for operand in "AB")
    product = MatrixProduct(
        generation, weights, SIZES[c], m // rho, k, n, turns_a, turns_b, swapped,
        rho, options.number("SHIFT", 0), ROUNDINGS["conv_even"] if floats else options.rounding,
        options.hardware_loops, weights == "i2" and options.has("B_TOP_SIGNED"), options.shape, options.met,
    )  # fmt: skip
    _check(name, product)
    return product


def _check(name: str, product: MatrixProduct) -> None:
    m, k, n = product.m, product.k, product.n
    columns = product.vectors.columns * (FIELDS if product.weights == "i2" else 1)
    if m % product.vectors.rows or k % product.depth or n % columns:
        least = f"{product.vectors.rows}, {product.depth}, {columns}"
        raise CodegenError(f"{name}: m/rho, k, n = {m}, {k}, {n} are no multiples of {least}")


def _to_bf16(name: str, generation: str, options: Options) -> Maker:
    """bfloat16 of int32 sums, times scales where there are any."""
    return (scaled if options.has("SCALE") or options.has("BIAS") else rounded)(name, generation, options)


_MAKERS = {"mm": _multiply, "zero": zero, "unscale": finish, "finish": finish, "elementwise": elementwise}
_MAKERS_BY_NAME = {
    "finish_i32_bf16": _to_bf16,
    "finish_bf16_bfp16": finish_blocks,
    "finish_f32_bfp16": finish_blocks,
    "gate_i32_bf16": gate,
    "elementwise_bf16": element_floats,
    "layernorm_bf16": layernorm,
    "residual_bf16": residual,
    "rmsnorm_bf16": row_norm,
    "rope_bf16": rope,
    "softmax_bf16": softmax,
    TABLE_PRODUCT: table_product,
    **dict.fromkeys(BLOCK_FLOAT_PRODUCTS, block_float_product),
    **dict.fromkeys(CONVERSIONS, convert),
    **CHUNKS,
    **CODE_CHUNKS,
    **dict.fromkeys(TRANSPOSES, transpose),
    **dict.fromkeys(ATTENTION, attention),
}
