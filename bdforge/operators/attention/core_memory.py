"""What a core of attention holds of its own, where it lies, and where Q and Y stand in it."""

from dataclasses import replace

from bd_patterns import Pattern
from bdforge.design import Buffer, Tile
from bdforge.design.bank_search import apart
from bdforge.design.buffer_addresses import aligned
from bdforge.devices import AIE2P, TileKind
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.attention.tiling import AttentionTiling

BF16, F32 = TYPES["bf16"], TYPES["f32"]
BLOCKS, HAS_MASK, HAS_MOVED, HEADER, _ROW_WORDS = 0, 7, 8, 16, 34
"""Words of the state that kernels keep, its first ones, and those of a query (State in kernels/include/attention.h)."""
_PLANES = (9, 8)  # buffers of digits have so much more room, for their exponents

_MEETS = {
    ("k", "q"): 30, ("p", "v"): 30, ("o", "v"): 10, ("s", "state"): 5, ("o", "p"): 4, ("k", "s"): 3, ("p", "s"): 3,
    ("k", "state"): 3, ("p", "state"): 2, ("q", "s"): 1,
    ("q", "v"): 5, ("k", "v"): 3, ("k", "k"): 2, ("v", "v"): 2, ("k", "p"): 2, ("s", "v"): 1,
}  # fmt: skip
"""What it costs when two buffers share a bank: in some hundred cycles so many loads and stores of one kernel meet there
or, in the last line, a kernel's and those of the DMA that brings the next block."""
_MIDDLE = 30
"""What it costs when o has no border of banks in its middle: loads of sums meet the stores of the block before, which
is of o's other half (`attention_values_bf16`)."""


def own_buffers(tiling: AttentionTiling, tile: str) -> dict[str, Buffer]:
    """Buffers that no DMA fills in turn."""
    more, of = _PLANES
    scores = tiling.queries * tiling.keys
    sizes = {
        "p": (scores * more // of, BF16, "weights"),
        "state": (HEADER + _ROW_WORDS * tiling.queries, TYPES["int32"], "state of the item"),
        "q": (tiling.q_elements * more // of, BF16, "Q of the item"),
        "s": (scores, F32, "scores"),
        "o": (tiling.q_elements, F32, "sums of values; then Y, and the next Q behind it, pair by pair"),
    }
    return {name: _buffer(tile, name, *facts) for name, facts in sizes.items()}


def in_banks(tile: Tile) -> Tile:
    """A core's tile with an address for each buffer, where what is used at the same time stands in different banks."""
    parts = [buffer.name.removeprefix(f"{tile.name}_").partition("_")[0] for buffer in tile.buffers]
    weights = [[_MEETS.get((min(one, other), max(one, other)), 0) for other in parts] for one in parts]
    for i, part in enumerate(parts):
        weights[i][i] = _MIDDLE if part == "o" else 0
    sizes, limits = tuple(aligned(buffer.bytes) for buffer in tile.buffers), AIE2P.limits(TileKind.CORE)
    addresses = apart(sizes, tuple(map(tuple, weights)), aligned(tile.stack_bytes), limits)
    buffers = (replace(buffer, address=at) for buffer, at in zip(tile.buffers, addresses, strict=True))
    return replace(tile, buffers=tuple(buffers))


def _buffer(tile: str, name: str, elements: int, type_: ElementType, role: str) -> Buffer:
    return Buffer(f"{tile}_{name}", elements, type_.memory, role)


def y_in_o(tiling: AttentionTiling) -> Pattern:
    """An item's Y, bfloat16 in the first half of the float32 of each pair of rows of tiles; all of a half is more than
    a size of a core's BD may be."""
    line = tiling.head_dim // 2
    return Pattern((tiling.pairs, 16, line), (32 * line, line, 1))


def halves_in_o(tiling: AttentionTiling, half: int) -> tuple[Pattern, ...]:
    """Of each pair the half with Y, 0, or that to which the next Q comes, 1."""
    elements = tiling.pair_elements // 2
    return tuple(Pattern((elements,), (1,), (2 * pair + half) * elements) for pair in range(tiling.pairs))
