"""Whether a spec can be built, with every reason why not."""

from collections.abc import Iterator

from bd_patterns import problems as pattern_problems
from bdforge.devices import Device, Generation, TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.plan.kernels import KERNELS
from bdforge.plan.model import Array, Bd, Tile
from bdforge.plan.spec import GemmSpec


def spec_problems(spec: GemmSpec, device: Device) -> list[str]:
    """Reasons that follow from the spec alone: types, multiples, array shape."""
    return [*_array_shape(spec, device), *_tile_sizes(spec, device)]


def _array_shape(spec: GemmSpec, device: Device) -> Iterator[str]:
    if spec.columns > device.columns:
        yield f"array.columns = {spec.columns}, but {device.name} has {device.columns}"
    if spec.rows > device.core_rows:
        yield f"array.rows = {spec.rows}, but {device.name} has {device.core_rows} rows of cores"
    if spec.columns % spec.rows:
        yield (
            f"array.columns = {spec.columns} is not a multiple of array.rows = {spec.rows}; "
            "each row's A enters through a column of its own"
        )


def _tile_sizes(spec: GemmSpec, device: Device) -> Iterator[str]:
    kernel = KERNELS.get((spec.a, spec.b, spec.c))
    if kernel is None:
        yield f"no kernel for {spec.a} x {spec.b} -> {spec.c}; there is {', '.join(' x '.join(k) for k in KERNELS)}"
        return
    if kernel.generation is not device.generation:
        generation = device.generation.name
        yield f"{kernel.multiply} is a kernel for {kernel.generation.name}, but {device.name} is {generation}"
    for axis, multiple in zip("mkn", kernel.multiples, strict=True):
        size = getattr(spec.tile, axis)
        if size % multiple:
            lower, upper = size // multiple * multiple, -(-size // multiple) * multiple
            near = f"{lower} or {upper}" if lower else f"{upper}"
            yield f"tile.{axis} = {size} is not a multiple of {multiple}, which {kernel.multiply} needs; use {near}"
    if spec.k_mt % spec.tile.k:
        yield f"buffers.k_mt = {spec.k_mt} is not a multiple of tile.k = {spec.tile.k}"
    stack, align = spec.stack_bytes, device.generation.vector_align_bytes
    if stack % align:
        yield f"buffers.stack_bytes = {stack} is not a multiple of {align}; the buffers behind it would misalign"


def array_problems(array: Array, generation: Generation, stack_bytes: int) -> list[str]:
    """Reasons that follow from the planned array: memory, BDs, locks and what the registers hold."""
    reasons = [reason for tile in array.tiles for reason in _tile(tile, generation, stack_bytes)]
    return list(dict.fromkeys(reasons))  # every column says the same: once is enough


def _tile(tile: Tile, generation: Generation, stack_bytes: int) -> Iterator[str]:
    limits = generation.limits(tile.kind)
    what = f"{tile.kind} tile" if tile.kind is not TileKind.MEMTILE else "memtile"
    yield from _memory(what, tile, generation, stack_bytes if tile.kind is TileKind.CORE else 0)
    for lock in tile.locks:
        if lock.init > limits.lock_value_max:
            yield f"{what}: lock starts at {lock.init}, above {limits.lock_value_max}; use a smaller buffers.k_mt"
    yield from _bd_counts(tile, generation)
    for channel in tile.channels:
        where = f"{what}, {channel.direction} {channel.index} ({channel.role})"
        yield from (f"{where}: {problem}" for bd in channel.bds for problem in bd_problems(bd, tile, generation))


def _memory(what: str, tile: Tile, generation: Generation, stack_bytes: int) -> Iterator[str]:
    limit, align = generation.limits(tile.kind).memory_bytes, generation.vector_align_bytes
    used = stack_bytes + sum(buffer.bytes for buffer in tile.buffers)
    if used > limit:
        parts = [f"{buffer.role}: {buffer.bytes}" for buffer in tile.buffers]
        parts += [f"stack: {stack_bytes}"] if stack_bytes else []
        yield f"{what}: {used} bytes of {limit} ({', '.join(parts)}); choose a smaller tile or less buffering"
    for buffer in tile.buffers:
        if buffer.bytes % align:
            yield f"{what}: {buffer.role}: {buffer.bytes} bytes are not a multiple of {align}"


def bd_problems(bd: Bd, tile: Tile, generation: Generation) -> list[str]:
    """Why one static BD does not fit its tile."""
    limits = generation.limits(tile.kind)
    if bd.linear:  # rendered without dimensions, so only the length counts
        words = bd.pattern.count * bd.buffer.bits // 8 // GRANULE_BYTES
        return [] if words <= limits.length_max else [f"{words} words exceed a BD's length of {limits.length_max}"]
    return pattern_problems(bd.pattern, limits, bd.buffer.bits, static=True, buffer_elements=bd.buffer.elements)


def _bd_counts(tile: Tile, generation: Generation) -> Iterator[str]:
    limits = generation.limits(tile.kind)
    used: dict[range, int] = {}
    for channel in tile.channels:
        share = limits.bds_of_channel(channel.index)
        used[share] = used.get(share, 0) + len(channel.bds)
    for share, count in used.items():
        if count > len(share):
            yield (
                f"{tile.kind}: {count} BDs for channels that share BD {share.start} to {share.stop - 1}; "
                "use a smaller buffers.k_mt"
            )
