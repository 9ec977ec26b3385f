"""How the bytes of y = f(a, b), or f(a), go: the array's design, and the sequence program of any length.

Each column works alone on a run of the elements. Its memtile deals tiles of a and b to its cores, in turn on one
channel of each, and joins theirs of y. A panel is what a column takes at a time: a tile for each core.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    RtpAddresses,
    Slots,
    Tile,
    in_turn,
    placed,
)
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, all_of, any_of, ceildiv, largest, least
from bdforge.devices import FIRST_CORE_ROW
from bdforge.devices.limits import GRANULE_BITS
from bdforge.devices.types import ElementType

DEAL_CHANNELS = (1, 3, 5, 0)
"""MM2S channels of a memtile to its cores: four rows take all its BDs, 24 of even channels and 24 of odd ones."""
JOIN_CHANNEL, HELD_CHANNEL = 4, 2
"""MM2S channels of y, and of what all cores hold. S2MM channels are a = 0, b or what is held = 1, from 2 on y."""
LARGEST_LENGTH = 1 << 30
"""Elements of a problem: a BD counts its words in 32 bits."""


@dataclass(frozen=True, slots=True)
class ElementwiseTiling:
    """Cores in use, and the elements of a core's tile.

    With the name of what is `held`, an operand of a tile's elements that each core keeps for a whole problem, a tile is
    a row, and problems are so many `rows`. `buffers` are those of an operand in a core.
    """

    type: ElementType
    operands: tuple[str, ...]
    tile: int
    rows: int
    columns: int
    held: str = ""
    buffers: int = 2

    @property
    def panel(self) -> int:
        """Elements of a panel."""
        return self.rows * self.tile


def map_elementwise(
    name: str, device: str, tiling: ElementwiseTiling, symbol: str, stack_bytes: int, comment: str
) -> Design:
    """The design for the array that MLIR calls `device`, without sequences; cores call `symbol` with tiles of all."""
    columns, rows = range(tiling.columns), range(FIRST_CORE_ROW, FIRST_CORE_ROW + tiling.rows)
    shims = [Tile.shim(c) for c in columns]
    memtiles = [_memtile(tiling, c) for c in columns]
    cores = [[_core_tile(tiling, c, row, symbol, stack_bytes, f"{name}.o") for row in rows] for c in columns]
    tiles = (*shims, *memtiles, *(tile for column in cores for tile in column))
    flows = tuple(_flows(tiling, shims, memtiles, cores))
    channels = (*((x.lower(), "MM2S", i) for i, x in enumerate(_inputs(tiling))), ("y", "S2MM", 0))
    names = tuple(Allocation(f"{x}_{shim.column}", shim, way, i) for shim in shims for x, way, i in channels)
    return placed(Design(name, device, tiles, flows, names, comments=(comment,)))


def _inputs(tiling: ElementwiseTiling) -> tuple[str, ...]:
    """What shims send, by channel."""
    return (*tiling.operands, tiling.held) if tiling.held else tiling.operands


def _flows(
    tiling: ElementwiseTiling, shims: list[Tile], memtiles: list[Tile], cores: list[list[Tile]]
) -> Iterator[Flow]:
    what = " and ".join(tiling.operands).lower()
    for shim, memtile in zip(shims, memtiles, strict=True):
        for channel, name in enumerate(_inputs(tiling)):
            named = name.lower() if name == tiling.held else what
            yield Flow(shim.dma(channel), (memtile.dma(channel),), f"{named}: DRAM to memtiles")
    if tiling.held:
        for memtile, column in zip(memtiles, cores, strict=True):
            every = tuple(core.dma(1) for core in column)
            yield Flow(memtile.dma(HELD_CHANNEL), every, f"{tiling.held.lower()}: to all cores of a column")
    for memtile, column in zip(memtiles, cores, strict=True):
        for channel, core in zip(DEAL_CHANNELS, column, strict=False):
            yield Flow(memtile.dma(channel), (core.dma(0),), f"{what}: tiles in turn to each core")
    for memtile, column in zip(memtiles, cores, strict=True):
        for row, core in enumerate(column):
            yield Flow(core.dma(0), (memtile.dma(2 + row),), "y: tiles of a column join in its memtile")
    for shim, memtile in zip(shims, memtiles, strict=True):
        yield Flow(memtile.dma(JOIN_CHANNEL), (shim.dma(0),), "y: memtiles to DRAM")


def _memtile(tiling: ElementwiseTiling, column: int) -> Tile:
    """Each core row has stores of its own: with one for all, a fast core would take a slow one's turn."""
    locks = Locks(f"mem_{column}")
    rows, tile = range(tiling.rows), (tiling.tile, tiling.type)
    names = [name.lower() for name in (*tiling.operands, "y")]
    *given, y = ([Slots.of(locks, f"{x}{row}", *tile, f"{x} of core row {row}") for row in rows] for x in names)
    channels = [Channel("S2MM", i, in_turn(s.fill() for s in x), f"{names[i]} from DRAM") for i, x in enumerate(given)]
    channels += [Channel("S2MM", 2 + row, y[row].fill(), f"y from core row {row}") for row in rows]
    channels.append(Channel("MM2S", JOIN_CHANNEL, in_turn(s.send() for s in y), "y of the column"))
    for row in rows:
        tiles = in_turn(x[row].send() for x in given)
        channels.append(Channel("MM2S", DEAL_CHANNELS[row], tiles, f"{' and '.join(names[:-1])} to core row {row}"))
    kept = _held(tiling, locks)
    for slots in kept:
        channels.append(Channel("S2MM", len(given), slots.fill(), f"{tiling.held.lower()} from DRAM"))
        channels.append(Channel("MM2S", HELD_CHANNEL, slots.send(), f"{tiling.held.lower()} to all core rows"))
    return Tile.holding(locks, column, 1, (*(slots for x in (*given, y) for slots in x), *kept), channels)


