"""Whether a spec can be built, with every reason why not."""

from collections.abc import Iterator
from math import lcm

from bd_patterns import problems as pattern_problems
from bdforge.design.model import Array, Bd, Tile
from bdforge.design.placement import aligned, occupied
from bdforge.devices import DEVICES, Device, Generation, TileKind
from bdforge.devices.limits import DEFAULT_STACK_BYTES, GRANULE_BYTES
from bdforge.operators.gemm.finish import epilogue_bytes, finish_problems
from bdforge.operators.gemm.kernels import KERNELS, Kernel, accumulators, kernel_for
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.gemm.types import TYPES

_SUM_BITS = 32  # of the accumulator registers of an integer product


def spec_problems(spec: GemmSpec, device: Device) -> list[str]:
    """Reasons that follow from the spec alone: types, multiples, array shape."""
    return [*_array_shape(spec, device), *_tile_sizes(spec, device)]


def _array_shape(spec: GemmSpec, device: Device) -> Iterator[str]:
    if spec.array not in (None, device.mlir):
        others = ", ".join(other.name for other in DEVICES.values() if other.mlir == spec.array)
        yield f"array.device = {spec.array}, but {device.name} is an {device.mlir}; build for {others}"
    if spec.columns > device.columns:
        yield f"array.columns = {spec.columns}, but {device.name} has {device.columns}; use fewer"
    if spec.rows > device.core_rows:
        yield f"array.rows = {spec.rows}, but {device.name} has {device.core_rows} rows of cores"
    shims = spec.buffers.a_shims
    if shims > 1 and shims * spec.rows > spec.columns:
        yield f"buffers.a_shims = {shims} needs {shims * spec.rows} columns for {spec.rows} rows; use 1"
    if spec.rows > spec.columns and spec.layouts.a == "column":
        yield (
            f"layouts.a = column needs a column of the array for each of {spec.rows} rows, there are {spec.columns}: "
            "the tiles of several rows would interleave in one shim's lines; use more columns or row-major A"
        )


def _tile_sizes(spec: GemmSpec, device: Device) -> Iterator[str]:
    kernel = kernel_for(device.generation, spec)
    if kernel is None:
        yield _no_kernel(spec, device)
        return
    for axis, multiple in zip("mkn", kernel.multiples, strict=True):
        parts = lcm(spec.buffers.rho, spec.buffers.a_shims) if axis == "m" else 1
        yield from _multiple(f"tile.{axis}", getattr(spec.tile, axis), multiple, parts, kernel.multiply)
    if spec.buffers.k_mt % spec.tile.k:
        yield f"buffers.k_mt = {spec.buffers.k_mt} is not a multiple of tile.k = {spec.tile.k}; use one"
    stack, align = spec.buffers.stack_bytes, device.generation.vector_align_bytes
    if stack % align:
        yield f"buffers.stack_bytes = {stack} is not a multiple of {align}; the buffers behind it would misalign"
    yield from _layouts(spec, kernel)
    yield from _used_rows(spec, kernel)
    yield from _step_sums(spec, kernel)
    yield from finish_problems(kernel, spec)


def _no_kernel(spec: GemmSpec, device: Device) -> str:
    generation = device.generation
    if found := accumulators(generation, spec.a, spec.b):
        return (
            f"no kernel for {spec.a} x {spec.b} with accumulators of {spec.accumulator} on {generation.name}; "
            f"types.accumulator may be {', '.join(found)}"
        )
    pairs = dict.fromkeys(f"{a} x {b}" for name, a, b, _ in KERNELS if name == generation.name)
    return f"no kernel for {spec.a} x {spec.b} on {generation.name} ({device.name}); there is {', '.join(pairs)}"


def _multiple(name: str, size: int, multiple: int, parts: int, kernel: str) -> Iterator[str]:
    whole = multiple * parts
    if size % whole == 0:
        return
    lower, upper = size // whole * whole, -(-size // whole) * whole
    near = f"{lower} or {upper}" if lower else f"{upper}"
    each = f" ({multiple} in each of {parts} parts)" if parts > 1 else ""
    yield f"{name} = {size} is not a multiple of {whole}, which {kernel} needs{each}; use {near}"


