"""An array with a design on it, on which operations run: once (`emulate`) or again and again (`Resident`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.controller import execute
from bdforge.emulator.cores.mlir.values import modes
from bdforge.emulator.errors import DesignError
from bdforge.emulator.reconfigure import Reconfiguration
from bdforge.mlir import parse
from bdforge.mlir.array_ops import DeviceOp
from bdforge.txn import Operation, TxnError, decode


class Machine:
    """An array with a device of a module loaded; MlirError, DesignError or KernelError where that fails."""

    def __init__(self, module: ModuleOp, start: DeviceOp, kernels: Mapping[str, Callable], array: Array) -> None:
        self.array = array
        self.configurations = Reconfiguration(module, array, kernels)
        self.configurations.load(start)

    def run(self, operations: Iterable[Operation]) -> None:
        """Run operations on the array's host memory until nothing moves; EmulationError for what it does not survive.

        Memory, locks and BDs stay as they are then, for the next run to find.
        """
        array = self.array
        with modes(start=not array.strictness.permits("start-modes")):
            execute(array, operations, self.configurations.load_pdi)
            array.scheduler.run()
        array.host.write_back()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run let pass, and what it left over."""
        return *self.array.strictness.warnings, *self.array.left_over()


@lru_cache(maxsize=4)
def parsed(mlir: str, file: str) -> ModuleOp:
    """The module of a text: designs are run more often than they change, and a run leaves the module as it is."""
    return parse(mlir, file)


def stream_operations(array: Array, instructions: np.ndarray | bytes) -> Sequence[Operation]:
    """Operations of an instruction stream; DesignError for words that are none, or that were made for another array."""
    try:
        stream = decode(instructions)
    except TxnError as error:
        raise DesignError(f"instruction stream: {error}") from None
    device, header = array.device, stream.header
    made_for = header.generation, header.columns, header.rows
    wanted = device.generation.instruction_generation, device.columns, device.rows
    for note in stream.notes:
        array.strictness.warn(f"instruction stream: {note}")
    if header.knows_device and made_for != wanted:
        words, here = (f"generation {g} with {c} columns x {r} rows" for g, c, r in (made_for, wanted))
        raise DesignError(
            f"the instruction stream is for {words}, but {device.mlir} is {here}; encode it for this device"
        )
    return stream.operations
