"""How much a core's operands share the banks of its memory, where its accesses wait for each other."""

from collections.abc import Iterator, Mapping
from itertools import product
from statistics import mean

from bdforge.design.model import Tile
from bdforge.design.tile_memory import Buffer
from bdforge.devices import TileLimits
from bdforge.operators.gemm.spec import GemmSpec

_Span = tuple[int, int]  # where bytes of a call's operand start, and end


def meets(spec: GemmSpec, core: Tile, limits: TileLimits) -> tuple[int, ...]:
    """Percent of C's accesses that lie in a bank with A, and with B, and of A's that lie in one with B.

    Over all calls of the matrix kernel, in which accesses to an operand are spread evenly over its bytes.
    """
    banks = [[_by_bank(span, limits.bank_bytes) for span in call] for call in _calls(spec, core)]
    return tuple(round(100 * mean(_met(call[i], call[j]) for call in banks)) for i, j in ((0, 2), (1, 2), (0, 1)))


def _calls(spec: GemmSpec, core: Tile) -> Iterator[tuple[_Span, _Span, _Span]]:
    """A, B and the part of C of the calls of two steps of K, after which they come again.

    The numbers of an epilogue take a turn of B for each tile of C, so that B's other buffer comes first for the next.
    """
    held = {name: [b for b in core.buffers if b.name.startswith(f"{core.name}_{name}_")] for name in "abc"}
    rho, behind = spec.buffers.rho, range(1 + spec.epilogue.fed)
    for step, part, later, c in product(range(2), range(rho), behind, held["c"]):
        a, b = held["a"][(rho * step + part) % 2], held["b"][(step + later) % 2]
        start, size = c.address or 0, c.bytes // rho
        yield _span(a), _span(b), (start + part * size, start + (part + 1) * size)


def _span(buffer: Buffer) -> _Span:
    start = buffer.address or 0
    return start, start + buffer.bytes


def _by_bank(span: _Span, bank_bytes: int) -> Mapping[int, float]:
    """The share of bytes in each bank."""
    start, end = span
    banks = range(start // bank_bytes, -(-end // bank_bytes))
    return {i: (min(end, (i + 1) * bank_bytes) - max(start, i * bank_bytes)) / (end - start) for i in banks}


def _met(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """The probability that two accesses, one of each operand, are to one bank."""
    return sum(share * other.get(bank, 0.0) for bank, share in one.items())
