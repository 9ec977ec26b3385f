"""What cores keep of rows that come in chunks, on AIE2P: vectors of a state in memory, 0 in a row's first chunk."""

from collections.abc import Iterator

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels.lane_block import VECTOR_BYTES
from bdforge.core.codegen.kernels.row_scalars import with_constant
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, repeated

LATER = "r7"
"""All bits but in a row's first chunk; loops count in it."""
Ops = Iterator[AssemblyOp]


def later() -> Ops:
    """`LATER`, of the number of the chunk in r0."""
    yield from with_constant("ltu", LATER, "r0", 1)
    yield from with_constant("add", LATER, LATER, -1)


def loaded(state: str, *registers: str, first: int = 0, masked: bool = True) -> Ops:
    """Vectors of the state in vector registers or parts of accumulators, 0 in a row's first chunk if `masked`."""
    if masked:
        yield AssemblyOp(f"vbcst.32 x2, {LATER}")
    for at, register in enumerate(registers, first):
        accumulator = register.startswith("bm")
        vector = "x0" if accumulator else register
        yield AssemblyOp(f"vlda {vector}, [{state}, #{at * VECTOR_BYTES}]")
        if masked:
            yield AssemblyOp(f"vband {vector}, {vector}, x2")
        if accumulator:
            yield AssemblyOp(f"vmov {register}, {vector}")


def stored(state: str, *registers: str, first: int = 0) -> FunctionPart:
    """Vector registers or parts of accumulators to vectors of the state."""
    ops = []
    for at, register in enumerate(registers, first):
        vector = f"x{2 + at}" if register.startswith("bm") else register
        ops += [named_op(f"vmov {vector}, {register}")] if vector != register else []
        ops.append(named_op(f"vst {vector}, [{state}, #{at * VECTOR_BYTES}]", f"state {at}"))
    return repeated("aie2p", [], ops, 1)
