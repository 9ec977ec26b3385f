"""Rules of the array's operations. A rule yields (operation at fault, message)."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar, get_args, get_type_hints

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation

from bdforge.array.mlir.array_ops import CoreOp, FlowOp, ShimDmaAllocationOp
from bdforge.array.mlir.attributes import BlockFloatType, PacketInfo
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.device_ops import DeviceOp, EndOp, TileOp
from bdforge.array.mlir.dialect_forms import Era, era_of
from bdforge.array.mlir.dma_ops import BdChainOp, DmaProgramOp
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp, UseLockOp
from bdforge.array.mlir.operation import constant_of, enclosing
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.stream_ops import (
    CascadeFlowOp,
    ConfigureCascadeOp,
    PacketDestOp,
    PacketEndOp,
    PacketFlowOp,
    PacketSourceOp,
)
from bdforge.array.mlir.switch_ops import SwitchSettingsOp
from bdforge.array.mlir.task_ops import ConfigureTaskOp
from bdforge.array.mlir.upstream import GlobalOp
from bdforge.devices import AIE2, PortBundle, TileKind, TileLimits
from bdforge.devices.limits import SHIM, core_lock
from bdforge.devices.rules import outside

Faults = Iterator[tuple[Operation, str]]
RULES: dict[type[Operation], list[Callable[..., Faults]]] = defaultdict(list)
"""Rules by the class, or base of classes, of which they judge each operation."""
RuleT = TypeVar("RuleT", bound=Callable[..., Faults])


def rule(check: RuleT) -> RuleT:
    """Let a function judge every operation that its argument `op` may be; what it cannot read may raise ValueError."""
    judged = get_type_hints(check)["op"]
    for kind in get_args(judged) or (judged,):
        RULES[kind].append(check)
    return check


def must_stand_in(
    holders: tuple[type[Operation], ...], *kinds: type[Operation], problem: str, deep: bool = False
) -> None:
    """Refuse operations of some kinds that do not stand directly (if `deep`: somewhere) in one of `holders`."""

    def check(op: Operation) -> Faults:
        if not (any(enclosing(op, kind) for kind in holders) if deep else isinstance(op.parent_op(), holders)):
            yield op, problem

    for kind in kinds:
        RULES[kind].append(check)


@rule
def device(op: DeviceOp) -> Faults:
    """Standing in the module."""
    if enclosing(op, DeviceOp) is not None:
        yield op, "devices stand side by side in the module, not in one another"


# mlir-aie's passes look nowhere else, so elsewhere these would be lost.
must_stand_in(
    (DeviceOp,), CoreOp, DmaProgramOp, BdChainOp, FlowOp, PacketFlowOp, CascadeFlowOp, ConfigureCascadeOp,
    SwitchSettingsOp, ShimDmaAllocationOp, RuntimeSequenceOp, problem="must stand directly in an aie.device",
)  # fmt: skip
must_stand_in((DeviceOp,), TileOp, problem="must stand in an aie.device", deep=True)
must_stand_in((PacketFlowOp,), PacketEndOp, problem="must stand in an aie.packet_flow")


@rule
def tile(op: TileOp) -> Faults:
    """Without a scheme where no memory is."""
    if op.kind is TileKind.SHIM and "allocation_scheme" in op.properties:
        yield op, "allocation_scheme: a shim has no memory in which buffers could lie; leave it out"


@rule
def tiles(op: DeviceOp) -> Faults:
    """Each tile has one name."""
    found: dict[tuple[int, int], TileOp] = {}
    for tile in (inner for inner in op.walk() if isinstance(inner, TileOp)):
        if (first := found.setdefault(tile.place, tile)) is not tile:
            yield tile, f"tile {tile.place} is declared already (line {location(first).line}); use that"


@rule
def buffer(op: BufferOp) -> Faults:
    """On a tile with memory, of a known size, used from tiles that reach it."""
    if op.tile.kind is TileKind.SHIM:
        yield op, f"tile {op.tile.place} is a shim, which has no data memory; use host memory"
    yield from block_floats(op, op.type.element_type)
    if DYNAMIC_INDEX in op.type.get_shape():
        yield op, f"its size must be known, but the type is {op.type}"
    yield from reach(op, op.tile, "buffer")


@rule
def initial_value(op: BufferOp | GlobalOp) -> Faults:
    """Of the memory's own type."""
    value = op.properties.get("initial_value")
    if isinstance(value, DenseIntOrFPElementsAttr):
        same_shape = tuple(value.get_shape()) == tuple(op.type.get_shape())
        if not same_shape or value.get_element_type() != op.type.element_type:
            yield op, f"its initial value is of type {value.type}, but the memory of type {op.type}"


