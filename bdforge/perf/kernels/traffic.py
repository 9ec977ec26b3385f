"""How micro-tiles of C move between memory and accumulators, and the passes over C made of such moves."""

from collections.abc import Callable
from dataclasses import replace

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.perf.kernels.blocks import Chain
from bdforge.perf.kernels.isa import Form, form
from bdforge.perf.kernels.kinds import Traffic
from bdforge.perf.kernels.loop import Operation
from bdforge.perf.kernels.operands import load, shuffle

FLOAT_PARTS = 3
"""bfloat16 parts of a float32 operand at full precision: each part of one operand is multiplied by each of the other,
nine products in all, and each part but the last is subtracted to reach the next (AIE API, emulated float products)."""

TO_FLOAT_OPERATIONS = 5
"""Operations of the MAC slot that make float32 lanes out of int32 ones (AIE API, `to_float`)."""

TrafficOf = Callable[[Generation, bool], Traffic]
"""Traffic of one micro-tile for a generation; the flag says that it is stored column by column."""


def c_int32(generation: Generation, transposed: bool) -> Traffic:
    if transposed:
        return _turned_int32(generation)
    if generation == AIE2:
        return _repeated(4, (_unit_a(),), (form(AIE2, "VST", "w / am"),))
    return _repeated(4, (form(AIE2P, "VLDA", "bm"),), (form(AIE2P, "VST", "bm"),))


def c_int16(generation: Generation, transposed: bool) -> Traffic:
    if transposed:
        return _turned_narrow(generation, 2, "2x")
    if generation == AIE2:
        return _repeated(2, (_unit_a(), form(AIE2, "VUPS")), (form(AIE2, "VST.SRS"),))
    return _repeated(2, (form(AIE2P, "VLDA.UPS", "2x 512b"),), (form(AIE2P, "VST.SRS", "2x cm"),))


def c_int8(generation: Generation, transposed: bool) -> Traffic:
    if transposed:
        return _turned_narrow(generation, 1, "4x")
    if generation == AIE2:
        return _repeated(1, (_unit_a(), form(AIE2, "VUPS")), (form(AIE2, "VST.SRS"),))
    return _repeated(1, (form(AIE2P, "VLDA.UPS", "4x 512b"),), (form(AIE2P, "VST.SRS", "4x dm"),))


def c_f32(generation: Generation, transposed: bool) -> Traffic:
    if generation == AIE2P or transposed:
        return c_int32(generation, transposed)
    return _repeated(2, (_unit_a(),), (form(AIE2, "VST", "w / am"),))


def c_bf16(generation: Generation, transposed: bool) -> Traffic:
    count = 1 if generation == AIE2 else 2
    if transposed:
        widen = form(AIE2, "VUPS") if generation == AIE2 else form(AIE2P, "VCONV", "fp32.bf16 x")
        narrow = form(AIE2, "VSRS") if generation == AIE2 else form(AIE2P, "VCONV", "bf16.fp32 cm -> x")
        return _turned_traffic(generation, count, widen, narrow)
    return _repeated(count, (form(generation, "VLDA.CONV"),), (form(generation, "VST.CONV"),))


def c_bfp16(generation: Generation, transposed: bool) -> Traffic:
    """A stream for each tile; a product with an identity block widens C, the store path narrows it.

    Block floats are never transposed.
    """
    pop = form(generation, "VLDA.POP", "512")
    load = (form(generation, "VLDA.FILL", "512"), pop, form(generation, "VMUL.f", "bfp16"))
    store = (form(generation, "VST.PUSH.CONV"), form(generation, "VST.FLUSH.CONV"))
    return _repeated(1, load, store)


def _turned_int32(generation: Generation) -> Traffic:
    """A 32-bit tile of four registers is transposed in two rounds of shuffles."""
    turn, enter_x = shuffle(generation), load(generation, "").form
    if generation == AIE2:
        enter, leave, store = form(AIE2, "VMOV"), form(AIE2, "VMOV"), form(AIE2, "VST", "w / am")
        return _repeated(4, (enter_x, turn, turn, enter), (leave, turn, turn, store))
    enter, leave = form(AIE2P, "VSHUFFLE", "bm <-"), form(AIE2P, "VMOV", "x <- bm")
    return _repeated(4, (enter_x, turn, enter), (leave, turn, turn, form(AIE2P, "VST", "x / w")))


def _turned_narrow(generation: Generation, count: int, ratio: str) -> Traffic:
    if generation == AIE2:
        return _turned_traffic(generation, count, form(AIE2, "VUPS"), form(AIE2, "VSRS"))
    widen = form(AIE2P, "VUPS", f"{ratio} w")
    narrow = form(AIE2P, "VSRS", "2x cm" if ratio == "2x" else "4x dm")
    return _turned_traffic(generation, count, widen, narrow)


def _turned_traffic(generation: Generation, count: int, widen: Form, narrow: Form) -> Traffic:
    turn, enter_x = shuffle(generation), load(generation, "").form
    store = form(generation, "VST", "w / am" if generation == AIE2 else "x / w")
    return _repeated(count, (enter_x, turn, widen), (narrow, turn, store))


