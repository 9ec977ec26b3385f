"""From the fields of a buffer descriptor to the words of its registers, for shims, memtiles and core tiles.

Runtime tasks and static DMA programs use the same words. Sizes and strides run outermost first, as in MLIR; the
registers number dimensions from the innermost, d0. Sources: RT for the fields, mlir-aie 5ff2ab97 (`AIEXDialect.cpp`,
`getHardwareStridesWraps`; `AIERT.cpp`) for the conversion from elements, `AIEDmaToNpu.cpp`
(`WriteBdToBlockWritePattern`) for raw fields.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bdforge.devices import Generation, TileKind, TileLimits
from bdforge.devices.bd_registers import Bits, RegisterError
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES
from bdforge.devices.registers import RUNTIME_AXI_CACHE, TILE_REGISTERS
from bdforge.devices.rules import exceeded


class BdError(ValueError):
    """A buffer descriptor that no register can hold: field, value and limit."""


@dataclass(frozen=True, slots=True)
class BdLock:
    """One side of a BD's locking: acquire or release `value` at lock `id`, as the BD's DMA numbers locks.

    As in the register, an acquire of -v waits for at least v, an acquire of +v for exactly v (both then subtract v);
    one that is not `enabled` has its fields all the same, and waits for nothing.
    """

    id: int
    value: int
    enabled: bool = True


def granules(elements: int, element_bits: int, what: str) -> int:
    """`elements` elements in 32-bit words; BdError if they are not whole words."""
    bits = elements * element_bits
    if bits % GRANULE_BITS:
        raise BdError(
            f"{what} is {elements} elements of {element_bits} bits, {bits / 8:g} bytes; it must be a multiple of "
            f"{GRANULE_BYTES} bytes"
        )
    return bits // GRANULE_BITS


def dims_in_words(dims: Sequence[tuple[int, int]], element_bits: int) -> list[tuple[int, int]]:
    """(size, stride) in 32-bit words of `dims` in elements, both outermost first.

    The innermost size and the outer strides are scaled by element_bits / 32 and must come out whole. Elements of other
    than 32 bits need an innermost stride of 1, for a DMA cannot step over part of a word.
    """
    if not dims:
        return []
    *outer, (size, stride) = dims
    number = len(dims)
    words = [(s, granules(t, element_bits, f"stride of dimension {number - 1 - i}")) for i, (s, t) in enumerate(outer)]
    if element_bits != GRANULE_BITS and stride != 1 and size != 1:
        raise BdError(f"innermost stride is {stride}; it must be 1 for elements of {element_bits} bits")
    inner_stride = stride if element_bits == GRANULE_BITS else 1
    return [*words, (granules(size, element_bits, "size of dimension 0"), inner_stride)]


def static_dims(dims: Sequence[tuple[int, int]], element_bits: int) -> list[tuple[int, int]]:
    """`dims_in_words` of a static BD: a stride that is never stepped by is written too, rounded down to words."""
    last = len(dims) - 1
    words = dims_in_words([(s, t if s > 1 or i == last else 0) for i, (s, t) in enumerate(dims)], element_bits)
    idle = [s == 1 and i != last for i, (s, _) in enumerate(dims)]
    strides = [t * element_bits // GRANULE_BITS for _, t in dims]
    return [(size, strides[i]) if idle[i] else (size, stride) for i, (size, stride) in enumerate(words)]


def reach_words(length: int, dims: Sequence[tuple[int, int]], iteration: tuple[int, int] | None = None) -> int:
    """Words from a transfer's first to behind its farthest; dims and iteration as `encode_bd` takes them.

    The outermost dimension goes as far as the length does.
    """
    repeated = 0 if iteration is None else (iteration[0] - 1) * iteration[1]
    if not dims or length < 1:
        return length + repeated
    inner = math.prod(size for size, _ in dims[1:]) or 1
    sizes = [-(-length // inner), *(size for size, _ in dims[1:])]
    return 1 + repeated + sum((size - 1) * stride for size, (_, stride) in zip(sizes, dims, strict=True))


def burst_code(generation: Generation, burst_bytes: int) -> int:
    """Register code of a shim's burst length in bytes; 0 asks for the longest. BdError lists the lengths there are."""
    if burst_bytes == 0:
        return len(generation.bursts) - 1
    if burst_bytes not in generation.bursts:
        known = ", ".join(map(str, generation.bursts))
        raise BdError(f"burst length is {burst_bytes} bytes; {generation.name} has {known} (0 for the longest)")
    return generation.bursts.index(burst_bytes)


