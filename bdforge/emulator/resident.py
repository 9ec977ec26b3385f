"""A design that stays on the emulated array from run to run, as on an NPU whose hosts load it once."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.choose import choose, host_arrays
from bdforge.emulator.controller import execute
from bdforge.emulator.cores.mlir.values import modes
from bdforge.emulator.errors import DesignError
from bdforge.emulator.host import HostMemory
from bdforge.emulator.reconfigure import Reconfiguration
from bdforge.emulator.scheduler import STEP_BUDGET, Scheduler
from bdforge.emulator.strictness import Strictness
from bdforge.mlir import parse
from bdforge.txn import Operation, TxnError, decode


class Resident:
    """A design on an array of its own, for any number of runs of instruction words.

    Memory, locks and BDs stay as a run leaves them, for the next one to find. After a run that failed the next one gets
    a new array with the design loaded again. MlirError, DesignError or KernelError for a design that cannot be loaded.
    """

    def __init__(self, mlir: str, kernels: Mapping[str, Callable], file: str = "<string>", budget: int = STEP_BUDGET):
        self._module, self._kernels, self._budget = parsed(mlir, file), kernels, budget
        self._start, _ = choose(self._module, None, None, file, runs_words=True)
        self._loaded: tuple[Array, Reconfiguration] | None = self._load()

    @property
    def device(self) -> str:
        """The array that the design is for, as MLIR names it."""
        return self._start.device.mlir

    def run(self, instructions: np.ndarray | bytes, args: Sequence[np.ndarray]) -> tuple[str, ...]:
        """Run an instruction stream on host arrays, its arguments by number, updated in place; returns warnings.

        Raises EmulationError for what the array would not survive.
        """
        array, configurations = self._loaded or self._load()
        self._loaded = None
        array.strictness.told.clear()
        array.scheduler.refill()
        array.host = HostMemory(host_arrays(None, args, True, array.strictness))
        with modes(start=True):
            execute(array, stream_operations(array, instructions), configurations.load_pdi)
            array.scheduler.run()
        array.host.write_back()
        self._loaded = array, configurations
        return *array.strictness.warnings, *array.left_over()

    def _load(self) -> tuple[Array, Reconfiguration]:
        array = Array(self._start.device, HostMemory(), Scheduler(self._budget), Strictness())
        array.by_words = True
        configurations = Reconfiguration(self._module, array, self._kernels)
        configurations.load(self._start)
        return array, configurations


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