def _unit_a() -> Form:
    """A 256-bit load into an accumulator, which only unit A can do."""
    return replace(form(AIE2, "VLDA/VLDB", "w 256b"), slots=(("lda",),))


def _repeated(count: int, load: Chain, store: Chain) -> Traffic:
    return (load,) * count, (store,) * count


def zero(generation: Generation) -> tuple[Operation, ...]:
    start = "w / am" if generation == AIE2 else "x / w"
    return (Operation((form(generation, "VST", start),), (("src", "zeros"),)),)


def zero_blocks(generation: Generation) -> tuple[Operation, ...]:
    """72 bytes to 64 elements: nine vectors to 512."""
    return zero(generation) * 9


def unscale(generation: Generation) -> tuple[Operation, ...]:
    """Four column blocks, three of them shifted right into themselves."""
    return shifted(generation) * 3


def shifted(generation: Generation) -> tuple[Operation, ...]:
    """One micro-tile of int32 shifted by way of 64-bit accumulators, a vector at a time."""
    if generation == AIE2P:
        widen = (Operation((form(AIE2P, "VLDA.UPS", "2x 512b"),), (), ("wide",)),)
        narrow = form(AIE2P, "VST.SRS", "2x cm")
    else:
        widen = (
            Operation((_unit_a(),), (), ("lanes",)),
            Operation((form(AIE2, "VUPS"),), (("src", "lanes"),), ("wide",)),
        )
        narrow = form(AIE2, "VST.SRS")
    return (*widen, Operation((narrow,), (("src", "wide"),))) * 4


def narrowed(wide: TrafficOf, narrow: TrafficOf) -> Callable[[Generation], tuple[Operation, ...]]:
    """One micro-tile loaded into an accumulator as `wide` and stored as `narrow`, block floats by one stream."""

    def body(generation: Generation) -> tuple[Operation, ...]:
        loads, stores = wide(generation, False)[0], narrow(generation, False)[1]
        parts = len(loads) // len(stores)
        enter = tuple(Operation(chain[:1], (), (f"part{i}",)) for i, chain in enumerate(loads))
        return enter + tuple(
            Operation(chain[:1], tuple(("src", f"part{i * parts + p}") for p in range(parts)))
            for i, chain in enumerate(stores)
        )

    return body


def scaled(generation: Generation) -> tuple[Operation, ...]:
    """Lanes of one float product from int32 to bfloat16: conversion, times the row's scale, times the column's."""
    names = ("sums low", "sums high")
    operations = [load(generation, name) for name in names]
    for step in range(TO_FLOAT_OPERATIONS):
        lanes = tuple(("s1", name) for name in names) if step == 0 else (("acc1", f"float{step - 1}"),)
        operations.append(Operation((_multiply(generation),), (*lanes, ("s2", "one")), (f"float{step}",)))
    return (*operations, *_by_two_scales(generation, f"float{TO_FLOAT_OPERATIONS - 1}"))


def scaled_floats(generation: Generation) -> tuple[Operation, ...]:
    """The same from float32."""
    high = load(generation, "sums high")
    return (high, load(generation, "sums"), *_by_two_scales(generation, "sums"))


def _by_two_scales(generation: Generation, value: str) -> tuple[Operation, ...]:
    """Two float32 products, each made of bfloat16 parts of both operands, and the store of the result.

    What the API does between registers and accumulators (moves, constants) is left out; it has the move slot to itself.
    """
    by_row = _float_product(generation, value, "row", "by row")
    by_column = _float_product(generation, "by row", "column", "result")
    return (*by_row, *by_column, Operation((form(generation, "VST.CONV"),), (("src", "result"),)))


def _float_product(generation: Generation, left: str, right: str, result: str) -> list[Operation]:
    """Both operands taken apart, then the products of their parts, small ones first, in one accumulator."""
    operations = [*_parts(generation, left, result), *_parts(generation, right, result)]
    pairs = sorted(((i, j) for i in range(FLOAT_PARTS) for j in range(FLOAT_PARTS)), key=sum, reverse=True)
    for place, (i, j) in enumerate(pairs):
        sums = (("acc1", f"{result} {place - 1}"),) if place else ()
        factors = (("s1", f"{result} {left}{i}"), ("s2", f"{result} {right}{j}"))
        name = result if place == len(pairs) - 1 else f"{result} {place}"
        operations.append(Operation((_multiply(generation),), (*sums, *factors), (name,)))
    return operations


def _parts(generation: Generation, value: str, product: str) -> list[Operation]:
    """Each part is narrowed from what the parts before it leave of the value; a constant's value is in a register."""
    narrow = form(AIE2, "VSRS") if generation == AIE2 else form(AIE2P, "VCONV", "bf16.fp32 cm -> x")
    rest, operations = value, []
    for part in range(FLOAT_PARTS):
        name = f"{product} {value}{part}"
        operations.append(Operation((narrow,), (("src", rest),), (name,)))
        if part < FLOAT_PARTS - 1:
            less = f"{product} {value} less {part}"
            reads = (("acc1", rest), ("s1", name), ("s2", "one"))
            operations.append(Operation((_multiply(generation),), reads, (less,)))
            rest = less
    return operations


def _multiply(generation: Generation) -> Form:
    return form(generation, "VMAC.f", "bm bf16" if generation == AIE2 else "bf16 X_X")