def encode_bd(
    kind: TileKind,
    *,
    length_words: int,
    dims_words: Sequence[tuple[int, int]] = (),
    iteration: tuple[int, int] | None = None,
    address: int = 0,
    packet: tuple[int, int] | None = None,
    next_bd: int | None = None,
    acquire: BdLock | None = None,
    release: BdLock | None = None,
    padding: Sequence[tuple[int, int]] = (),
    burst: int = 0,
    axi_cache: int = 0,
    valid: bool = True,
    too_wide: Callable[[BdError], None] | None = None,
) -> list[int]:
    """Register words of one BD: 8 of a shim or memtile, 6 of a core tile.

    `dims_words` holds (size, stride) in words, outermost first; a size of 0 never wraps (the length ends it), and
    neither does the outermost dimension that the hardware has. `iteration` is (count, stride): each execution adds the
    stride, after `count` executions the BD starts over; a stride of 0 is no iteration. `address` is in bytes as the
    tile's DMA sees memory (a memtile's own memory starts at MEMTILE_WINDOW_BYTES). `packet` is (type, id). `padding`
    holds (before, after) in words, one per dimension, outermost first. `burst` is a register code (`burst_code`).
    BdError names the field, its value and its limit. Where `too_wide` is given, it gets the error of a value that its
    field cannot hold (and may raise it), and the value's upper bits are lost.
    """
    values = {"length": length_words, "valid": int(valid)}
    values |= _address(kind, address) | _dimensions(kind, dims_words) | _iteration(iteration) | _padding(kind, padding)
    if packet is not None:
        values |= {"packet_enable": 1, "packet_type": packet[0], "packet_id": packet[1]}
    if next_bd is not None:
        values |= {"use_next": 1, "next": next_bd}
    if acquire is not None:
        values |= {"acquire_enable": int(acquire.enabled), "acquire_value": acquire.value, "acquire_id": acquire.id}
    if release is not None:
        values |= {"release_value": release.value, "release_id": release.id}
    if kind is TileKind.SHIM:
        values |= {"burst": burst, "axi_cache": axi_cache}

    def wide(error: RegisterError) -> None:
        fault = BdError(str(error))
        if too_wide is None:
            raise fault from error
        too_wide(fault)

    return TILE_REGISTERS[kind].bd.encode(values, wide)


