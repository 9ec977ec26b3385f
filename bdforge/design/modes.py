"""Modes of a tile: buffers of different ones may share bytes, since a tile is in one mode at a time.

In MLIR no two buffers may: aiecc's schemes place those without an address around the others, and one scheme moves even
those that have one. So all buffers of a tile that belong to modes are parts of one buffer of bytes there. BDs name
that, with offset and dims in bytes; cores see each part as a `memref.view`, whose begin is in the pointer that kernels
get. A part is a view of its mode's bytes, which are a view of the tile's, so that the text tells the modes apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bdforge.design.model import Channel, Design, Tile
from bdforge.design.sequence import Event, RegisterWrite, RtpWrite
from bdforge.design.tile_memory import Bd, Buffer
from bdforge.devices.limits import BYTE_BITS, GRANULE_BYTES

_BYTE = "i8"


@dataclass(frozen=True, slots=True)
class PartOfBytes:
    """What lies in a buffer of bytes, from its byte `start` on."""

    within: Buffer
    start: int


Parts = Mapping[str, PartOfBytes]
"""By name, where a buffer lies in its mode's bytes, and those in its tile's."""


def modes(buffers: Iterable[Buffer]) -> dict[str, list[Buffer]]:
    """Of a tile's buffers those of each mode, by the mode's name."""
    found: dict[str, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.mode:
            found.setdefault(buffer.mode, []).append(buffer)
    return found


def parts_of(tiles: Iterable[Tile]) -> Parts:
    """Of placed tiles: where the buffers of their modes lie."""
    return {name: part for tile in tiles for name, part in _parts(tile)}


def _parts(tile: Tile) -> Iterator[tuple[str, PartOfBytes]]:
    for name, buffers in (held := modes(tile.buffers)).items():
        shared = _shared(tile, held)
        whole = _spanned(f"{tile.name}_mode_{name}", buffers)
        yield whole.name, PartOfBytes(shared, _start(whole) - _start(shared))
        yield from ((buffer.name, PartOfBytes(whole, _start(buffer) - _start(whole))) for buffer in buffers)


def declared(design: Design) -> Design:
    """A placed design as MLIR has it: of each tile's modes one buffer of bytes, behind its other buffers."""
    if not (parts := parts_of(design.tiles)):
        return design
    tiles = tuple(_declared(tile, parts) for tile in design.tiles)
    places = {buffer.name: tile.address(buffer) for tile in design.tiles for buffer in tile.buffers if buffer.mode}
    sequences = tuple(
        replace(sequence, events=tuple(_writing(event, places) for event in sequence.events))
        for sequence in design.sequences
    )
    return replace(design, tiles=tiles, sequences=sequences)


def _writing(event: Event, places: Mapping[str, int]) -> Event:
    """An event that writes to the addresses of words in modes, which no name in MLIR stands for."""
    writes = (
        RegisterWrite(places[write.buffer.name] + GRANULE_BYTES * write.slot, (write.value,))
        if isinstance(write, RtpWrite) and write.buffer.name in places
        else write
        for write in event.writes
    )
    return replace(event, writes=tuple(writes))


def _declared(tile: Tile, parts: Parts) -> Tile:
    own = tuple(buffer for buffer in tile.buffers if not buffer.mode)
    shared = (_shared(tile, held),) if (held := modes(tile.buffers)) else ()
    return replace(tile, buffers=(*own, *shared), channels=tuple(_moving(each, parts) for each in tile.channels))


def _moving(channel: Channel, parts: Parts) -> Channel:
    return replace(channel, bds=tuple(_of_tile(bd, parts) for bd in channel.bds))


def _of_tile(bd: Bd, parts: Parts) -> Bd:
    if (part := parts.get(bd.buffer.name)) is None:
        return bd
    inside, plain = parts[part.within.name], in_bytes(bd)
    return replace(plain, buffer=inside.within, pattern=plain.pattern.shifted(inside.start + part.start))


def in_bytes(bd: Bd) -> Bd:
    """A BD whose dims count bytes of its buffer."""
    each = bd.buffer.bits // BYTE_BITS
    pattern, padding = bd.pattern.refined(each), [(before, after) for before, after in bd.padding]
    if padding and pattern.rank > bd.pattern.rank:
        padding.append((0, 0))
    elif padding:
        padding[-1] = padding[-1][0] * each, padding[-1][1] * each
    return replace(bd, pattern=pattern, padding=tuple(padding))


def _shared(tile: Tile, held: Mapping[str, Sequence[Buffer]]) -> Buffer:
    """The buffer of bytes in which all of a tile's modes lie."""
    sums = ", ".join(f"{name} {sum(buffer.bytes for buffer in buffers)}" for name, buffers in held.items())
    everything = [buffer for buffers in held.values() for buffer in buffers]
    return replace(_spanned(f"{tile.name}_modes", everything), role=f"bytes of modes: {sums}")


def _spanned(name: str, buffers: Sequence[Buffer]) -> Buffer:
    """Bytes from the first to the last of some buffers."""
    start, end = min(map(_start, buffers)), max(_start(buffer) + buffer.bytes for buffer in buffers)
    banks = range(min(buffer.banks.start for buffer in buffers), max(buffer.banks.stop for buffer in buffers))
    return Buffer(name, end - start, _BYTE, address=start, banks=banks)


def _start(buffer: Buffer) -> int:
    return buffer.address or 0
