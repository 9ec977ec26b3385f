"""Operators on streams, y, s = f(a, b, w) tile by tile: what an operator tells their mapping of its operands.

`stream_mapping.map_streams` is the array's design, `stream_program.StreamProgram` the sequence program of any size;
both take a `StreamTiling`. A problem is so many *positions* along one axis, "length" (elements) or "rows". A core's
*tile* is some positions of every stream that comes and goes, a *panel* what a column takes at a time: a tile for each
of its cores. What is held comes once for a problem and stays in each core.

A tile that no core holds comes in *chunks*, parts of its row, and as often as the kernel has *passes* over it: memtiles
hold the row and send it again. Then what is held comes in chunks beside it, for each panel once more.
"""

from dataclasses import dataclass
from math import prod

from bd_patterns import Pattern
from bdforge.devices.limits import HOST_BUFFERS
from bdforge.devices.types import ElementType

DEAL, HOLD = 0, 1
"""MM2S channel of shims, S2MM channel of memtiles and cores: of what comes tile by tile, and of what is held."""


@dataclass(frozen=True, slots=True)
class TileStream:
    """An operand of the user's: its name there ("X"), element type, and what stands at a position.

    The array of the user has the shape (positions, *shape): () is an element, (width,) a row. Of an operand that is
    held, `shape` is all of it. `walk`: the order in which a memtile deals a tile, or puts what comes of one in its
    place; None: as it lies.
    """

    name: str
    type: ElementType
    shape: tuple[int, ...] = ()
    walk: Pattern | None = None

    @property
    def elements(self) -> int:
        """At a position, or of all that is held."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class StreamTiling:
    """The streams of an operator in the order of its arguments, the positions of a tile, and the cores in use.

    The kernel is called with a tile of each of `inputs`, all that is `held`, and a tile of each of `outputs`. A tile of
    a single element stands in a whole vector of a core's memory, of which DMAs move the first element. `buffers` are
    those of a stream in a core. `axis` names the parameter of problems. `calls`: by name the streams that each of
    several kernels takes, which work on a whole tile one after the other; none: one kernel takes all.
    `joined`: a kernel makes all outputs in one array, one behind the other (tiles of one position). `apart`: each
    stream is an argument of its own, more than NPUs take.

    With `chunks` above 1 (of tiles of one position) there is a kernel for each of the `passes` over a tile. It is
    called for each chunk with a chunk of all inputs one behind the other, of all that is held, and of all outputs,
    single elements among them; with `state_bytes`, which stay; and with the number of the chunk. Outputs are what the
    last pass makes of them; what others write there is theirs till the next call. With a single pass it is the kernel
    of whole tiles, which are cut freely: it is called with a chunk of each operand, but with all of inputs that are
    `shared` and of single elements that are held.
    """

    axis: str
    tile: int
    inputs: tuple[TileStream, ...]
    outputs: tuple[TileStream, ...]
    rows: int
    columns: int
    held: tuple[TileStream, ...] = ()
    buffers: int = 2
    chunks: int = 1
    passes: int = 1
    state_bytes: int = 0
    calls: tuple[tuple[str, ...], ...] = ()
    joined: bool = False
    apart: bool = False
    shared: tuple[TileStream, ...] = ()

    @property
    def panel(self) -> int:
        """Positions of a panel."""
        return self.rows * self.tile

    @property
    def fed(self) -> tuple[tuple[int, tuple[TileStream, ...]], ...]:
        """(channel, inputs that take turns on it), as shims send and memtiles receive them.

        Where nothing is held its channel is free, so that every other input goes there.
        """
        ways = 1 if self.held or self.chunks > 1 else min(2, len(self.inputs))
        return tuple((channel, self.inputs[channel::ways]) for channel in range(ways))

    @property
    def in_turn(self) -> bool:
        """Whether streams take turns on a shim's channel, or some come again for each panel."""
        turns = len(self.outputs) > 1 or any(len(streams) > 1 for _, streams in self.fed)
        return turns or self.repeats

    @property
    def repeats(self) -> bool:
        """Whether what is held comes for each panel."""
        return self.chunks > 1 and any(stream.elements > 1 for stream in self.held)

    @property
    def arguments(self) -> tuple[tuple[TileStream, ...], ...]:
        """Streams by the arguments of a sequence, of which NPUs take five.

        Where each cannot have its own, what is held shares one, and outputs follow the one before them, from the last
        one on; hosts copy what shares.
        """
        inputs, held, outputs = (tuple((one,) for one in some) for some in (self.inputs, self.held, self.outputs))
        if self.apart:
            return (*inputs, *held, *outputs)
        if held and len(inputs) + len(held) + len(outputs) > HOST_BUFFERS:
            held = (self.held,)
        while len(inputs) + len(held) + len(outputs) > HOST_BUFFERS and len(outputs) > 1:
            outputs = (*outputs[:-2], outputs[-2] + outputs[-1])
        return (*inputs, *held, *outputs)

    def elements(self, stream: TileStream) -> int:
        """Of a stream's tile."""
        return self.tile * stream.elements

    def stores(self, streams: tuple[TileStream, ...]) -> tuple[tuple[TileStream, ...], ...]:
        """Streams by the stores of tiles that hold them: one each, what is shared first, but together lie chunks of all
        others that go one way, and outputs that are joined."""
        together = self.chunks > 1 or (self.joined and streams == self.outputs)
        alone = tuple(stream for stream in streams if not together or self.shares(stream))
        rest = tuple(stream for stream in streams if stream not in alone)
        return (*((stream,) for stream in alone), *((rest,) if rest else ()))

    def shares(self, stream: TileStream) -> bool:
        """Whether chunks of a tile share an input."""
        return self.chunks > 1 and stream in self.shared

    def piece(self, stream: TileStream) -> int:
        """Elements of a tile, or of a chunk of one, that a kernel is called with; a single one comes with each."""
        cut = stream.elements > 1 and not self.shares(stream)
        return self.elements(stream) // (self.chunks if cut else 1)

    def names(self, streams: tuple[TileStream, ...]) -> str:
        """As comments of the text have them."""
        return " and ".join(stream.name.lower() for stream in streams)
