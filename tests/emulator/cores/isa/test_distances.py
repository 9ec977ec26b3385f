"""Distances between instructions, counted by running them: a table worked out by hand from what is published.

Sources: the tables of distances in AMD's and others' notes on the core (loads 7, VUNPACK 7, VUPS 3, VSRS 4 ...), which
29 real GEMM programs keep. A reader this many bundles behind its writer is the first that sees the new value.
"""

import pytest

from bdforge.core import isa
from bdforge.core.exact import instruction_plan as plan
from support import machine_code
from support.machine_code import EXECUTORS, code_of, drive, run_text

NEW = 0x0101010101010101010101010101010101010101010101010101010101010101
DISTANCES = {
    "scalar load, scalar read": ("lda r0, [p0, #0]", "mov r9, r0", "r9", 7),
    "scalar arithmetic": ("add r0, r1, r1", "mov r9, r0", "r9", 1),
    "scalar product": ("mul r0, r1, r1", "mov r9, r0", "r9", 2),
    "delayed move": ("mov.d3 r0, r1", "mov r9, r0", "r9", 4),
    "vector load, multiplier": ("vldb x0, [p0, #0]", "vmul dm1, x0, x4, r8", "dm1", 7),
    "vector load, unpacking": ("vldb wl0, [p0, #0]", "vunpack x9, wl0, unpackSign0", "x9", 1),
    "unpacking, multiplier": ("vunpack x0, wl1, unpackSign0", "vmul dm1, x0, x4, r8", "dm1", 7),
    "vector move, vector move": ("vband x0, x1, x1", "vbor x9, x0, x3", "x9", 1),
    "vector move, multiplier": ("vband x0, x1, x1", "vmul dm1, x0, x4, r8", "dm1", 2),
    "exponent move, exponent move": ("mov el0, el1", "mov el9, el0", "el9", 1),
    "upper exponent move, exponent move": ("mov eh0, el1", "mov el9, eh0", "el9", 1),
    "block move, block move": ("vmov ex0, ex1", "vmov ex9, ex0", "ex9", 1),
    "vector and, unpacking": ("vband x0, x1, x1", "vunpack x9, wl0, unpackSign0", "x9", -4),
    "accumulator load, multiplier": ("vlda bmll0, [p0, #0]", "vmac dm1, dm0, x4, x4, r8", "dm1", 4),
    "multiplier, integer chain": ("vmul dm0, x4, x4, r8", "vmac dm1, dm0, x4, x4, r8", "dm1", 2),
    "multiplier, store": ("vmul dm0, x4, x4, r8", "vst bmll0, [p2, #0]", "memory", 6),
    "multiplier, narrowing": ("vmul dm0, x4, x4, r8", "vsrs.2x wl9, bmll0, s0, srsSign1", "wl9", 6),
    "widening, narrowing": ("vups.2x bmll0, wl1, s0, upsSign1", "vsrs.2x wl9, bmll0, s0, srsSign1", "wl9", 3),
    "narrowing, multiplier": ("vsrs.2x wl0, bmll3, s0, srsSign1", "vmul dm1, x0, x4, r8", "dm1", 4),
    "loading and widening, multiplier": (
        "vlda.ups.2x bmll0, s0, [p0, #0], upsSign1", "vmac dm1, dm0, x4, x4, r8", "dm1", 6,
    ),
    "store, load of the same place": ("vst x1, [p2, #0]", "vldb x9, [p2, #0]", "x9", 1),
    "narrowing store, load": ("vst.srs.2x bmll3, s0, [p2, #0], srsSign1", "vldb wl9, [p2, #0]", "wl9", 3),
}  # fmt: skip