def _address(kind: TileKind, address: int) -> dict[str, int]:
    if address % GRANULE_BYTES:
        raise BdError(f"address {address:#x} is not a multiple of {GRANULE_BYTES} bytes")
    if kind is TileKind.SHIM:
        return {"address_low": address & 0xFFFFFFFF, "address_high": address >> 32}
    return {"address": address // GRANULE_BYTES}


def _dimensions(kind: TileKind, dims: Sequence[tuple[int, int]]) -> dict[str, int]:
    fields = TILE_REGISTERS[kind].bd.fields
    values = {}
    for number, (size, stride) in enumerate(reversed(dims)):
        if f"d{number}_step" not in fields:
            raise BdError(f"{len(dims)} dimensions; a {kind} BD has {number}")
        if size != 1 and stride < 1:
            raise BdError(f"stride of dimension {number} is {stride} words; a BD steps by at least 1")
        if f"d{number}_wrap" in fields:
            values[f"d{number}_wrap"] = size
        values[f"d{number}_step"] = max(stride - 1, 0)
    return values


def _iteration(iteration: tuple[int, int] | None) -> dict[str, int]:
    if iteration is None or iteration[0] == 1 or iteration[1] == 0:
        return {}
    count, stride = iteration
    if count < 1 or stride < 0:
        raise BdError(f"iteration of {count} executions by {stride} words; both must be positive")
    return {"iteration_wrap": count - 1, "iteration_step": stride - 1}


def _padding(kind: TileKind, padding: Sequence[tuple[int, int]]) -> dict[str, int]:
    fields = TILE_REGISTERS[kind].bd.fields
    values = {}
    for number, (before, after) in enumerate(reversed(padding)):
        if before == after == 0:
            continue
        if f"d{number}_pad_before" not in fields:
            raise BdError(f"padding of dimension {number}: a {kind} BD cannot pad it")
        values |= {f"d{number}_pad_before": before, f"d{number}_pad_after": after}
    return values


@dataclass(frozen=True, slots=True)
class BdTransfer:
    """What a runtime transfer puts into its BD, in 32-bit words; `dims_words` is empty for a linear one."""

    length_words: int
    dims_words: tuple[tuple[int, int], ...]
    iteration: tuple[int, int] | None


class TransferFault(NamedTuple):
    """Why no BD makes a runtime transfer. Of a value that is `wide` its field holds the lower bits."""

    text: str
    wide: bool


def transfer_faults(
    limits: TileLimits, sizes: Sequence[int], strides: Sequence[int], element_bits: int, *, linear: bool
) -> Iterator[TransferFault]:
    """All that is wrong with four sizes and strides in elements, outermost first; none are written if `linear`.

    As mlir-aie's `verifyStridesWraps`, and what that one lets slip: an innermost stride over elements of other than 32
    bits, 65 iterations, a step one too large.
    """
    for i, (size, stride) in enumerate(zip(reversed(sizes), reversed(strides), strict=True)):
        if size < 1:
            yield TransferFault(f"size of dimension {i} is {size}; sizes are at least 1", False)
        if size > 1 and stride < (0 if i == 3 else 1):
            least = "0 or more" if i == 3 else "positive"
            yield TransferFault(f"stride of dimension {i} is {stride}; it must be {least}", False)
    try:
        dims = dims_in_words(list(zip(sizes, strides, strict=True)), element_bits)
    except BdError as error:
        yield TransferFault(str(error), False)
        return
    yield from (TransferFault(text, True) for text in _excesses(limits, dims, linear=linear))


def is_linear(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a transfer of `aiex.npu.dma_memcpy_nd` is linear to mlir-aie: it may be of any length then."""
    return tuple(sizes[1:3]) == (1, 1) and tuple(strides[1:]) == (0, 0, 1)


def memcpy_transfer(limits: TileLimits, sizes: Sequence[int], strides: Sequence[int], element_bits: int) -> BdTransfer:
    """Transfer of `aiex.npu.dma_memcpy_nd`: four sizes and strides as `transfer_faults` passes them.

    length = s0 s1 s2 element_bits / 32 words; the outermost dimension becomes the iteration, unless its stride is 0 (a
    plain repeat). A linear transfer leaves all dimensions out.
    """
    return _transfer(limits, sizes, strides, element_bits, linear=is_linear(sizes, strides))


def task_transfer(
    limits: TileLimits,
    sizes: Sequence[int],
    strides: Sequence[int],
    element_bits: int,
    too_wide: Callable[[BdError], None] | None = None,
) -> BdTransfer:
    """Transfer of a task's `aie.dma_bd`, as `memcpy_transfer` but for what is linear; BdError for `transfer_faults`.

    mlir-aie takes every task BD with s1 = s2 = 1 as linear, *whatever its strides* (`AIEDMATasksToNPU.cpp`, compared
    with its words): an innermost stride other than 1 is lost (`drops_stride`) and contiguous words are moved. Where
    `too_wide` is given, it gets the errors of values that no field holds (and may raise them).
    """
    linear = tuple(sizes[1:3]) == (1, 1)
    if linear and strides[-1] != 1:
        if sizes[-1] > 1 and strides[-1] < 1:
            raise BdError(f"stride of dimension 0 is {strides[-1]}; it must be positive")
        granules(strides[-1], element_bits, "stride of dimension 0")
        strides = (*strides[:-1], 1)
    for text, wide in transfer_faults(limits, sizes, strides, element_bits, linear=linear):
        if too_wide is None or not wide:
            raise BdError(text)
        too_wide(BdError(text))
    return _transfer(limits, sizes, strides, element_bits, linear=linear)


def drops_stride(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether mlir-aie moves contiguous words for a task BD of these four sizes and strides that asks for others."""
    return tuple(sizes[1:3]) == (1, 1) and sizes[-1] > 1 and strides[-1] != 1


def _transfer(
    limits: TileLimits, sizes: Sequence[int], strides: Sequence[int], element_bits: int, *, linear: bool
) -> BdTransfer:
    (runs, run_stride), *outer, innermost = dims_in_words(list(zip(sizes, strides, strict=True)), element_bits)
    inner = [*((size, stride if size > 1 else 0) for size, stride in outer), innermost]
    length_words = math.prod(size for size, _ in inner)
    iteration = (runs, run_stride) if runs > 1 and run_stride else None
    return BdTransfer(length_words, () if linear else tuple(_without_outer_wrap(limits, inner)), iteration)


def _excesses(limits: TileLimits, dims: Sequence[tuple[int, int]], *, linear: bool) -> Iterator[str]:
    """What no field of the BD holds; the outermost dimension is its iteration."""
    stepped = [(size, stride if size > 1 else 0) for size, stride in dims]
    wraps = () if linear else limits.wraps[:2]
    for field, number, value, most in exceeded(limits, dims=stepped[1:], iteration=stepped[0], wraps=wraps):
        if field == "runs":
            yield f"size of dimension {number} is {value}; a BD iterates at most {most} times"
        elif "step" in field:
            yield f"stride of dimension {number} is {value} words; a {limits.kind} BD steps by at most {most}"
        else:
            unit = "steps" if number else "words"
            yield f"size of dimension {number} is {value} {unit}; a {limits.kind} BD holds at most {most}: split it"


def _without_outer_wrap(limits: TileLimits, inner: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A memtile's third dimension has a wrap, which mlir-aie's runtime path never writes; the length ends it."""
    (size, stride), *rest = inner
    if limits.kind is not TileKind.MEMTILE:
        return [(size, stride), *rest]
    return [(0, stride), *rest] if size > 1 else rest


# Register field of each attribute; `buffer_offset` and `burst_length` depend on the tile.
_FIELDS = {
    "buffer_length": "length", "enable_packet": "packet_enable", "out_of_order_id": "out_of_order_id",
    "packet_id": "packet_id", "packet_type": "packet_type",
    "d0_size": "d0_wrap", "d0_stride": "d0_step", "d1_size": "d1_wrap", "d1_stride": "d1_step", "d2_stride": "d2_step",
    "iteration_current": "iteration_current", "iteration_size": "iteration_wrap", "iteration_stride": "iteration_step",
    "next_bd": "next", "use_next_bd": "use_next", "valid_bd": "valid",
    "lock_rel_val": "release_value", "lock_rel_id": "release_id",
    "lock_acq_enable": "acquire_enable", "lock_acq_val": "acquire_value", "lock_acq_id": "acquire_id",
    "d0_zero_before": "d0_pad_before", "d1_zero_before": "d1_pad_before", "d2_zero_before": "d2_pad_before",
    "d0_zero_after": "d0_pad_after", "d1_zero_after": "d1_pad_after", "d2_zero_after": "d2_pad_after",
}  # fmt: skip


def raw_bd_words(
    kind: TileKind,
    generation: Generation,
    values: Mapping[str, int],
    too_wide: Callable[[RegisterError], None] | None = None,
) -> list[int]:
    """Register words of `aiex.npu.writebd`, whose `values` go into the fields as they are.

    As in mlir-aie `d2_size` is left out everywhere (shims and core tiles have no such field), and `buffer_offset`
    counts bytes on shims and core tiles but words on memtiles. RegisterError names a field that its value does not fit
    (`too_wide` gets it and may let it pass); ValueError one that the tile's BD has not.
    """
    layout = TILE_REGISTERS[kind].bd
    fields: dict[str, int] = {}
    for attribute, name in _FIELDS.items():
        value = values[attribute]
        if name in layout.fields:
            fields[name] = _pattern(layout.fields[name], value)
        elif value:
            raise ValueError(f"{attribute} = {value}, but a {kind} BD has no such field")
    offset = values["buffer_offset"]
    if kind is TileKind.SHIM:
        fields |= {"address_low": offset, "axi_cache": RUNTIME_AXI_CACHE}
        fields["burst"] = burst_code(generation, values.get("burst_length", 0))
    else:
        fields["address"] = offset // GRANULE_BYTES if kind is TileKind.CORE else offset
    return layout.encode(fields, too_wide)


def _pattern(field: Bits, value: int) -> int:
    """Signed fields may be given as their bit pattern."""
    lowest, highest = field.bounds
    return value - (highest - lowest + 1) if field.signed and highest < value <= highest - lowest else value
