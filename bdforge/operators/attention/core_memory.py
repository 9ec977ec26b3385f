"""What a core of attention holds of its own, where it lies, and where Q and Y stand in it."""

from collections.abc import Iterable
from dataclasses import replace

from bd_patterns import Pattern
from bdforge.design import Buffer, Parameters
from bdforge.design.buffer_addresses import aligned, occupied
from bdforge.devices import AIE2P, TileKind
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.attention.tiling import AttentionTiling

BF16, F32 = TYPES["bf16"], TYPES["f32"]
BLOCKS, HAS_MASK, HAS_MOVED, HEADER, _ROW_WORDS = 0, 7, 8, 16, 34
"""Words of the state that kernels keep, its first ones, and those of a query (State in kernels/include/attention.h)."""
_PLANES = (9, 8)  # buffers of digits have so much more room, for their exponents


def own_buffers(tiling: AttentionTiling, tile: str) -> dict[str, Buffer]:
    """Buffers that no DMA fills in turn, in the order in which they lie."""
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


def across_banks(
    own: dict[str, Buffer], parameters: Parameters, stack_bytes: int, blocks: Iterable[Buffer]
) -> tuple[dict[str, Buffer], Parameters]:
    """Buffers with addresses: o has a border of banks in its middle, the others lie below it. As they are where that
    leaves no room for `blocks` behind it.

    `values` goes from one half to the other with each block of 32 queries, so that its loads of sums don't meet the
    stores of the block before; of 16 queries a block has rows of both.
    """
    limits, half, addresses, at = AIE2P.limits(TileKind.CORE), own["o"].bytes // 2, {}, aligned(stack_bytes)
    for buffer in (*own.values(), parameters.buffer):
        if buffer is not own["o"]:
            addresses[buffer.name] = at
            at += aligned(buffer.bytes)
    addresses[own["o"].name] = at = -(-(at + half) // limits.bank_bytes) * limits.bank_bytes - half
    if occupied(at + 2 * half, ((1, block.bytes) for block in blocks)) > limits.memory_bytes:
        return own, parameters
    placed_own = {name: replace(buffer, address=addresses[buffer.name]) for name, buffer in own.items()}
    told_at = replace(parameters.buffer, address=addresses[parameters.buffer.name])
    return placed_own, replace(parameters, buffer=told_at)


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
