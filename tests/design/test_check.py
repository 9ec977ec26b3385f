"""What an array cannot hold: a good design, spoilt in one place, and the whole reason."""

from dataclasses import replace

import pytest

import bdforge
from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Bd,
    Buffer,
    Call,
    Cascade,
    Channel,
    Core,
    Design,
    DesignError,
    Flow,
    Load,
    Lock,
    Loop,
    Packet,
    Port,
    Release,
    Rotation,
    Store,
    Tile,
    check,
    placed,
    render,
    ring,
    whole,
)
from bdforge.devices import TileKind

HELD = Buffer("held", 64, "i32")
NEXT = Buffer("next_held", 64, "i32")
LINE = Buffer("line", 64, "i32")
FREE, FULL, GO = Lock("free", 0, 1), Lock("full", 1), Lock("go", 0, 1)
TURN = Rotation("turn")


def design(
    *,
    bds: tuple[Bd, ...] = ring([HELD], FREE, FULL),
    channel: Channel | None = None,
    more: tuple[Channel, ...] = (),
    held: tuple[Buffer, ...] = (HELD,),
    locks: tuple[Lock, ...] = (FREE, FULL),
    line: tuple[Buffer, ...] = (LINE,),
    body: tuple = (Acquire(GO), Call("work", (LINE,))),
    stack: int = 1024,
    place: bool = True,
    **changes,
) -> Design:
    """A shim, two memtiles and a core, of which parts are replaced."""
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    mem = Tile("mem", 0, 1, TileKind.MEMTILE, held, locks, (channel or Channel("S2MM", 0, bds, "in"), *more))
    beside = Tile("beside", 1, 1, TileKind.MEMTILE, (NEXT,))
    core = Tile("core", 0, 2, TileKind.CORE, line, (GO,), core=Core(body, stack))
    made = Design("good", "npu2_2col", (shim, mem, beside, core), (Flow(shim.dma(0), (mem.dma(0),)),))
    made = replace(made, allocations=(Allocation("into", shim, "MM2S", 0),), **changes)
    return placed(made) if place else made


def test_the_design_is_good_and_runs():
    assert check(design()) == []
    assert bdforge.emulate(render(design()), (), {"work": lambda line: None}).warnings == ()


def moves(pattern: Pattern | None = None, buffer: Buffer = HELD, **changes) -> tuple[Bd, ...]:
    return (Bd(buffer, pattern or whole(buffer), **changes),)


def sends(**changes) -> Channel:
    return Channel("MM2S", 0, moves(**changes))


