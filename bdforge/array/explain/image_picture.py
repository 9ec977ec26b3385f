"""An image as the picture of an array shows it: a device of its tiles, with what its BDs and switches do."""

from collections.abc import Iterable, Iterator

from bdforge.array.explain.buffer_rings import BufferRing
from bdforge.array.explain.image_explanation import ConfigurationSummary, Explanation, Place
from bdforge.array.lower.switch_state import written_switches
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.routing.physical import routes_of
from bdforge.array.show.array_use import DesignUse, TileUse
from bdforge.array.show.image import ShowError
from bdforge.array.show.memory_map import Span, tile_memory


def image_use(found: Explanation) -> DesignUse:
    """The image's only configuration on its array; ShowError where it has several, or tells none."""
    if found.device is None or len(found.configurations) != 1:
        what = "tells no array" if found.device is None else f"has {len(found.configurations)} configurations"
        raise ShowError(f"the image {what}; a picture shows one configuration of an array that code or words tell")
    (configuration,) = found.configurations
    switches = written_switches(configuration.state, found.device)
    streams = list(switches.streams())
    ends = (port.tile for stream in streams for port in (stream.start, *stream.ends.values()))
    device = _device(found.device.mlir, {*configuration.state.tiles, *ends})
    tiles = {op.place: _tile(op, configuration) for op in device.body.block.ops if isinstance(op, TileOp)}
    return DesignUse(device, tiles, routes_of(device, switches, streams), [])


def _device(name: str, used: Iterable[Place]) -> DeviceOp:
    tiles = "".join(f"  %tile_{c}_{r} = aie.tile({c}, {r})\n" for c, r in sorted(used))
    module = parse(f"aie.device({name}) {{\n{tiles}}}\n", "image")
    return next(op for op in module.walk() if isinstance(op, DeviceOp))


def _tile(op: TileOp, found: ConfigurationSummary) -> TileUse:
    spans = list(_spans(found.rings.get(op.place, ()), op.limits.memory_bytes))
    memory = tile_memory(op, spans) if op.limits.memory_bytes else None
    return TileUse(op.column, op.row, op.kind, op.limits, memory, [])


def _spans(rings: Iterable[BufferRing], limit: int) -> Iterator[Span]:
    """A tile's own bytes that BDs move, by where they begin, as far as it has memory; buffers that overlap are one."""
    own = sorted((b.address, b.address + b.size_bytes) for ring in rings for b in ring.buffers if not b.window)
    start = end = 0
    for first, behind in [*own, (limit, limit)]:
        if first >= end or first >= limit:
            yield from [Span(start, end, f"{start:#x}")] if end > start else []
            start, end = first, first
        end = min(max(end, behind), limit)
