"""A core's tile: its buffers, locks and channels, and its program."""

from dataclasses import dataclass, replace

from bd_patterns import Pattern
from bdforge.design.memory import Acquire, Bd, Buffer, Lock, Locks, Release, ping_pong, ring
from bdforge.design.model import Channel, Tile
from bdforge.design.parameters import PARAMETER_BYTES, Parameters
from bdforge.design.program import Advance, Call, Core, Loop, Rotation, Statement
from bdforge.devices import FIRST_CORE_ROW, TileKind
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.gemm.finish import finish_for
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.spec import GemmSpec

K_STEPS, OUTPUT_TILES = range(2)
"""Run-time parameters: K/k and the core's tiles of C."""


def core_parts(a, b, c, c_buffers):
    """(buffers, bytes of each) of a core for `occupied`, from the bytes of one A, B and C; numbers or arrays."""
    return (2, a), (2, b), (c_buffers, c), (1, PARAMETER_BYTES)


def operand_buffers(name: str, elements: int, type_: ElementType, role: str, count: int = 2) -> tuple[Buffer, ...]:
    """One or two buffers of `elements` elements of an operand's type."""
    return ping_pong(name, type_.memory_elements(elements), type_.memory, role, count)


def object_file(spec: GemmSpec) -> str:
    """The file that holds all kernels of a design."""
    return f"{spec.name}.o"


@dataclass(frozen=True, slots=True)
class GemmCore:
    """What a core's tile holds, by role; locks by name."""

    tile: Tile
    a: tuple[Buffer, ...]
    b: tuple[Buffer, ...]
    c: tuple[Buffer, ...]
    rtp: Buffer
    locks: dict[str, Lock]


def core_tile(spec: GemmSpec, kernel: Kernel, column: int, row: int) -> Tile:
    """The core at (column, row), with A in parts of m/rho rows."""
    m, k, n = spec.tile.m, spec.tile.k, spec.tile.n
    name, locks = f"core_{column}_{row}", Locks(f"core_{column}_{row}")
    a = operand_buffers(f"{name}_a", m // spec.buffers.rho * k, kernel.a, "A tile, micro-tiles")
    b = operand_buffers(f"{name}_b", k * n, kernel.b, "B tile, micro-tiles")
    c = operand_buffers(f"{name}_c", m * n, kernel.accumulator, "C tile, micro-tiles", spec.buffers.c_buffers)
    parts = c_parts(spec)
    a_locks, b_locks, c_locks = locks.pair("a", 2, "A"), locks.pair("b", 2, "B"), locks.pair("c", len(c) * parts, "C")
    rtp = Parameters.of(locks, "K/k, output tiles").buffer
    size, apart = _c_elements(spec, kernel) // parts, kernel.accumulator.memory_elements(m * n) // parts
    out = [Pattern((size,), (1,), offset=part * apart) for part in range(parts)]
    sent = tuple(Bd(buffer, part, Acquire(c_locks[1]), Release(c_locks[0])) for buffer in c for part in out)
    channels = (
        Channel("S2MM", 0, ring(a, *a_locks), "A in"),
        Channel("S2MM", 1, ring(b, *b_locks), "B in"),
        Channel("MM2S", 0, sent, "C out"),
    )
    tile = Tile(name, column, row, TileKind.CORE, (*a, *b, *c, rtp), tuple(locks.taken), channels)
    return replace(tile, core=Core(_program(spec, kernel, core_of(tile)), spec.buffers.stack_bytes, object_file(spec)))


def _c_elements(spec: GemmSpec, kernel: Kernel) -> int:
    """Elements of the accumulators' buffer that hold finished C: its start, where C is the narrower type."""
    bits = spec.tile.m * spec.tile.n * TYPES[spec.c].bits
    return bits // kernel.accumulator.memory_bits


def core_of(tile: Tile) -> GemmCore:
    """What `tile` holds, found by name."""

    def buffers(part: str) -> tuple[Buffer, ...]:
        return tuple(b for b in tile.buffers if b.name.startswith(f"{tile.name}_{part}_"))

    locks = {lock.name.removeprefix(f"{tile.name}_"): lock for lock in tile.locks}
    return GemmCore(tile, buffers("a"), buffers("b"), buffers("c"), Parameters.held(tile).buffer, locks)


def c_parts(spec: GemmSpec) -> int:
    """Parts in which a core finishes and sends a tile of C."""
    return spec.buffers.rho if spec.buffers.c_in_parts else 1


def fixed_steps(spec: GemmSpec) -> int:
    """Steps of K that cores take beside those that they are told of: a first and a last one of their own."""
    return 2 if spec.buffers.c_in_parts else 0


def _program(spec: GemmSpec, kernel: Kernel, core: GemmCore) -> tuple[Statement, ...]:
    """For ever: wait for the parameters, then compute so many tiles of C, each in so many steps of K.

    The epilogue's numbers follow the last tile of B through the same buffers.
    """
    apart = spec.buffers.rho > 1 or spec.epilogue.fed
    b_turns, c_turns = Rotation("b" if apart else "ab"), Rotation("c", len(core.c))
    a_turns = Rotation("a") if apart else b_turns
    a, b, c = a_turns.of(core.a), b_turns.of(core.b), c_turns.of(core.c)
    take, give = (
        {x: use(core.locks[f"{x}_{end}"]) for x in "ab"} for use, end in ((Acquire, "full"), (Release, "free"))
    )
    part = ("part",) if spec.buffers.rho > 1 else ()
    multiply, next_b = Call(kernel.multiply, (a, b, c, *part)), (give["b"], Advance(b_turns))

    def parted(before: tuple[Statement, ...] = (), after: tuple[Statement, ...] = ()) -> tuple[Statement, ...]:
        body = (*before, take["a"], multiply, give["a"], Advance(a_turns), *after)
        return (Loop(spec.buffers.rho, body, "part"),) if part else body

    step = (take["b"], *parted(), *next_b) if apart else (take["a"], take["b"], multiply, give["a"], *next_b)
    free, full = Acquire(core.locks["c_free"]), Release(core.locks["c_full"])
    finish, row = finish_for(kernel, spec), core.tile.row - FIRST_CORE_ROW
    fed = finish is not None and spec.epilogue.fed
    if spec.buffers.c_in_parts:
        numbers = (b.ahead(1), c, row) if fed else (c,)
        finished: tuple[Statement, ...] = (Call(finish.symbol, (*numbers, *part)),) if finish else ()
        c_tile = (
            *(take["b"], *parted((free, Call(kernel.zero, (c, *part)))), *next_b),
            Loop("k_steps", step, "k"),
            *((take["b"],) * (1 + fed)),
            *parted(after=(*finished, full)),
            *(next_b * (1 + fed)),
            Advance(c_turns),
        )
    else:
        finished = (Call(finish.symbol, (c,)),) if finish else ()
        if finish and fed:
            finished = (take["b"], Call(finish.symbol, (b, c, row)), *next_b)
        zero = Call(kernel.zero, (c,))
        c_tile = (free, zero, Loop("k_steps", step, "k"), *finished, full, Advance(c_turns))
    slots = {"k_steps": K_STEPS, "tiles": OUTPUT_TILES}
    return (Parameters.held(core.tile).problems(slots, Loop("tiles", c_tile, "tile"), name="gemm"),)