FAULTS = {
    "device": ({"device": "npu9", "place": False}, "unknown device 'npu9'; known: npu1, npu2, .*"),
    "column": ({"device": "npu2_1col"}, "column 1 is outside npu2_1col, which has columns 0 to 0; .*"),
    "name": ({"locks": (FREE, FULL, Lock("held", 2))}, "2 of tiles, .* are called held; rename them"),
    "no name": ({"locks": (FREE, FULL, Lock("1 a", 2))}, "'1 a' is no name in MLIR; use letters, digits and _"),
    "kind": ({"tiles": (Tile("odd", 0, 1, TileKind.CORE),)}, "odd is no core but a memtile; change its row"),
    "place": (
        {"tiles": (Tile("a", 0, 0, TileKind.SHIM), Tile("b", 0, 0, TileKind.SHIM))},
        r"2 tiles stand at \(0, 0\); .*",
    ),
    "memory": (
        {"line": (Buffer("line", 16000, "i32", "a line"),), "stack": 2048},
        r"core \(0, 2\): 66048 bytes of 65536 \(a line: 64000, stack: 2048\); a stack of 1536 would fit, or choose .*",
    ),
    "overlap": (
        {"line": (replace(LINE, address=512),)},
        r"core \(0, 2\): line starts at 0x200, the stack ends at 0x400; move one",
    ),
    "end": (
        {"line": (replace(LINE, address=0xFF80),)},
        r"core \(0, 2\): line ends at 0x10080, the memory at 0x10000; move it down",
    ),
    "unplaced": ({"place": False}, r"memtile \(0, 1\): held has no address; let placed\(\) give it one"),
    "word": (
        {"line": (replace(LINE, address=0x8002),)},
        r"core \(0, 2\): line: 0x8002 is not at a word's start; move it",
    ),
    "values": (
        {"line": (replace(LINE, values=(1, 2)),)},
        r"core \(0, 2\): line has 64 elements, but 2 values; give all or none",
    ),
    "lock value": ({"locks": (replace(FREE, init=64), FULL)}, r"memtile \(0, 1\): lock starts at 64, above 63; .*"),
    "lock id": ({"locks": (FREE, FULL, Lock("third", 64))}, r"memtile \(0, 1\): lock 64 is above 63; use fewer locks"),
    "lock twice": (
        {"locks": (FREE, FULL, Lock("third", 1))},
        r"memtile \(0, 1\): 2 locks have id 1; number them apart",
    ),
    "bds": ({"bds": moves() * 25}, r"memtile \(0, 1\): 25 BDs for channels that share BD 0 to 23; .*"),
    "bd id": ({"bds": moves(bd_id=24)}, r"memtile \(0, 1\): number 24 of a BD whose channel may use BD 0 to 23; .*"),
    "bd twice": ({"bds": moves(bd_id=3) * 2}, r"memtile \(0, 1\): 2 BDs have number 3; .*"),
    "queue": (
        {"more": (Channel("S2MM", 0, moves()),) * 4},
        r"memtile \(0, 1\): 5 tasks wait at S2MM 0, .* holds 4; .*",
    ),
    "channel": (
        {"channel": Channel("S2MM", 6, moves(), "in")},
        r"memtile \(0, 1\), S2MM 6 \(in\): there is no such channel, but S2MM and MM2S 0 to 5; use one",
    ),
    "back": ({"channel": Channel("S2MM", 0, moves(), back=1)}, r"memtile .*, S2MM 0: it goes back to BD 1 of 1; .*"),
    "runs": ({"channel": Channel("S2MM", 0, moves(), runs=3)}, r"memtile .*: 3 runs of a chain that never ends; .*"),
    "reach": (
        {"channel": Channel("S2MM", 4, moves(buffer=NEXT))},
        r"memtile \(0, 1\), S2MM 4, BD 0: next_held lies outside the memory that the channel reaches; .*",
    ),
    "lock reach": (
        {"bds": moves(acquire=Acquire(GO))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: go is no lock that the channel reaches; .*",
    ),
    "count": ({"bds": moves(acquire=Acquire(FREE, 0))}, r"memtile .*, BD 0: it takes or gives 0 of free; use 1 to 63"),
    "padding": (
        {"bds": moves(padding=((0, 1),))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: only MM2S sends headers and zeros; leave them out",
    ),
    "packet": (
        {"channel": sends(packet=Packet(32))},
        r"memtile \(0, 1\), MM2S 0, BD 0: packet id 32, type 0; use ids below 32, types below 8",
    ),
    "pattern": (
        {"bds": moves(Pattern((4, 17), (16, 1)))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: last index 64 is outside the buffer of 64 elements; .*",
    ),
    "pads": (
        {"channel": sends(padding=((0, 64),))},
        r"memtile .*, MM2S 0, BD 0: padding 64 after in dimension 0 \(d0\) exceeds the 63 granules of a memtile BD; .*",
    ),
    "flow": (
        {"flows": (Flow(Port("core", 2), (Port("mem", 0),)),)},
        "core's DMA : 2 does not send: a core has 2 of DMA; use one of those",
    ),
    "bundle": (
        {"flows": (Flow(Port("core", 0), (Port("mem", 0, "Core"),)),)},
        "mem's Core : 0 does not receive: a memtile has 0 of Core; use another port",
    ),
    "circuits": (
        {"flows": (Flow(Port("core", 0), (Port("mem", 1),)), Flow(Port("core", 1), (Port("mem", 1),)))},
        "2 circuits end at mem's DMA : 1; .*",
    ),
    "nowhere": (
        {"flows": (Flow(Port("lost", 0), (Port("mem", 1),)),)},
        "lost's DMA : 0 is at no tile .*; add .*",
    ),
    "packet flow": (
        {"flows": (Flow(Port("core", 0), (Port("mem", 1),), packet=32),)},
        "the flow from core's DMA : 0 has packet id 32; use 0 to 31",
    ),
    "cascade": (
        {"cascades": (Cascade("mem", "core"),)},
        "the cascade from mem to core leads .*",
    ),
    "lost cascade": ({"cascades": (Cascade("core", "lost"),)}, "a cascade joins lost, no tile of the design; add it"),
    "core lock": ({"body": (Acquire(FREE),)}, r"core \(0, 2\): free is nothing of the core or its neighbours; .*"),
    "core count": ({"body": (Release(GO, 64),)}, r"core \(0, 2\): it takes or gives 64 of go; use 1 to 63"),
    "core buffer": ({"body": (Call("work", (HELD,)),)}, r"core .*: held is nothing of the core or its neighbours; .*"),
    "unknown": ({"body": (Loop("rounds", ()),)}, r"core \(0, 2\): rounds is no name here, but none; load it first"),
    "scope": (
        {"body": (Loop(2, (Load("inner", LINE),), "i"), Store("inner", LINE))},
        r"core \(0, 2\): inner is no name here, but none; load it first",
    ),
    "index": ({"body": (Store(1, LINE, 64),)}, r"core \(0, 2\): element 64 of line, which has 64; stay inside"),
    "rounds": ({"body": (Loop(-1, ()),)}, r"core \(0, 2\): -1 rounds; use 0 or more"),
    "fraction": ({"body": (Store(0.5, LINE),)}, r"core \(0, 2\): 0.5 is no i32; use a number .*"),
    "wide": ({"body": (Store(1 << 32, LINE),)}, r"core \(0, 2\): 4294967296 is no i32; use a number .*"),
    "wide argument": (
        {"body": (Call("work", (LINE, -(1 << 31) - 1)),)},
        r"core \(0, 2\): work gets -2147483649, which is no i32; give it a smaller one",
    ),
    "turns": (
        {"body": (Call("work", (TURN.of([LINE]),)), Advance(TURN))},
        r"core \(0, 2\): work gets 1 buffers for the 2 turns of turn; give one buffer for each turn",
    ),
    "signature": (
        {"body": (Call("work", (LINE,)), Call("work", (LINE, 3)))},
        r"core .*: work is called with \(64 x i32, i32\), before with \(64 x i32\); call it in one way",
    ),
    "float": (
        {"line": (Buffer("line", 64, "f32"),), "body": (Load("x", Buffer("line", 64, "f32")),)},
        r"core \(0, 2\): x would be f32; load integers, give kernels buffers",
    ),
    "store": (
        {"line": (LINE, Buffer("small", 64, "i8")), "body": (Load("x", LINE), Store("x", Buffer("small", 64, "i8")))},
        r"core \(0, 2\): x is i32, an element of small i8; use one type",
    ),
}


@pytest.mark.parametrize(("changes", "reason"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_with_its_place_and_limit(changes, reason):
    with pytest.raises(DesignError, match=f"(?m)^good: {reason}$"):
        render(design(**changes))


def test_all_faults_are_told_and_those_of_like_tiles_once():
    cores = tuple(Tile(f"core_{c}", c, 2, TileKind.CORE, core=Core((), 66000)) for c in range(3))
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    flows = (Flow(shim.dma(2), (cores[0].dma(0),)),)
    assert [str(reason) for reason in check(Design("large", "npu1", (*cores, shim), flows))] == [
        "core (0, 2) and 2 more: 66048 bytes of 65536 (stack: 66000); a stack of 65536 would fit, or choose smaller or "
        "fewer buffers",
        "shim's DMA : 2 does not send: a shim has 2 of DMA; use one of those",
    ]


def test_neighbours_within_reach_are_good():
    """A memtile's channels 0 to 3 reach the next one, a core the memory of the core below."""
    assert check(design(bds=moves(buffer=NEXT))) == []
    above = Tile("above", 0, 3, TileKind.CORE, core=Core((Acquire(GO), Call("work", (LINE,)))))
    made = design()
    assert check(replace(made, tiles=(*made.tiles, above))) == []