def _step_sums(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    """Narrow integers are widened by every step of K; kernels/include/accumulator.h has the sum and its limit."""
    accumulator, shift, k = kernel.accumulator, spec.epilogue.shift, spec.tile.k
    if not accumulator.integer or accumulator.bits == _SUM_BITS:
        return
    limit = (1 << (_SUM_BITS - 1)) - 1
    products = (1 << (kernel.a.bits - 1)) * (1 << (kernel.b.bits - 1)) * k
    if (largest := (1 << (accumulator.bits - 1 + shift)) + products) > limit:
        yield (
            f"epilogue.shift = {shift} with tile.k = {k}: a step's sums, C << shift plus A B, can reach {largest}, "
            f"above {limit}; use a smaller shift, a smaller tile.k or types.accumulator = int32"
        )


def _used_rows(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    used = spec.tile.m_used
    if not used or used == spec.tile.m:
        return
    if used > spec.tile.m or spec.tile.m != kernel.r:
        yield f"tile.m_used = {used} wants tile.m = {kernel.r}, the rows of one micro-tile, not {spec.tile.m}"
    if kernel.a.blocked or TYPES[spec.c].blocked or "column" in (spec.layouts.a, spec.layouts.c):
        yield f"tile.m_used = {used} pads rows, so A and C must be row-major and of plain elements; use m_used = 0"


def _layouts(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    for name, type_ in (("a", kernel.a), ("b", kernel.b), ("c", TYPES[spec.c])):
        order = getattr(spec.layouts, name)
        if name == "b" and order != "packed" and type_.packed_only:
            yield f"layouts.b = {order}: DMAs move 32 bit at a time and cannot reorder {type_.name}; use packed"
        elif name != "b" and order != "row" and type_.blocked:
            yield f"layouts.{name} = {order}: blocks of {type_.name} lie along rows; use row"
    if spec.epilogue.fed:
        yield from _fed(spec)
    if spec.layouts.c == "column" and spec.epilogue.fed:
        yield "layouts.c = column: scales and biases come in the order of row-major C; use row"


def _fed(spec: GemmSpec) -> Iterator[str]:
    rows, rest = epilogue_bytes(spec)
    columns = 2 * 4 * spec.tile.n
    if spec.layouts.b != "packed":
        yield f"layouts.b = {spec.layouts.b}: scales and biases come behind packed B; use packed"
    if rest < columns:
        yield (
            f"epilogue: scales of {spec.rows} x {spec.tile.m} rows and scales and biases of {spec.tile.n} columns take "
            f"{rows + columns} bytes, a tile of B has {rows + rest}; use a larger tile.k"
        )


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
    used = occupied(stack_bytes, ((1, buffer.bytes) for buffer in tile.buffers))
    if used > limit:
        parts = [f"{buffer.role}: {buffer.bytes}" for buffer in tile.buffers]
        parts += [f"stack: {stack_bytes}"] if stack_bytes else []
        fitting = limit - (used - aligned(stack_bytes))
        way = f"buffers.stack_bytes = {fitting} would fit, or " if DEFAULT_STACK_BYTES <= fitting < stack_bytes else ""
        yield f"{what}: {used} bytes of {limit} ({', '.join(parts)}); {way}choose a smaller tile or less buffering"
    for buffer in tile.buffers:
        if tile.kind is TileKind.CORE and buffer.bytes % align:
            yield f"{what}: {buffer.role}: {buffer.bytes} bytes are not a multiple of {align}; use a larger tile"


def bd_problems(bd: Bd, tile: Tile, generation: Generation) -> list[str]:
    """Why one static BD does not fit its tile."""
    limits = generation.limits(tile.kind)
    if bd.linear:  # rendered without dimensions, so only the length counts
        words = bd.pattern.count * bd.buffer.bits // 8 // GRANULE_BYTES
        return [] if words <= limits.length_max else [f"{words} words exceed a BD's length of {limits.length_max}"]
    padding = tuple((0, zeros) for zeros in bd.padding) or None
    elements = bd.buffer.elements
    return pattern_problems(bd.pattern, limits, bd.buffer.bits, static=True, buffer_elements=elements, padding=padding)


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