def block_floats(op: Operation, element: Attribute) -> Faults:
    """Of a format that the device's cores have: both on AIE2P, none on AIE2 (MA)."""
    device = enclosing(op, DeviceOp)
    if isinstance(element, BlockFloatType) and device is not None and device.device.generation is AIE2:
        yield op, f"holds {element}, which {device.device_name} has not: block floats are of AIE2P (npu2)"


def burst(op: DmaBdOp | NpuDmaMemcpyNdOp) -> Faults:
    """Of a length that the device's shims have; 0 asks for the longest."""
    device = enclosing(op, DeviceOp)
    known = (op.burst_length,) if device is None else device.device.generation.bursts
    if op.burst_length and op.burst_length not in known:
        yield op, f"burst_length = {op.burst_length}; the device has {', '.join(map(str, known))} bytes (0: longest)"


def number(op: Operation, name: str, value: int, tile: TileLimits) -> Faults:
    """In the range that a tile has (`bdforge.devices.rules`)."""
    if (problem := outside(name, value, tile)) is not None:
        yield op, problem


@rule
def lock(op: LockOp) -> Faults:
    """With an id that its tile has, used from tiles that reach it."""
    if op.id is not None:
        yield from number(op, "lock", op.id, op.tile.limits)
    yield from reach(op, op.tile, "lock")


def reach(op: BufferOp | LockOp, home: TileOp, what: str) -> Faults:
    """Cores and DMAs that use a buffer or lock must reach its tile."""
    for use in op.result.uses:
        user = use.operation
        program = enclosing(user, CoreOp) or enclosing(user, DmaProgramOp)
        if program is None or not isinstance(program.operands[0].owner, TileOp):
            continue
        if not reaches(program, home):
            user_at = f"the {program.name} of tile {program.tile.place}, which reaches {_reach_of(program)}"
            yield op, f"this {what} of tile {home.place} is used by {user_at}"


def reaches(program: CoreOp | DmaProgramOp, home: TileOp) -> bool:
    """Whether a core or a tile's DMA reaches the memory and locks of a tile (MA, `isLegalMemAffinity`)."""
    at = program.tile
    east, north = home.column - at.column, home.row - at.row
    if (east, north) == (0, 0):
        return True
    if isinstance(program, CoreOp):
        return home.kind is TileKind.CORE and (east, north) in ((0, 1), (0, -1), (-1, 0))
    return at.kind is TileKind.MEMTILE and home.kind is TileKind.MEMTILE and north == 0 and abs(east) == 1


def _reach_of(program: CoreOp | DmaProgramOp) -> str:
    if isinstance(program, CoreOp):
        return "its own memory and that of the core tiles north, south and west of it"
    if program.tile.kind is TileKind.MEMTILE:
        return "its own memory and that of the memtiles west and east of it"
    return "only its own memory"


@rule
def use_lock(op: UseLockOp) -> Faults:
    """On a lock; an argument of a BD template stands for one, in a core a number (aie-localize-locks writes those)."""
    program, number = enclosing(op, CoreOp), constant_of(op.lock_value)
    if isinstance(op.lock_value.owner, LockOp) or enclosing(op, FuncOp) is not None:
        return
    if enclosing(op, BdChainOp) is not None and isinstance(op.lock_value, BlockArgument):
        return
    if program is None or number is None:
        yield op, "its operand must come from aie.lock"
        return
    column, row, _ = core_lock(*program.tile.place, number)
    kind = program.tile.device_op.device.kind(column, row)
    if kind is not TileKind.CORE:
        yield op, f"lock {number} would be one of the {kind} ({column}, {row}), which this core does not reach"