def _held(tiling: ElementwiseTiling, locks: Locks) -> tuple[Slots, ...]:
    """Where what is held lies, once; nothing where nothing is."""
    name = tiling.held.lower()
    return (Slots.of(locks, name, tiling.tile, tiling.type, f"{name} of a problem", count=1),) if name else ()


def _core_tile(tiling: ElementwiseTiling, column: int, row: int, symbol: str, stack_bytes: int, link_with: str) -> Tile:
    """A core: once told of how many tiles, for each it waits for its operands and room for y."""
    locks, names = Locks(f"core_{column}_{row}"), [name.lower() for name in (*tiling.operands, "y")]
    *given, y = (Slots.of(locks, x, tiling.tile, tiling.type, f"{x} tile", count=tiling.buffers) for x in names)
    kept = _held(tiling, locks)
    parameters = Parameters.of(locks, "tiles", ["tiles"])
    turn = Rotation("turn", tiling.buffers)
    tile = (
        *(Acquire(lock) for lock in (*(x.full for x in given), y.free)),
        Call(symbol, (*(turn.of(x.buffers) for x in given), *(x.buffers[0] for x in kept), turn.of(y.buffers))),
        *(Release(lock) for lock in (*(x.free for x in given), y.full)),
        Advance(turn),
    )
    held, given_back = (Acquire(x.full) for x in kept), (Release(x.free) for x in kept)
    body = (parameters.problems(*held, Loop("tiles", tile, "tile"), *given_back),)
    channels = (
        Channel("S2MM", 0, in_turn(x.fill() for x in given), f"{' and '.join(names[:-1])} in"),
        *(Channel("S2MM", 1, x.fill(), f"{tiling.held.lower()} in") for x in kept),
        Channel("MM2S", 0, y.send(), "y out"),
    )
    core = Core(body, stack_bytes, link_with)
    return Tile.holding(locks, column, row, (*given, *kept, y), channels, core, parameters.buffer)


