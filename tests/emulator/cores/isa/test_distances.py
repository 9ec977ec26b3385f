"""Distances between instructions, counted by running them: a table worked out by hand from what is published.

Sources: the tables of distances in AMD's and others' notes on the core (loads 7, VUNPACK 7, VUPS 3, VSRS 4 ...), which
29 real GEMM programs keep. A reader this many bundles behind its writer is the first that sees the new value.
"""

import pytest

from support.machine_code import EXECUTORS, run_text

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
    "byte store, load": ("st.s8 r1, [p2, #0]", "lda r9, [p2, #0]", "r9", 7),
}  # fmt: skip


def seen(executor, writer: str, reader: str, what: str, distance: int) -> int:
    """What a reader, `distance` bundles behind a writer, makes of its result."""
    gap = "nop\n" * (abs(distance) - 1)
    text = f"{writer}\n{gap}{reader}" if distance > 0 else f"{reader}\n{gap}{writer}"
    registers = {"p0": 0x70400, "p2": 0x70800, "r1": 3, "r8": 0x308, "x1": NEW, "x3": 0, "x4": NEW, "bmll3": NEW}
    core = run_text(executor, text + "\nnop" * 12, registers | {"crSRSMode": 0})
    return core.memory.load(0x70800, 64) if what == "memory" else core.read(what)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_result_is_seen_from_its_distance_on_and_not_before(executor, name, filled_memory):
    writer, reader, what, distance = DISTANCES[name]
    new = seen(executor, writer, reader, what, 12)
    old = seen(executor, writer, reader, what, -12)
    assert new != old
    before = distance - 1 if distance != 1 else -1
    assert seen(executor, writer, reader, what, distance) == new
    assert seen(executor, writer, reader, what, before) == old
