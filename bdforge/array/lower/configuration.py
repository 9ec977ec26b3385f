"""The static configuration of a device: what is written before any runtime sequence, and in which order.

Source: mlir-aie 5ff2ab97 (`AIERT.cpp`, `AIETargetCDODirect.cpp`), whose order this is. Of it these matter: a core's
reset and zeroed locks come before first values of locks, all BDs of a DMA before its starts, enabling of cores last.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bdforge.array.lower.core_writes import ProgramSegment, enable_core, load_program, reset_core, set_cascades
from bdforge.array.lower.dma_programs import set_dma
from bdforge.array.lower.switch_writes import has_token_route, set_mux, set_switch
from bdforge.array.mlir.allocate import AddressMap, allocate, element_bits
from bdforge.array.mlir.array_ops import CoreOp, FlowOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DMA_PROGRAMS
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.switch_ops import ShimMuxOp, SwitchboxOp
from bdforge.array.routing import RoutingError, route
from bdforge.array.routing.write import routed
from bdforge.array.txn.target import REFUSING, ControllerIds, Policy, lowering_error
from bdforge.array.txn.writer import Tile, Writer
from bdforge.common.messages import clip_path
from bdforge.devices import Device, Generation, TileKind
from bdforge.devices.limits import BYTE_BITS, GRANULE_BYTES
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.rules import outside
from bdforge.devices.txn_format.operations import Operation

Programs = Callable[[Path, Generation], Iterable[ProgramSegment]]
"""The pieces of the program in a core's ELF; ValueError for one that cannot be loaded."""


@dataclass(frozen=True, slots=True)
class StaticConfiguration:
    """Register writes of a device, in the three parts that mlir-aie makes files of.

    `bare` are the cores (column, row) that run whatever program memory holds, since the text names no `elf_file`,
    with the functions that their bodies call. `elf_files` are the others' programs, `allocation` where buffers and
    locks lie.
    """

    device: Device
    symbol: str
    elfs: tuple[Operation, ...]
    init: tuple[Operation, ...]
    enable: tuple[Operation, ...]
    bare: Mapping[Tile, tuple[str, ...]]
    elf_files: Mapping[Tile, Path | Sequence[ProgramSegment]]
    allocation: AddressMap

    @property
    def parts(self) -> tuple[tuple[Operation, ...], ...]:
        """The three parts in order."""
        return self.elfs, self.init, self.enable

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All writes in order."""
        return self.elfs + self.init + self.enable


def configuration(
    device: DeviceOp,
    programs: Programs,
    policy: Policy = REFUSING,
    programs_of: Mapping[Tile, Path | Sequence[ProgramSegment]] | None = None,
) -> StaticConfiguration:
    """Lower a device; the text stays as it is.

    Flows are routed first (`bdforge.array.routing`) unless the text sets its switches, with a way for the completion
    tokens of every shim that it declares. LoweringError names the place of what registers cannot hold, RoutingError and
    AllocationError what does not fit. `policy` decides about faults that may pass; by default all are raised.
    `programs_of` are ELFs, or pieces of them, that cores run instead of the text's.
    """
    _check_controllers(device)
    allocation = allocated(device, policy)
    cores = _cores(device, policy)
    files: dict[Tile, Path | Sequence[ProgramSegment]] = {**_files(cores), **(programs_of or {})}
    elfs, init, enable = Writer(), Writer(), Writer()
    for core in cores:
        if (path := files.get(core.tile.place)) is not None:
            pieces = _program(core, path, programs) if isinstance(path, Path) else path
            for piece in pieces:
                _report_unaligned(core, piece.address, piece.data, policy)
            load_program(elfs, core, pieces, device.device)
        reset_core(init, core)
        enable_core(enable, core)
    _set_memory(init, device, allocation, policy)
    for kind in DMA_PROGRAMS:
        for op in device.body.block.ops:
            if isinstance(op, kind):
                set_dma(init, op, allocation, policy)
    _set_streams(init, _routed(device, policy), policy)
    set_cascades(init, device)
    bare = {core.tile.place: core.callees for core in cores if core.tile.place not in files}
    parts = [tuple(writer.operations) for writer in (elfs, init, enable)]
    return StaticConfiguration(device.device, device.symbol, parts[0], parts[1], parts[2], bare, files, allocation)


def allocated(device: DeviceOp, policy: Policy) -> AddressMap:
    """Where buffers and locks lie; AllocationError for what does not fit, unless `policy` lets it pass."""
    return allocate(device, partial(policy.fault, "memory-overflow"), partial(policy.fault, "buffer-overlap"))


def _routed(device: DeviceOp, policy: Policy) -> DeviceOp:
    """What sets the device's switches.

    mlir-aie takes circuits out of the text when it routes them: one that stands beside switches has to be there.
    """
    if (found := routed(device)) is device and any(isinstance(op, FlowOp) for op in device.body.block.ops):
        try:
            route(device)
        except RoutingError as error:
            policy.fault("routing", error)
    return found


def _check_controllers(device: DeviceOp) -> None:
    """LoweringError for two tiles of a column with one controller id, by which aiecc routes the column's tokens."""
    ids = ControllerIds.AIECC.of(device)
    owners: dict[tuple[int, int], TileOp] = {}
    for tile in (op for op in device.walk() if isinstance(op, TileOp)):
        own = ids[tile.place]
        owner = owners.setdefault((tile.column, own), tile)
        if owner.row != tile.row:
            raise lowering_error(
                tile,
                f"tiles {owner.place} and {tile.place} share controller id {own}, by which their column's "
                "tokens are routed; give each its own",
            )


