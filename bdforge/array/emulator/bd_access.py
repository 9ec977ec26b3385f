"""What the words of a BD mean: which memory words move, in which order, under which locks."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bdforge.devices import TileKind
from bdforge.devices.limits import CORE, GRANULE_BYTES
from bdforge.devices.registers import TILE_REGISTERS

PAD = -1
"""In an order: a padded word, which no memory holds."""


@dataclass(frozen=True, slots=True)
class Order:
    """Word offsets of a transfer, relative to the BD's base, in stream order.

    `offsets` is None for a contiguous run from 0. `low` and `high` bound the memory touched.
    """

    length: int
    offsets: np.ndarray | None
    low: int
    high: int
    padded: bool = False


@dataclass(frozen=True, slots=True)
class ShimAccess:
    """How a shim BD reaches DRAM: register codes."""

    burst: int
    cache: int
    qos: int


@dataclass(frozen=True, slots=True)
class DecodedBd:
    """A BD's fields, ready to run. Addresses in words (shim: bytes); `acquire_value` as in the register."""

    address: int
    order: Order
    use_next: bool
    next: int
    acquire: tuple[int, int] | None  # lock id, value: negative means at least, positive means equal
    release: tuple[int, int] | None
    iteration_wrap: int
    iteration_step: int
    valid: bool
    packet: tuple[int, int] | None  # type, id
    ends_packet: bool  # its last word carries TLAST
    refusal: str = ""  # why no channel runs it
    access: ShimAccess | None = None


WORDS_MAX = 1 << 26
"""Of a walk that is not linear: each word's place is kept, and 256 MiB are more than one BD of a design moves."""


@lru_cache(maxsize=4096)  # sequences write the same words again and again
def decode_bd(kind: TileKind, words: tuple[int, ...]) -> DecodedBd:
    """The meaning of a BD's register words (RT; hardware facts 1.4)."""
    f = TILE_REGISTERS[kind].bd.decode(words)
    base = f["address_high"] << 32 | f["address_low"] & ~3 if kind is TileKind.SHIM else f["address"]
    return DecodedBd(
        address=base,
        order=_order(f["length"], _dims(kind, f), _pads(kind, f)),
        use_next=bool(f["use_next"]),
        next=f["next"],
        acquire=(f["acquire_id"], f["acquire_value"]) if f["acquire_enable"] else None,
        release=(f["release_id"], f["release_value"]) if f["release_value"] else None,  # no bit enables it
        iteration_wrap=f["iteration_wrap"] + 1,
        iteration_step=f["iteration_step"] + 1,
        valid=bool(f["valid"]),
        packet=(f["packet_type"], f["packet_id"]) if f["packet_enable"] else None,
        ends_packet=not f["suppress_tlast"],
        refusal=_refusal(f, _dims(kind, f), _pads(kind, f)),
        access=ShimAccess(f["burst"], f["axi_cache"], f["axi_qos"]) if kind is TileKind.SHIM else None,
    )


def _refusal(f: dict[str, int], dims: Sequence[tuple[int, int]], pads: Sequence[tuple[int, int]]) -> str:
    if f["length"] > WORDS_MAX and (any(map(any, pads)) or not _is_linear(f["length"], dims)):
        return f"it walks {f['length']} words in steps; the emulated array walks {WORDS_MAX} at most"
    if f.get("compress"):
        return "it compresses or expands data, which is not emulated"
    if f["packet_enable"] and f["out_of_order_id"]:
        return f"it puts out-of-order id {f['out_of_order_id']} into its packet header, which is not emulated"
    endless = next((number for number, (wrap, _) in enumerate(dims) if not wrap), len(pads))
    behind = [*(after for _, after in pads[endless : endless + 1]), *(n for pad in pads[endless + 1 :] for n in pad)]
    if any(behind):
        return f"it pads behind dimension {endless}, which has no wrap and never ends; hardware demands 0 there"
    return ""


