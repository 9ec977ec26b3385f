"""The text of a design that has every part of the templates in it, line by line as it was read and kept."""

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from bd_patterns import Pattern
from bdforge.array.mlir import parse
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
    Flow,
    Load,
    Lock,
    Loop,
    Packet,
    Release,
    Rotation,
    Store,
    SwitchOn,
    Tile,
    placed,
    render,
    ring,
    whole,
)
from bdforge.design.events import placed_sequence
from bdforge.design.sequences.interpret import Await, NumberedBd, Start, StartedTask, Stored, Wait
from bdforge.design.sequences.sequence_program import Program, ProgramArgument
from bdforge.devices import TileKind

KEPT = Path(__file__).parent / "data" / "every_part.mlir"
GO = Lock("go", 0, 1, "set when parameters are there")
PAIR, THREE = Rotation("pair"), Rotation("three", 3)
SMALL, LARGE = Buffer("small", 8, "i32", "numbers"), Buffer("large", 70000, "i8")
PARAMETERS = Buffer("parameters", 65, "i32")
LINES = tuple(Buffer(f"line_{i}", 16, "f32", values=(0.5, -2.0) * 8 if i else ()) for i in range(2))
FREE, FULL = Lock("free", 0, 2, "room"), Lock("full", 1)


def parts() -> tuple[Tile, ...]:
    """A shim, a memtile whose channels have all that a channel may have, a core with every statement, and a third."""
    shim = Tile("shim", 0, 0, TileKind.SHIM)
    sent = (
        Bd(SMALL, Pattern((4,), (1,), 4), Acquire(FULL), packet=Packet(7, 3)),
        Bd(SMALL, Pattern((2, 4), (4, 1)), Acquire(FULL, exactly=True), Release(FREE, 2), ((1, 0), (0, 2))),
    )
    channels = (
        Channel("S2MM", 0, ring([SMALL, LARGE], FREE, FULL), "from the host"),
        Channel("MM2S", 0, sent, back=1),
        Channel("MM2S", 0, (Bd(SMALL, whole(SMALL)),), "twice", None, 2),
    )
    memtile = Tile("mem", 0, 1, TileKind.MEMTILE, (SMALL, LARGE), (FREE, FULL), channels)
    body = (
        Acquire(GO),
        Load("rounds", PARAMETERS, 1),
        Loop("rounds", (Call("work", (PAIR.of(LINES), LINES[0], -3, "rounds")), Advance(PAIR)), "i"),
        Loop(2, (Call("other", (THREE.of((*LINES, LINES[0])).ahead(1), "k")), Advance(THREE)), "k"),
        SwitchOn(
            "rounds", ((1, (Advance(PAIR), Advance(THREE))), (-2, (Call("work", (*LINES, 2, 3)),))), (Release(GO),)
        ),
        SwitchOn("rounds", ((0, (Load("more", PARAMETERS, "rounds"), Store("more", PARAMETERS))),)),
        Loop(None, (Store("rounds", PARAMETERS, 2), Store(1.5, LINES[1]), Release(GO, 2))),
    )
    core = Tile("core", 0, 2, TileKind.CORE, (PARAMETERS, *LINES), (GO,), core=Core(body, 2048, "work.o"))
    return shim, memtile, core, Tile("beside", 1, 2, TileKind.CORE, core=Core(()))


def every_part() -> Design:
    shim, memtile, core, beside = tiles = parts()
    flows = (
        Flow(shim.dma(0), (memtile.dma(0),), "down"), Flow(memtile.dma(1), (core.dma(0), beside.dma(0)), "down"),
        Flow(memtile.dma(0), (core.dma(1), shim.dma(1)), "packets", 7), Flow(core.dma(1), (shim.dma(0),), "", 0, True),
    )  # fmt: skip
    allocations = tuple(Allocation(f"all_{way.lower()}", shim, way, 0) for way in ("MM2S", "S2MM"))
    made = placed(Design("every", "npu2_2col", tiles, flows, allocations, (Cascade("core", "beside"),)))
    return replace(made, comments=("first", "second"), sequences=(sequence(made),))


def sequence(design: Design):
    """Chains and single BDs, tokens and runs, every kind of write, waits for one and for two columns."""
    _, memtile, core, _ = design.tiles
    names = (("a", "i8", 8), ("c", "i32", 32))
    arguments = [ProgramArgument(name=name, type=type_, bits=bits, elements=0) for name, type_, bits in names]
    base, lock = core.address(core.buffers[0]), memtile.address(FULL)
    wide = Pattern((3, 2, 2, 8), (0, 64, 16, 1), 5)
    events = (
        Start(0, (
            StartedTask("MM2S", 0, 0, 1, False, (NumberedBd(0, Pattern((64,), (1,), 128), 3), NumberedBd(0, wide, 4))),
            Stored(base, (9,)), Stored(base + 4 * 63, (8,)), Stored(base + 4 * 64, (7,)), Stored(lock, (2,)),
            StartedTask("MM2S", 0, 0, 3, False, (NumberedBd(0, Pattern((64,), (1,)), 5),)),
            StartedTask("S2MM", 0, 0, 1, True, (NumberedBd(1, Pattern((4, 8), (16, 1)), 0),)),
            StartedTask("S2MM", 0, 0, 64, True, (NumberedBd(1, Pattern((4, 8), (16, 1), 64), 1),)),
        ), "all at once"),
        Start(1, (*(Stored(at, (1, 2, 0xFFFFFFFF)) for at in (0x1A0000, 0x1A0020)), Stored(0x1A0040, (4, 5)))),
        Await(0, (Wait("S2MM", 0, 0, 2), Wait("MM2S", 1, 1, 1))),
    )  # fmt: skip
    program = Program.model_construct(arguments=arguments)
    return placed_sequence("run", "what runs", design, program, (4096, 512), events, True)


def test_every_part_of_a_design_is_written_as_kept():
    got, wanted = render(every_part()).splitlines(), KEPT.read_text(encoding="utf-8").splitlines()
    for number, (line, kept) in enumerate(zip_longest(got, wanted, fillvalue="no line"), start=1):
        assert line == kept, f"line {number} of {KEPT.name} was {kept.strip()!r}, is {line.strip()!r}"


def test_the_kept_text_is_mlir_that_is_read():
    parse(KEPT.read_text(encoding="utf-8"), KEPT.name)


def test_narrow_waits_are_one_for_each_column():
    made = every_part()
    waits = (Await(0, (Wait("S2MM", 1, 0, 2),)),)
    program = Program.model_construct(arguments=[])
    told = [
        [(wait.direction, wait.channel, wait.column, wait.columns) for wait in event.waits]
        for wide in (True, False)
        for event in placed_sequence("run", "", made, program, (), (Start(0, ()), *waits), wide).events
    ]
    assert told == [[(0, 1, 0, 2)], [(0, 1, 0, 1), (0, 1, 1, 1)]]