must_stand_in(
    (CoreOp, FuncOp, DmaProgramOp, ConfigureTaskOp, BdChainOp), UseLockOp, deep=True,
    problem="stands outside of cores, functions, DMA programs and tasks; nothing there can wait for a lock",
)  # fmt: skip


@rule
def core(op: CoreOp) -> Faults:
    """On a core tile; with a body, or with a finished program instead."""
    if op.tile.kind is not TileKind.CORE:
        yield op, f"tile {op.tile.place} is a {op.tile.kind}, which has no core"
    if not op.body.blocks:
        yield op, "needs a body, at least { aie.end }"
        return
    only_end = len(op.body.blocks) == 1 and isinstance(op.body.block.first_op, EndOp)
    if op.elf_file is not None and not only_end:
        yield op, f'elf_file = "{op.elf_file}" is the whole program, so the body must be just {{ aie.end }}'
    if era_of(op) is Era.MODERN:
        yield from _second_core(op)


def _second_core(op: CoreOp) -> Faults:
    """A tile has one core (mlir-aie #3213, shortly before the form of 1.4)."""
    for other in op.tile.device_op.body.block.ops:
        if other is op:
            return
        if isinstance(other, CoreOp) and other.tile.place == op.tile.place:
            yield op, f"tile {op.tile.place} has a core already (line {location(other).line})"


@rule
def allocation(op: ShimDmaAllocationOp) -> Faults:
    """On a shim."""
    if op.tile.kind is not TileKind.SHIM:
        yield op, f"tile {op.tile.place} is a {op.tile.kind}; only a shim's channel can be named"
    yield from packet(op, op.packet)


def packet(op: Operation, info: PacketInfo | None) -> Faults:
    """A packet header must fit its fields."""
    if info is None:
        return
    yield from number(op, "pkt_id", info.id, SHIM)
    yield from number(op, "pkt_type", info.type, SHIM)


@rule
def packet_flow(op: PacketFlowOp) -> Faults:
    """One source, at least one destination, nothing else."""
    others = [o for o in op.ports.block.ops if not isinstance(o, PacketEndOp | EndOp)]
    if others:
        yield others[0], "only aie.packet_source and aie.packet_dest may stand in an aie.packet_flow"
    sources = sum(isinstance(o, PacketSourceOp) for o in op.ports.block.ops)
    if sources != 1:
        yield op, f"needs exactly one aie.packet_source, has {sources}"
    if not any(isinstance(o, PacketDestOp) for o in op.ports.block.ops):
        yield op, "needs at least one aie.packet_dest"


@rule
def cascade_flow(op: CascadeFlowOp) -> Faults:
    """Between neighbouring cores."""
    ends = (op.source, op.destination)
    for end in ends:
        if end.kind is not TileKind.CORE:
            yield op, f"tile {end.place} is a {end.kind}; cascades join core tiles"
    distance = abs(ends[0].column - ends[1].column) + abs(ends[0].row - ends[1].row)
    if distance != 1:
        places = f"tiles {ends[0].place} and {ends[1].place}"
        yield op, f"{places} are no neighbours; a cascade joins adjacent core tiles"


@rule
def configure_cascade(op: ConfigureCascadeOp) -> Faults:
    """In from north or west, out to south or east, on a core tile."""
    if op.tile.kind is not TileKind.CORE:
        yield op, f"tile {op.tile.place} is a {op.tile.kind}, which has no cascade"
    if op.input not in (PortBundle.NORTH, PortBundle.WEST):
        yield op, f"a cascade comes in from North or West, not {op.input}"
    if op.output not in (PortBundle.SOUTH, PortBundle.EAST):
        yield op, f"a cascade goes out to South or East, not {op.output}"