AIE2 = {
    "scalar load, scalar read": ("lda r0, [p0, #0]", "mov r9, r0", "r9", 7),
    "vector load, multiplier": ("vldb wl0, [p0, #0]", "vmul cm1, x0, x4, r8", "cm1", 7),
    "accumulator load, multiplier": ("vlda amll0, [p0, #0]", "vmac cm1, cm0, x4, x4, r8", "cm1", 5),
    "multiplier, integer chain": ("vmul cm0, x4, x4, r8", "vmac cm1, cm0, x4, x4, r8", "cm1", 2),
    "multiplier, store": ("vmul cm0, x4, x4, r8", "vst amll0, [p2, #0]", "memory", 5),
    "unpacking, multiplier": ("vunpack.d16.d8 x0, wl1", "vmul cm1, x0, x4, r8", "cm1", 7),
    "widening, narrowing": ("vups.s32.d16 bml0, wl1, s0", "vsrs.d16.s32 wl9, bml0, s0", "wl9", 3),
    "narrowing, multiplier": ("vsrs.d16.s32 wl0, bml3, s0", "vmul cm1, x0, x4, r8", "cm1", 4),
}
"""The same of AIE2, from its published result stages (loads and VUNPACK 7, multiplier 5, VSRS 4, VUPS 3)."""
EVERY = [("aie2p", row) for row in DISTANCES.values()] + [("aie2", row) for row in AIE2.values()]
NAMES = [f"aie2p: {name}" for name in DISTANCES] + [f"aie2: {name}" for name in AIE2]


def seen(executor, row, distance: int, generation: str) -> int:
    """What a reader, `distance` bundles behind a writer, makes of its result."""
    writer, reader, what, _ = row
    gap = "nop\n" * (abs(distance) - 1)
    text = f"{writer}\n{gap}{reader}" if distance > 0 else f"{reader}\n{gap}{writer}"
    registers = {"p0": 0x70400, "p2": 0x70800, "r1": 3, "r8": 0x308, "x1": NEW, "x3": 0, "x4": NEW}
    registers |= {"bmll3": NEW, "crSRSMode": 0, "el1": 0x5A} if generation == "aie2p" else {"bml3": NEW}
    core = executor(isa.load(generation), code_of(text + "\nnop" * 12, generation), machine_code.memories())
    for name, value in registers.items():
        core.write(name, value)
    drive(core)
    return core.memory.load(0x70800, 32) if what == "memory" else core.read(what)


def keeps(executor, row, generation: str) -> bool:
    """Whether a result is seen from its distance on, and not before."""
    distance = row[3]
    new, old = (seen(executor, row, far, generation) for far in (12, -12))
    assert new != old
    before = distance - 1 if distance != 1 else -1
    found = [seen(executor, row, at, generation) for at in (distance, before)]
    return found == [new, old]


@pytest.mark.parametrize(("generation", "row"), EVERY, ids=NAMES)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_result_is_seen_from_its_distance_on_and_not_before(executor, generation, row, filled_memory):
    assert keeps(executor, row, generation)


@pytest.mark.parametrize(
    ("second", "waits"),
    [
        ("lda r9, [p2, #0]", 6),
        ("vldb x9, [p2, #0]", 6),
        ("st r3, [p2, #16]", 6),
        ("st.s16 r3, [p2, #2]", 5),
        ("nop", 0),
    ],
)
@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_memory_waits_for_a_store_of_8_bits(executor, generation, second, waits):
    """Six cycles if it is needed in the next, as llvm-aie's simulator inserts them; loads see what was stored."""
    assert run_text(executor, "lda r9, [p2, #0]", {"p2": 0x70800}, generation).cycle == 2 + plan.DEPTH
    second = second.replace("vldb x9", "vldb wl9") if generation == "aie2" else second
    for apart in range(1, 9):
        text = f"st.s8 r1, [p2, #0]\n{'nop' * (apart > 1)}\n" + "nop\n" * (apart - 2) + second + "\nnop" * 12
        core = run_text(executor, text, {"r1": 0x5A, "p2": 0x70800}, generation)
        waited = max(waits - apart + 1, 0)
        assert core.cycle == core.bundles + plan.DEPTH + waited, apart
        assert (core.read("r9") if "lda" in second else core.memory.load(0x70800, 1)) == 0x5A
