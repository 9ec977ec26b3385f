"""A core's tile: its buffers, locks and channels, and its program."""

from bd_patterns import Pattern
from bdforge.design.core_code import Advance, Call, Core, Loop, Rotation, Statement
from bdforge.design.model import Channel, Tile
from bdforge.design.parameters import PARAMETER_BYTES, Parameters
from bdforge.design.tile_memory import Acquire, Bd, Locks, Release, Slots, ping_pong
from bdforge.devices import FIRST_CORE_ROW
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.gemm.finish import finish_for
from bdforge.operators.gemm.kernels import Kernel
from bdforge.operators.gemm.slabs import arriving
from bdforge.operators.gemm.spec import GemmSpec

K_STEPS, OUTPUT_TILES = range(2)
"""Run-time parameters: K/k and the core's tiles of C."""


def core_parts(a, b, c, c_buffers):
    """(buffers, bytes of each) of a core for `occupied`, from the bytes of one A, B and C; numbers or arrays."""
    return (2, a), (2, b), (c_buffers, c), (1, PARAMETER_BYTES)


def operand_slots(
    locks: Locks, name: str, elements: int, type_: ElementType, roles: tuple[str, str], count: int = 2, turns: int = 2
) -> Slots:
    """One or two buffers of an operand in the tile of `locks`, with `turns` turns; `roles` of buffers and locks."""
    role, of_locks = roles
    buffers = ping_pong(f"{locks.tile}_{name}", type_.memory_elements(elements), type_.memory, role, count)
    return Slots(buffers, *locks.pair(name, turns, of_locks))


def core_tile(spec: GemmSpec, kernel: Kernel, column: int, row: int) -> Tile:
    """The core at (column, row), with A in parts of m/rho rows."""
    m, k, n = spec.tile.m, spec.tile.k, spec.tile.n
    locks, parts, count = Locks(f"core_{column}_{row}"), c_parts(spec), spec.buffers.c_buffers
    a = operand_slots(locks, "a", m // spec.buffers.rho * k, kernel.a, ("A tile, micro-tiles", "A"))
    b = operand_slots(locks, "b", k * n, kernel.b, ("B tile, micro-tiles", "B"))
    c = operand_slots(locks, "c", m * n, kernel.accumulator, ("C tile, micro-tiles", "C"), count, count * parts)
    parameters = Parameters.of(locks, "K/k, output tiles", ("k_steps", "tiles"))
    size, apart = _c_elements(spec, kernel) // parts, kernel.accumulator.memory_elements(m * n) // parts
    out = [Pattern((size,), (1,), offset=part * apart) for part in range(parts)]
    sent = tuple(Bd(buffer, part, Acquire(c.full), Release(c.free)) for buffer in c.buffers for part in out)
    channels = (
        Channel("S2MM", 0, a.fill(pattern=arriving(spec, kernel, "a")), "A in"),
        Channel("S2MM", 1, b.fill(pattern=arriving(spec, kernel, "b")), "B in"),
        Channel("MM2S", 0, sent, "C out"),
    )
    c_tile = _c_tile(spec, kernel, (a, b, c), row - FIRST_CORE_ROW)
    body = (parameters.problems(Loop("tiles", c_tile, "tile"), name="gemm"),)
    core = Core(body, spec.buffers.stack_bytes, f"{spec.name}.o")
    return Tile.holding(locks, column, row, (a, b, c), channels, core, parameters.buffer)


def _c_elements(spec: GemmSpec, kernel: Kernel) -> int:
    """Elements of the accumulators' buffer that hold finished C: its start, where C is the narrower type."""
    bits = spec.tile.m * spec.c_columns * TYPES[spec.c].bits
    return bits // kernel.accumulator.memory_bits


def c_parts(spec: GemmSpec) -> int:
    """Parts in which a core finishes and sends a tile of C."""
    return spec.buffers.rho if spec.buffers.c_in_parts else 1


def fixed_steps(spec: GemmSpec) -> int:
    """Steps of K that cores take beside those that they are told of: a first and a last one of their own."""
    return 2 if spec.buffers.c_in_parts else 0


def _c_tile(spec: GemmSpec, kernel: Kernel, held: tuple[Slots, Slots, Slots], row: int) -> tuple[Statement, ...]:
    """A tile of C, in so many steps of K. The epilogue's numbers follow the last tile of B through the same buffers."""
    apart = spec.buffers.rho > 1 or spec.epilogue.fed  # A and B turn together unless one of them comes more often
    b_turns, c_turns = Rotation("b" if apart else "ab"), Rotation("c", spec.buffers.c_buffers)
    a_turns = Rotation("a") if apart else b_turns
    a, b, c = (turns.of(slots.buffers) for turns, slots in zip((a_turns, b_turns, c_turns), held, strict=True))
    take = {x: Acquire(slots.full) for x, slots in zip("ab", held, strict=False)}
    give = {x: Release(slots.free) for x, slots in zip("ab", held, strict=False)}
    part = ("part",) if spec.buffers.rho > 1 else ()
    multiply, next_b = Call(kernel.multiply, (a, b, c, *part)), (give["b"], Advance(b_turns))

    def parted(before: tuple[Statement, ...] = (), after: tuple[Statement, ...] = ()) -> tuple[Statement, ...]:
        body = (*before, take["a"], multiply, give["a"], Advance(a_turns), *after)
        return (Loop(spec.buffers.rho, body, "part"),) if part else body

    step = (take["b"], *parted(), *next_b) if apart else (take["a"], take["b"], multiply, give["a"], *next_b)
    free, full, finish = Acquire(held[2].free), Release(held[2].full), finish_for(kernel, spec)
    fed = finish is not None and spec.epilogue.fed
    if spec.buffers.c_in_parts:
        numbers = (b.ahead(1), c, row) if fed else (c,)
        finished: tuple[Statement, ...] = (Call(finish.symbol, (*numbers, *part)),) if finish else ()
        return (
            *(take["b"], *parted((free, Call(kernel.zero, (c, *part)))), *next_b),
            Loop("k_steps", step, "k"),
            *((take["b"],) * (1 + fed)),
            *parted(after=(*finished, full)),
            *(next_b * (1 + fed)),
            Advance(c_turns),
        )
    finished = (Call(finish.symbol, (c,)),) if finish else ()
    if finish and fed:
        finished = (take["b"], Call(finish.symbol, (b, c, row)), *next_b)
    zero = Call(kernel.zero, (c,))
    return (free, zero, Loop("k_steps", step, "k"), *finished, full, Advance(c_turns))