class ElementwiseProgram:
    """Writes the sequence program: y of `length` elements, or of so many `rows`, in one step.

    Columns take as many panels each, but for one, one behind the other. The last panel moves back, so that it ends with
    the operands: what it covers twice is computed twice, with one result. Operands of no whole words, or of less than a
    panel, are staged.
    """

    def __init__(self, tiling: ElementwiseTiling, cores: tuple[RtpAddresses, ...], in_flight: int):
        size = "rows" if tiling.held else "length"
        self.tiling, self.cores, self.build = tiling, cores, Builder([size], in_flight)
        self.size, self.unit = self.build.parameter(size), tiling.tile if tiling.held else 1
        self.length, granule = self.size * self.unit, GRANULE_BITS // tiling.type.bits
        odd = ~(self.length % granule).equals(0)
        self.staged = any_of(odd, self.length < tiling.panel)
        self.walked = largest(ceildiv(self.length, granule) * granule, tiling.panel)
        self.panels = ceildiv(self.walked, tiling.panel)
        self.used = least(self.panels, tiling.columns)
        self.moves = ~(self.walked % tiling.panel).equals(0)

    def program(self) -> Program:
        build, n, most = self.build, self.size, LARGEST_LENGTH // self.unit
        outside, held = any_of(n < 1, n > most), self.tiling.held
        build.require(~outside, f"{'rows' if held else 'length'} = {{}} is outside 1 to {most}", n)
        given = self.tiling.operands
        for name in given:
            self.operand(name, "in")
        if held:
            self.held_operand()
        self.operand("Y", "out")
        with build.step([("S2MM", 0, 0, self.used)], "{} panels on {} columns", (self.panels, self.used)):
            for argument in range(len(given)):
                self.tasks(argument, "MM2S", argument)
            if held:
                self.held_tasks()
            for core in self.cores:
                _, tiles = self.share(core.column)
                with build.when(tiles > 0):
                    build.set_parameters(core.parameters, {0: tiles}, core.go)
            self.tasks(len(_inputs(self.tiling)), "S2MM", 0)
        return build.program

    def operand(self, name: str, way: str) -> None:
        """An operand as it lies, or a staged copy with zeros behind."""
        type_, n = self.tiling.type, self.walked
        argument = self.build.argument(name, type_.memory, type_.bits, n)
        axes, dims = [Axis(self.length, n)], [Dim(0, n)]
        if self.tiling.held:
            axes = [Axis(self.size, n // self.unit), Axis(self.unit)]
            dims = [Dim(0, n // self.unit, stride=self.unit), Dim(1, self.unit)]
        self.build.operand(name, argument, way, type_.name, type_.bits, axes, dims, staged=self.staged)

    def held_operand(self) -> None:
        """What is held, as it lies."""
        type_, n = self.tiling.type, self.unit
        argument = self.build.argument(self.tiling.held, type_.memory, type_.bits, n)
        axes, dims = [Axis(n)], [Dim(0, n)]
        self.build.operand(self.tiling.held, argument, "in", type_.name, type_.bits, axes, dims, staged=0)

    def held_tasks(self) -> None:
        """What is held, to each column that has a share."""
        channel = len(self.tiling.operands)
        for column in range(self.tiling.columns):
            with self.build.when(self.share(column)[1] > 0):
                self.build.task("MM2S", channel, column, self.build.bd(channel, 0, (self.unit,), (1,)))

    def share(self, column: int) -> tuple[Expr, Expr]:
        """(first panel, panels) of a column: the first ones take what is left over."""
        columns = self.tiling.columns
        each, rest = self.panels // columns, self.panels % columns
        return each * column + least(rest, column), each + (rest > column)

    def tasks(self, argument: int, way: str, channel: int) -> None:
        """Each column's run of an argument: its panels as they lie, then the one that moved back."""
        panel, build = self.tiling.panel, self.build
        for column in range(self.tiling.columns):
            first, count = self.share(column)
            moved = all_of(self.moves, self.used.equals(column + 1))
            straight = count - moved
            run = build.bd(argument, first * panel, (straight * panel,), (1,), when=straight > 0)
            last = build.bd(argument, self.walked - panel, (panel,), (1,), when=moved)
            with build.when(count > 0):
                build.task(way, channel, column, run, last, token=way == "S2MM")
