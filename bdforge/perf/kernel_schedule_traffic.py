"""How micro-tiles of C move between memory and accumulators, and the passes over C made of such moves."""

from collections.abc import Callable
from dataclasses import replace

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.perf.isa import Form, form
from bdforge.perf.kernel_schedule_blocks import Chain
from bdforge.perf.kernel_schedule_kinds import Traffic
from bdforge.perf.kernel_schedule_loop import Operation
from bdforge.perf.kernel_schedule_operands import load, shuffle

FLOAT_PARTS = 9
"""Products of bfloat16 parts in one of float32 at full precision (AIE API, emulated float products)."""

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
    """A product with an identity block widens C, the store path narrows it; block floats are never transposed."""
    load = (form(generation, "VLDA.POP", "512"), form(generation, "VMUL.f", "bfp16"))
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
    """One micro-tile loaded into an accumulator as `wide` and stored as `narrow`."""

    def body(generation: Generation) -> tuple[Operation, ...]:
        loads, stores = wide(generation, False)[0], narrow(generation, False)[1]
        parts = len(loads) // len(stores)
        enter = tuple(Operation(chain, (), (f"part{i}",)) for i, chain in enumerate(loads))
        return enter + tuple(
            Operation(chain, tuple(("src", f"part{i * parts + p}") for p in range(parts)))
            for i, chain in enumerate(stores)
        )

    return body


def scaled(generation: Generation) -> tuple[Operation, ...]:
    """16 lanes through two float32 products, each of nine of bfloat16 parts; the splitting into parts is left out."""
    mac = form(generation, "VMAC.f", "bm bf16" if generation == AIE2 else "bf16 X_X")
    names = ("sums low", "sums high") if generation == AIE2 else ("sums",)
    lanes = tuple(("s1", name) for name in names)
    products = tuple(
        Operation((mac,), (("acc1", f"product{i}"), *lanes, ("s2", "scale")), (f"product{i + 1}",))
        for i in range(2 * FLOAT_PARTS)
    )
    store = Operation((form(generation, "VST.CONV"),), (("src", f"product{2 * FLOAT_PARTS}"),))
    return (*(load(generation, name) for name in names), *products, store)
