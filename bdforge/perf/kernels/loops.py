"""Our kernels as loops to schedule: one line each in `MATRIX_KERNELS` and `ELEMENT_KERNELS`.

A matrix kernel is a product (MAC form, operands) and the traffic of its C. Sources: `kernels/`, one file each.
"""

from dataclasses import replace

from bdforge.devices import AIE2, AIE2P
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.types import TYPES
from bdforge.perf.kernels.kernel_traffic import (
    c_bf16,
    c_bfp16,
    c_f32,
    c_int8,
    c_int16,
    c_int32,
    narrowed,
    scaled,
    scaled_floats,
    shifted,
    unscale,
    zero,
    zero_blocks,
)
from bdforge.perf.kernels.kinds import ElementKernel, MatrixKernel, Product
from bdforge.perf.kernels.operand_loads import HALVES, by_block_floats, masked_codes, mixed, nibbles, plain_loads, pops
from bdforge.perf.kernels.scheduled_forms import VECTOR_REGISTERS

VECTOR_BYTES = {AIE2.name: 32, AIE2P.name: 64}
"""Bytes of one vector load or store (llvm-aie forms)."""


_INT8 = Product(AIE2P, 8, 8, 8, "VMAC_vmul_cm_core_X_X", plain_loads)
_INT4 = replace(_INT8, operands=nibbles)
_INT2 = replace(_INT8, operands=masked_codes, group=4)
_BFP16 = Product(AIE2P, 8, 8, 8, "VMAC_f_vmac_bfp_vmul_bfp_core_EX_EX", pops, run=2)
_BF16 = replace(_BFP16, operands=by_block_floats, temporaries=HALVES, reserved=1, run=1)
_BF16_BFP16 = replace(_BF16, operands=mixed, run=2)
_AIE2_INT8 = Product(
    AIE2, 4, 8, 8, "VMAC_vmac_cm_core_dense", plain_loads,
    parts=(("",), HALVES), registers=2 * VECTOR_REGISTERS, accumulator_bits=1024,
)  # fmt: skip
_AIE2_INT4 = replace(_AIE2_INT8, s=16, parts=(HALVES, HALVES))  # multiplied as it is, 4x16x8
_AIE2_INT2 = replace(_AIE2_INT8, operands=masked_codes, group=4)
_AIE2_BF16 = Product(
    AIE2, 4, 8, 4, "VMAC_F_vmac_bm_core_dense", plain_loads,
    parts=(HALVES, HALVES), registers=2 * VECTOR_REGISTERS, accumulator_bits=512,
)  # fmt: skip

MATRIX_KERNELS = (
    MatrixKernel("int8", "int8", "int8", _INT8, c_int8),
    MatrixKernel("int8", "int8", "int16", _INT8, c_int16),
    MatrixKernel("int8", "int8", "int32", _INT8, c_int32),
    MatrixKernel("int8", "int4", "int16", _INT4, c_int16),
    MatrixKernel("int8", "int4", "int32", _INT4, c_int32),
    MatrixKernel("int8", "int2", "int32", _INT2, c_int32),
    MatrixKernel("bf16", "bf16", "bf16", _BF16, c_bf16),
    MatrixKernel("bf16", "bf16", "f32", _BF16, c_f32),
    MatrixKernel("bf16", "bfp16", "bf16", _BF16_BFP16, c_bf16),
    MatrixKernel("bf16", "bfp16", "f32", _BF16_BFP16, c_f32),
    MatrixKernel("bf16", "bfp16", "bfp16", _BF16_BFP16, c_bfp16),
    MatrixKernel("bfp16", "bfp16", "bf16", _BFP16, c_bf16),
    MatrixKernel("bfp16", "bfp16", "f32", _BFP16, c_f32),
    MatrixKernel("bfp16", "bfp16", "bfp16", _BFP16, c_bfp16),
    MatrixKernel("int8", "int8", "int8", _AIE2_INT8, c_int8),
    MatrixKernel("int8", "int8", "int16", _AIE2_INT8, c_int16),
    MatrixKernel("int8", "int8", "int32", _AIE2_INT8, c_int32),
    MatrixKernel("int8", "int4", "int16", _AIE2_INT4, c_int16),
    MatrixKernel("int8", "int4", "int32", _AIE2_INT4, c_int32),
    MatrixKernel("int8", "int2", "int32", _AIE2_INT2, c_int32),
    MatrixKernel("bf16", "bf16", "bf16", _AIE2_BF16, c_bf16),
    MatrixKernel("bf16", "bf16", "f32", _AIE2_BF16, c_f32),
)

ELEMENT_KERNELS = (
    *(
        ElementKernel(symbol, g, blocks * tile, body)
        for g, tile in ((AIE2, 32), (AIE2P, 64))
        for symbol, blocks, body in (
            ("unscale_i32", 4, unscale),
            ("finish_i32_i32", 1, shifted),
            ("finish_i32_i16", 1, narrowed(c_int32, c_int16)),
            ("finish_i32_i8", 1, narrowed(c_int32, c_int8)),
        )
    ),
    *(ElementKernel("finish_f32_bf16", g, tile, narrowed(c_f32, c_bf16)) for g, tile in ((AIE2, 16), (AIE2P, 64))),
    ElementKernel("finish_bf16_bfp16", AIE2P, 64, narrowed(c_bf16, c_bfp16)),
    ElementKernel("finish_f32_bfp16", AIE2P, 64, narrowed(c_f32, c_bfp16)),
    *(
        ElementKernel(symbol, g, lanes, body, 4 * VECTOR_REGISTERS, option)
        for g, lanes in ((AIE2, 16), (AIE2P, 32))
        for symbol, body, option in (("finish_i32_bf16", scaled, ""), ("finish_f32_bf16", scaled_floats, "SCALE"))
    ),
    *(
        ElementKernel(f"zero_{TYPES[c].code}", g, VECTOR_BYTES[g.name] * BYTE_BITS // TYPES[c].bits, zero)
        for g in (AIE2, AIE2P)
        for c in ("int8", "int16", "int32", "bf16", "f32")
    ),
    ElementKernel("zero_bfp16", AIE2P, 512, zero_blocks),
)
