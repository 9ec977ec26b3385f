"""The order of DRAM in a sequence, told without running it.

The controller runs the operations that concern shims on an array where every task ends at once and moves nothing: which
tokens were awaited before a task is started is a matter of the operations' order alone.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.controller import execute
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.dram_order import DramOrder
from bdforge.array.emulator.errors import EmulationError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir.allocate import memref_bytes
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.devices import Device
from bdforge.devices.registers import split_address
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, MaskWrite, Operation, Patch, Sync, Write

REACH_BYTES = 1 << 34
"""Of a shim BD: its length counts words in 32 bits."""


class _Skipping(Scheduler):
    """Ends every task that is pushed."""

    def _step(self, agent: Agent) -> None:
        assert isinstance(agent, DmaChannel)
        agent.skip()


class _OrderFaults(Strictness):
    """Hears of the order of DRAM alone: what else is wrong is told elsewhere, and tokens come too early here."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Exception] = []

    def fault(self, name: str, error: Exception) -> None:
        if name == "dram-order":
            self.found.append(error)


def order_faults(entry: RuntimeSequenceOp, device: Device, operations: Sequence[Operation]) -> Sequence[Exception]:
    """Each task of a lowered sequence that reads what another one writes before that one's token was awaited."""
    names = [value_name(argument) or str(index) for index, argument in enumerate(entry.arguments)]
    sizes = [_bytes(argument.type) for argument in entry.arguments]
    faults = _OrderFaults()
    skim(device, HostBuffers.unmoved(zip(names, sizes, strict=True)), faults, operations)
    return faults.found


def skim(
    device: Device, host: HostBuffers, policy: Strictness, operations: Iterable[Operation],
    order: Callable[[Array], DramOrder] = DramOrder,
) -> DramOrder:  # fmt: skip
    """What the order of DRAM is behind the operations that concern shims, where every task ends at once."""
    array = Array(device, host, _Skipping(), policy)
    array.dram = order(array)
    with suppress(EmulationError):  # words that no array takes are a fault of their own
        execute(array, filter(_concerns_shims, operations), lambda operation, source: array.restart())
    return array.dram


def _bytes(kind: Attribute) -> int:
    """Of an argument; as much as a BD reaches where its type does not say."""
    if isinstance(kind, MemRefType) and DYNAMIC_INDEX not in kind.get_shape():
        with suppress(ValueError):  # elements without a size
            return min(memref_bytes(kind), REACH_BYTES)
    return REACH_BYTES


def _concerns_shims(operation: Operation) -> bool:
    match operation:
        case Write(address) | MaskWrite(address) | BlockWrite(address):
            return split_address(address)[1] == 0
        case Sync():
            return operation.row == 0
        case Patch() | LoadPdi():
            return True
    return False