def _dims(kind: TileKind, f: dict[str, int]) -> tuple[tuple[int, int], ...]:
    """(wrap, step) innermost first; wrap 0 never wraps, the outermost dimension has no wrap field."""
    # Registers hold steps less one, but wraps as they are.
    inner = [(f["d0_wrap"], f["d0_step"] + 1), (f["d1_wrap"], f["d1_step"] + 1)]
    if kind is TileKind.MEMTILE:
        return (*inner, (f["d2_wrap"], f["d2_step"] + 1), (0, f["d3_step"] + 1))
    return (*inner, (0, f["d2_step"] + 1))


def _pads(kind: TileKind, f: dict[str, int]) -> tuple[tuple[int, int], ...]:
    if kind is not TileKind.MEMTILE:
        return ()
    return tuple((f[f"d{d}_pad_before"], f[f"d{d}_pad_after"]) for d in range(3))


@lru_cache(maxsize=512)
def _order(length: int, dims: tuple[tuple[int, int], ...], pads: tuple[tuple[int, int], ...]) -> Order:
    padded = any(before or after for before, after in pads)
    # No place for each word here: a mutated shim BD of 2^31 - 1 words took 16 GiB before it was refused.
    if length > WORDS_MAX or (length and not padded and _is_linear(length, dims)):
        return Order(length, None, 0, length - 1, padded)
    offsets = _offsets(length, dims, pads)
    touched = offsets[offsets != PAD]
    if not len(touched):
        return Order(length, offsets, 0, -1, padded)
    low, high = int(touched.min()), int(touched.max())
    linear = not padded and low == 0 and high == length - 1 and dims[0][1] == 1 and bool((np.diff(offsets) == 1).all())
    return Order(length, None if linear else offsets, low, high, padded)


def _is_linear(length: int, dims: Sequence[tuple[int, int]]) -> bool:
    """Whether word follows word for sure: each dimension's step is what the inner ones walk, to the length."""
    walked = 1
    for wrap, step in dims:
        if wrap != 1 and step != walked:
            return False
        if not wrap or walked * wrap >= length:
            return True
        walked *= wrap
    return True


def _offsets(length: int, dims: Sequence[tuple[int, int]], pads: Sequence[tuple[int, int]]) -> np.ndarray:
    """Padding widens dimensions 0 to 2; the length counts padded words (MA, RT)."""
    rest = np.arange(length, dtype=np.int64)
    offsets = np.zeros(length, dtype=np.int64)
    inside = np.ones(length, dtype=bool)
    for (wrap, step), (before, after) in itertools.zip_longest(dims, pads, fillvalue=(0, 0)):
        if not wrap:
            inside &= rest >= before
            offsets += (rest - before) * step
            break
        index = rest % (wrap + before + after) - before
        inside &= (index >= 0) & (index < wrap)
        offsets += index * step
        rest //= wrap + before + after
    return np.where(inside, offsets, PAD)


def chain(read: Callable[[int], DecodedBd], first: int) -> list[int]:
    """Ids of the BDs that a task starting at `first` runs, each once; `read` gives one by its id."""
    seen: list[int] = []
    bd = first
    while bd not in seen:
        seen.append(bd)
        decoded = read(bd)
        if not decoded.use_next:
            break
        bd = decoded.next
    return seen


def words_by_bank(order: Order, base: int) -> dict[int, int]:
    """How many words of a transfer from word `base` on lie in each bank of a core tile's memory."""
    bank_words = CORE.bank_bytes // GRANULE_BYTES
    if order.offsets is None:
        first, last = base // bank_words, (base + order.length - 1) // bank_words
        edges = [max(base, bank * bank_words) for bank in range(first, last + 1)] + [base + order.length]
        return {first + i: end - start for i, (start, end) in enumerate(itertools.pairwise(edges)) if end > start}
    banks, counts = np.unique((base + order.offsets[order.offsets != PAD]) // bank_words, return_counts=True)
    return dict(zip(banks.tolist(), counts.tolist(), strict=True))