def _cores(device: DeviceOp, policy: Policy) -> list[CoreOp]:
    """Cores in the order of the text's tiles, one for each: the last in the text, which mlir-aie finds first."""
    found: dict[Tile, CoreOp] = {}
    for op in (op for op in device.body.block.ops if isinstance(op, CoreOp)):
        if (other := found.get(place := op.tile.place)) is not None:
            problem = f"{location(op)}: tile {place} has a core already, at {location(other)}: this one takes its place"
            policy.caution("core-twice", problem)
        found[place] = op
    tiles = dict.fromkeys(op.place for op in device.body.block.ops if isinstance(op, TileOp))
    return [found[tile] for tile in tiles if tile in found]


def _files(cores: Sequence[CoreOp]) -> dict[Tile, Path]:
    """The ELFs that cores name, beside the text."""
    folders = {core: Path(location(core).file).parent for core in cores}
    return {core.tile.place: folders[core] / core.elf_file for core in cores if core.elf_file is not None}


def _program(core: CoreOp, path: Path, programs: Programs) -> list[ProgramSegment]:
    try:
        return list(programs(path, core.tile.device_op.device.generation))
    except ValueError as error:
        raise lowering_error(core, f"elf_file {clip_path(path)}: {error}") from None


def _report_unaligned(op: CoreOp | BufferOp, address: int, data: bytes, policy: Policy) -> None:
    if address % GRANULE_BYTES and data:
        start = address + -address % GRANULE_BYTES
        policy.caution(
            "unaligned-data",
            f"{location(op)}: {len(data)} bytes for {address:#x} are written from {start:#x} on, as aie-rt misplaces "
            f"what starts at no multiple of {GRANULE_BYTES}: give it an address that is one",
        )


def _set_memory(writer: Writer, device: DeviceOp, allocation: AddressMap, policy: Policy) -> None:
    """First values of locks, then of buffers, of all regions. Locks without one keep their value."""
    for op in device.walk():
        if isinstance(op, LockOp) and "init" in op.properties:
            if (problem := outside("lock value", op.init, op.tile.limits)) is not None:
                policy.fault("lock-range", lowering_error(op, f"init: {problem}"))
            offset = TILE_REGISTERS[op.tile.kind].lock_offset(allocation.locks[op])
            writer.write(op, op.tile.place, offset, max(0, min(op.init, op.tile.limits.lock_value_max)))
    for op in device.walk():
        if isinstance(op, BufferOp) and (value := op.initial_value) is not None:
            address, data = allocation.buffers[op], _bytes(value, op)
            _report_unaligned(op, address, data, policy)
            writer.fill(op, op.tile.place, address, data)


def _bytes(value: np.ndarray, op: BufferOp) -> bytes:
    """Elements in row-major order, each in whole bytes whose upper bits are 0."""
    if value.dtype == np.bool_:
        return (value.view(np.uint8) != 0).astype(np.uint8).tobytes()
    if value.dtype != object:
        return value.tobytes()
    bits = element_bits(op.type.element_type)
    return b"".join((int(v) % (1 << bits)).to_bytes(-(-bits // BYTE_BITS), "little") for v in value.flat)


def _set_streams(writer: Writer, device: DeviceOp, policy: Policy) -> None:
    ops = list(device.body.block.ops)
    boxes = [op for op in ops if isinstance(op, SwitchboxOp)]
    for box in boxes:
        set_switch(writer, box)
    for op in ops:
        if isinstance(op, ShimMuxOp):
            set_mux(writer, op)
    for box in boxes:
        routed = box.tile.kind is TileKind.SHIM and (box.connects or box.mastersets)
        if routed and not has_token_route(box):
            policy.caution(
                "token-route",
                f"{location(box)}: nothing leads from TileControl : 0 of shim {box.tile.place} to its South : 0, "
                "so no wait for a token of its channels ever ends on silicon; route packets there, or leave routing to "
                "bdforge",
            )
