"""What an array cannot hold: a good design, spoilt in one place, and the whole reason."""

from dataclasses import replace
from typing import Any

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
    SwitchOn,
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
    link_with: str = "",
    place: bool = True,
    **changes,
) -> Design:
    """A shim, two memtiles and a core, of which parts are replaced."""
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    mem = Tile("mem", 0, 1, TileKind.MEMTILE, held, locks, (channel or Channel("S2MM", 0, bds, "in"), *more))
    beside = Tile("beside", 1, 1, TileKind.MEMTILE, (NEXT,))
    core = Tile("core", 0, 2, TileKind.CORE, line, (GO,), core=Core(body, stack, link_with))
    made = Design("good", "npu2_2col", (shim, mem, beside, core), (Flow(shim.dma(0), (mem.dma(0),)),))
    made = replace(made, **dict[str, Any](allocations=(Allocation("into", shim, "MM2S", 0),)) | changes)
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
    "no quotes": (
        {"link_with": 'a"b.o'},
        """link_with = 'a"b.o' cannot stand in MLIR's quotes; leave out quotes and backslashes; .*""",
    ),
    "no quotes around lines": ({"link_with": "a\nb.o"}, r"link_with = 'a\\nb.o' cannot stand in MLIR's quotes; .*"),
    "kind": ({"tiles": (Tile("odd", 0, 1, TileKind.CORE),)}, "odd is no core but a memtile; change its row"),
    "place": (
        {"tiles": (Tile("a", 0, 0, TileKind.SHIM), Tile("b", 0, 0, TileKind.SHIM))},
        r"2 tiles stand at \(0, 0\); .*",
    ),
    "memory": (
        {"line": (Buffer("line", 16000, "i32", "a line"),), "stack": 2048},
        r"core \(0, 2\): 66048 bytes of 65536 \(a line: 64000, stack: 2048\); a stack of 1536 would fit, or choose .*",
    ),
    "memory but for a stack as cores have": (
        {"line": (Buffer("line", 64512 // 4, "i32", "a line"),), "stack": 2048},
        r"core \(0, 2\): 66560 bytes of 65536 \(a line: 64512, stack: 2048\); a stack of 1024 would fit, or choose .*",
    ),
    "memory but for less than a stack": (
        {"line": (Buffer("line", 16384 - 255, "i32", "a line"),)},
        r"core \(0, 2\): 65600 bytes of 65536 \(a line: 64516, stack: 1024\); choose smaller or fewer buffers",
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
    "lock value": (
        {"locks": (replace(FREE, init=64), FULL)},
        r"memtile \(0, 1\): a first lock value = 64 is outside 0 to 63, .*",
    ),
    "lock value below": (
        {"locks": (replace(FREE, init=-1), FULL)},
        r"memtile \(0, 1\): a first lock value = -1 is outside 0 to 63, .*",
    ),
    "lock below": ({"locks": (FREE, FULL, Lock("third", -1))}, r"memtile \(0, 1\): lock = -1 is .*"),
    "lock id": (
        {"locks": (FREE, FULL, Lock("third", 64))},
        r"memtile \(0, 1\): lock = 64 is outside 0 to 63, the locks of .*",
    ),
    "lock twice": (
        {"locks": (FREE, FULL, Lock("third", 1))},
        r"memtile \(0, 1\): 2 locks have id 1; number them apart",
    ),
    "bds": ({"bds": moves() * 25}, r"memtile \(0, 1\): 25 BDs for channels that share BD 0 to 23; .*"),
    "bd id": ({"bds": moves(bd_id=24)}, r"memtile \(0, 1\): number 24 of a BD whose channel may use BD 0 to 23; .*"),
    "bd of the other channels": (
        {"channel": Channel("S2MM", 1, moves(bd_id=23))},
        r"memtile \(0, 1\): number 23 of a BD whose channel may use BD 24 to 47; .*",
    ),
    "bd twice": ({"bds": moves(bd_id=3) * 2}, r"memtile \(0, 1\): 2 BDs have number 3; .*"),
    "queue": (
        {"more": (Channel("S2MM", 0, moves()),) * 4},
        r"memtile \(0, 1\): 5 tasks wait at S2MM 0, .* holds 4; .*",
    ),
    "channel": (
        {"channel": Channel("S2MM", 6, moves(), "in")},
        r"memtile \(0, 1\), S2MM 6 \(in\): there is no such channel, but S2MM and MM2S 0 to 5; use one",
    ),
    "direction": ({"channel": Channel("S2SS", 0, moves())}, r"memtile \(0, 1\), S2SS 0: there is no such channel.*"),
    "channel below": ({"channel": Channel("S2MM", -1, moves())}, r"memtile \(0, 1\), S2MM -1: there is no such .*"),
    "back": ({"channel": Channel("S2MM", 0, moves(), back=1)}, r"memtile .*, S2MM 0: it goes back to BD 1 of 1; .*"),
    "back below": ({"channel": Channel("S2MM", 0, moves(), back=-1)}, r"memtile .*: it goes back to BD -1 of 1; .*"),
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
    "count above": (
        {"bds": moves(release=Release(FULL, 64))},
        r"memtile .*, BD 0: it takes or gives 64 of full; use 1 to 63",
    ),
    "header": (
        {"bds": moves(packet=Packet(1))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: only MM2S sends headers and zeros; leave them out",
    ),
    "packet type": (
        {"channel": sends(packet=Packet(0, 8))},
        r"memtile \(0, 1\), MM2S 0, BD 0: pkt_type = 8 is outside 0 to 7, what .*; use one of those",
    ),
    "packet below": (
        {"channel": sends(packet=Packet(-1))},
        r"memtile .*, MM2S 0, BD 0: pkt_id = -1 is outside 0 to 31, .*",
    ),
    "padding": (
        {"bds": moves(padding=((0, 1),))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: only MM2S sends headers and zeros; leave them out",
    ),
    "packet": (
        {"channel": sends(packet=Packet(32))},
        r"memtile \(0, 1\), MM2S 0, BD 0: pkt_id = 32 is outside 0 to 31, what .*; use one of those",
    ),
    "pattern": (
        {"bds": moves(Pattern((4, 17), (16, 1)))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: last index 64 is outside the buffer of 64 elements; .*",
    ),
    "words": (
        {"held": (Buffer("held", 64, "i8"),), "bds": moves(Pattern((2, 6), (8, 1)), Buffer("held", 64, "i8"))},
        r"memtile \(0, 1\), S2MM 0 \(in\), BD 0: size 6 x 8 bit = 48 bit is no multiple of 32 bit .*",
    ),
    "pads": (
        {"channel": sends(padding=((0, 64),))},
        r"memtile .*, MM2S 0, BD 0: padding 64 after in dimension 0 \(d0\) exceeds the 63 granules of a memtile BD; .*",
    ),
    "flow": (
        {"flows": (Flow(Port("core", 2), (Port("mem", 0),)),)},
        "core's DMA : 2 does not send: a core has 2 of DMA; use one of those",
    ),
    "flow below": (
        {"flows": (Flow(Port("core", 0), (Port("mem", -1),)),)},
        "mem's DMA : -1 does not receive: a memtile has 6 of DMA; use one of those",
    ),
    "receives": (
        {"flows": (Flow(Port("core", 0), (Port("shim", 2),)),)},
        "shim's DMA : 2 does not receive: a shim has 2 of DMA; use one of those",
    ),
    "second target": (
        {"flows": (Flow(Port("core", 0), (Port("mem", 1), Port("mem", 6))),)},
        "mem's DMA : 6 does not receive: a memtile has 6 of DMA; use one of those",
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
        "the flow from core's DMA : 0: pkt_id = 32 is outside 0 to 31, .*",
    ),
    "cascade": (
        {"cascades": (Cascade("mem", "core"),)},
        "the cascade from mem to core leads .*",
    ),
    "cascade to a memtile": ({"cascades": (Cascade("core", "mem"),)}, "the cascade from core to mem leads .*"),
    "allocation": (
        {"allocations": (Allocation("into", Tile("mem", 0, 1, TileKind.MEMTILE), "MM2S", 0),)},
        "into names a channel of a memtile; name a shim's",
    ),
    "allocated channel": (
        {"allocations": (Allocation("into", Tile("shim", 0, 0, TileKind.SHIM), "S2MM", 2),)},
        "shim's DMA : 2 does not receive: a shim has 2 of DMA; use one of those",
    ),
    "program": (
        {"tiles": (Tile("odd", 0, 1, TileKind.MEMTILE, core=Core(())),), "allocations": (), "flows": ()},
        r"memtile \(0, 1\): a memtile runs no program; use a core",
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
    "loaded index": ({"body": (Load("x", LINE, 64),)}, r"core \(0, 2\): element 64 of line, which has 64; stay inside"),
    "index below": ({"body": (Load("x", LINE, -1),)}, r"core \(0, 2\): element -1 of line, which has 64; stay inside"),
    "core count below": ({"body": (Acquire(GO, 0),)}, r"core \(0, 2\): it takes or gives 0 of go; use 1 to 63"),
    "no turns": (
        {"body": (Advance(Rotation("turn", 0)),)},
        r"core \(0, 2\): turn has 0 turns; give it 1 or more",
    ),
    "no case": (
        {"body": (Load("x", LINE), SwitchOn("x", ()))},
        r"core \(0, 2\): a switch on x has no case; give it one, .*",
    ),
    "two cases": (
        {"body": (Load("x", LINE), SwitchOn("x", ((1, ()), (2, ()), (1, ()))))},
        r"core \(0, 2\): 2 cases of x are 1; join them",
    ),
    "wide case": (
        {"body": (Load("x", LINE), SwitchOn("x", ((1 << 32, ()),)))},
        r"core \(0, 2\): a case of x is 4294967296, which is no i32; give it a smaller one",
    ),
    "switch": ({"body": (SwitchOn("x", ((1, ()),)),)}, r"core \(0, 2\): x is no name here, but none; load it first"),
    "scope of a case": (
        {"body": (Load("x", LINE), SwitchOn("x", ((1, (Load("y", LINE),)),)), Store("y", LINE))},
        r"core \(0, 2\): y is no name here, but x; load it first",
    ),
    "in a case": (
        {"body": (Load("x", LINE), SwitchOn("x", ((1, ()), (2, (Store(1, LINE, 64),))), ()))},
        r"core \(0, 2\): element 64 of line, which has 64; stay inside",
    ),
    "rounds": ({"body": (Loop(-1, ()),)}, r"core \(0, 2\): -1 rounds; use 0 or more"),
    "packet without a flow": (
        {
            "more": (Channel("MM2S", 1, (Bd(HELD, whole(HELD), packet=Packet(4)),)),),
            "flows": (Flow(Port("mem", 1), (Port("core", 0),), packet=3),),
        },
        r"memtile \(0, 1\), MM2S 1, BD 0: it sends packet 4, flows from there carry 3; give a flow that packet, or .*",
    ),
    "packet on a circuit": (
        {
            "more": (Channel("MM2S", 1, (Bd(HELD, whole(HELD), packet=Packet(4)),)),),
            "flows": (Flow(Port("mem", 1), (Port("core", 0),)),),
        },
        r"memtile \(0, 1\), MM2S 1, BD 0: it sends packet 4, flows from there none; give a flow that packet, or .*",
    ),
    "fraction": ({"body": (Store(0.5, LINE),)}, r"core \(0, 2\): 0.5 is no i32; use a number .*"),
    "wide": ({"body": (Store(1 << 32, LINE),)}, r"core \(0, 2\): 4294967296 is no i32; use a number .*"),
    "low": ({"body": (Store(-(1 << 31) - 1, LINE),)}, r"core \(0, 2\): -2147483649 is no i32; use a number .*"),
    "wide argument": (
        {"body": (Call("work", (LINE, -(1 << 31) - 1)),)},
        r"core \(0, 2\): work gets -2147483649, which is no i32; give it a smaller one",
    ),
    "more than turns": (
        {"body": (Call("work", (TURN.of([LINE] * 3),)), Advance(TURN))},
        r"core \(0, 2\): work gets 3 buffers for the 2 turns of turn; give one buffer for each turn",
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


LAST = {
    "memory": {"line": (Buffer("line", 16384 - 256, "i32"),)},
    "end": {"line": (replace(LINE, address=0x10000 - 256),)},
    "start": {"line": (replace(LINE, address=1024),)},
    "behind another": {"line": (replace(LINE, address=1024), replace(LINE, name="second", address=1024 + 256))},
    "word": {"line": (replace(LINE, address=0x8004),)},
    "values": {"line": (replace(LINE, values=tuple(range(64))),)},
    "lock value": {"locks": (replace(FREE, init=63), FULL)},
    "lock id": {"locks": (FREE, FULL, Lock("third", 63))},
    "bds": {"bds": moves() * 24},
    "bd id": {"bds": moves(bd_id=23)},
    "bd of the other channels": {"channel": Channel("S2MM", 1, moves(bd_id=24))},
    "queue": {"more": (Channel("S2MM", 0, moves()),) * 3},
    "channel": {"channel": Channel("S2MM", 5, moves())},
    "back": {"channel": Channel("S2MM", 0, moves() * 2, back=1)},
    "runs": {"channel": Channel("S2MM", 0, moves(), back=None, runs=3)},
    "reach": {"channel": Channel("S2MM", 3, moves(buffer=NEXT))},
    "count": {"bds": moves(acquire=Acquire(FREE, 63), release=Release(FULL, 63))},
    "packet": {"channel": sends(packet=Packet(31, 7))},
    "packet 0": {"channel": sends(packet=Packet(0, 0))},
    "pads": {"channel": sends(padding=((63, 63),))},
    "flow": {"flows": (Flow(Port("core", 1), (Port("mem", 5), Port("shim", 1))),)},
    "packets that meet": {"flows": tuple(Flow(Port("core", i), (Port("mem", 1),), packet=31 * i) for i in (0, 1))},
    "allocation": {"allocations": (Allocation("out", Tile("shim", 0, 0, TileKind.SHIM), "S2MM", 1),)},
    "core count": {"body": (Acquire(GO, 63), Release(GO, 63), Acquire(GO), Release(GO))},
    "index": {"body": (Store(1, LINE, 63), Load("x", LINE, 63), Store(2, LINE, 0))},
    "rounds": {"body": (Loop(0, ()),)},
    "cases": {"body": (Load("x", LINE), SwitchOn("x", ((-(1 << 31), ()), (0, ()), ((1 << 31) - 1, ()))))},
    "numbers": {"body": (Store(-(1 << 31), LINE), Store((1 << 32) - 1, LINE))},
    "arguments": {"body": (Call("work", (LINE, -(1 << 31), (1 << 32) - 1)),)},
    "one turn": {"body": (Advance(Rotation("turn", 1)), Call("work", (Rotation("turn", 1).of([LINE]),)))},
}


@pytest.mark.parametrize("changes", LAST.values(), ids=LAST.keys())
def test_the_last_value_that_an_array_holds_is_good(changes):
    assert [str(reason) for reason in check(design(**changes))] == []


@pytest.mark.parametrize(
    ("source", "target", "good"),
    [
        ((1, 3), (2, 3), True), ((1, 3), (1, 2), True), ((1, 3), (0, 3), False), ((1, 3), (1, 4), False),
        ((1, 3), (1, 3), False), ((1, 3), (2, 2), False), ((0, 3), (2, 3), False), ((1, 4), (1, 2), False),
    ],
)  # fmt: skip
def test_cascades_lead_to_the_next_core_in_the_east_or_the_south(source, target, good):
    tiles = [Tile(f"core_{c}_{r}", c, r, TileKind.CORE) for c in range(3) for r in (2, 3, 4)]
    joined = Cascade("core_{}_{}".format(*source), "core_{}_{}".format(*target))
    told = [str(reason) for reason in check(Design("joined", "npu2", tuple(tiles), cascades=(joined,)))]
    what = f"the cascade from {joined.source} to {joined.target} leads to no core in the east or the south"
    assert told == ([] if good else [f"{what}; use a neighbour there"])


@pytest.mark.parametrize(("column", "index", "reaches"), [(0, 3, True), (2, 3, True), (3, 3, False), (2, 4, False)])
def test_a_memtiles_first_channels_reach_the_memtiles_beside_it(column: int, index: int, reaches: bool):
    other = Tile("other", column, 1, TileKind.MEMTILE, (HELD,), (FREE, FULL))
    here = Tile("here", 1, 1, TileKind.MEMTILE, channels=(Channel("S2MM", index, ring([HELD], FREE, FULL)),))
    told = [reason.what for reason in check(placed(Design("near", "npu2", (here, other))))]
    outside = [
        "held lies outside the memory that the channel reaches",
        "free is no lock that the channel reaches", "full is no lock that the channel reaches",
    ]  # fmt: skip
    assert told == ([] if reaches else outside)


@pytest.mark.parametrize(
    ("east", "north", "reaches"),
    [(0, 0, True), (-1, 0, True), (0, 1, True), (0, -1, True), (1, 0, False), (0, 2, False)],
)
def test_a_core_reaches_its_neighbours_in_the_west_north_and_south(east: int, north: int, reaches: bool):
    here = Tile("here", 1, 3, TileKind.CORE, core=Core((Call("work", (LINE,)),)))
    there = Tile("there", 1 + east, 3 + north, TileKind.CORE, (LINE,))
    tiles = (here, there) if (east, north) != (0, 0) else (replace(here, buffers=(LINE,)),)
    told = [reason.what for reason in check(placed(Design("near", "npu2", tiles)))]
    assert told == ([] if reaches else ["line is nothing of the core or its neighbours"])


def test_reserved_bds_are_left_to_the_sequences_and_counted():
    """Of the 24 of a memtile's even channels, two are written at run time; 22 are left."""

    def memtile(count: int, **more) -> Design:
        tile = Tile("mem", 0, 1, TileKind.MEMTILE, (HELD,), channels=(Channel("S2MM", 0, moves(**more) * count),))
        return placed(Design("reserved", "npu2", (replace(tile, reserved_bds=range(1, 3)),)))

    held = memtile(22)
    assert check(held) == []
    assert [bd.bd_id for bd in held.tiles[0].channels[0].bds] == [0, *range(3, 24)]
    (reason,) = check(memtile(23))
    assert reason.what == "25 BDs for channels that share BD 0 to 23"
    (reason,) = check(memtile(1, bd_id=2))
    assert reason.what == "2 BDs have number 2"


def test_all_faults_are_told_and_those_of_like_tiles_once():
    cores = tuple(Tile(f"core_{c}", c, 2, TileKind.CORE, core=Core((), 66000)) for c in range(3))
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    flows = (Flow(shim.dma(2), (cores[0].dma(0),)),)
    assert [str(reason) for reason in check(Design("large", "npu1", (*cores, shim), flows))] == [
        "core (0, 2) and 2 more: 66048 bytes of 65536 (stack: 66000); a stack of 65536 would fit, or choose smaller or "
        "fewer buffers",
        "shim's DMA : 2 does not send: a shim has 2 of DMA; use one of those",
    ]
