"""A design that stays on the emulated array from run to run, as on an NPU whose hosts load it once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock

import numpy as np

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.core_machine import Machine, only_configuration, stream_operations
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.module_choice import choose, host_arrays
from bdforge.array.emulator.scheduler import STEP_BUDGET, Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir import parsed


class Resident:
    """A design on an array of its own, for any number of runs of instruction words, as on an NPU.

    One run at a time, whichever threads ask. After a run that failed the next one gets a new array with the design
    loaded again. With an `image` (CDO, PDI, xclbin or full ELF) the array boots from that; the text then gives names,
    and bodies of cores without machine code, if it gives anything. `permissive` are checks that are off. MlirError,
    LoadError, KernelError or ImageError for what cannot be loaded.
    """

    def __init__(
        self,
        mlir: str,
        kernels: Mapping[str, Callable],
        file: str = "<string>",
        budget: int = STEP_BUDGET,
        image: bytes | None = None,
        permissive: Collection[str] = (),
    ):
        self._permissive = Strictness.without(permissive).permitted
        self._module, self._kernels, self._budget = parsed(mlir, file), kernels, budget
        self._image = only_configuration(image)
        self._start, _ = choose(self._module, None, None, file, runs_words=True)
        self._machine: Machine | None = self._load()
        self._lock = Lock()

    @property
    def device(self) -> str:
        """The array that the design is for, as MLIR names it."""
        return self._start.device.mlir

    def run(self, instructions: np.ndarray | bytes, args: Sequence[np.ndarray]) -> tuple[str, ...]:
        """Run an instruction stream on host arrays, its arguments by number, updated in place; returns warnings.

        Raises EmulationError for what the array would not survive.
        """
        with self._lock:
            return self._run(instructions, args)

    def _run(self, instructions: np.ndarray | bytes, args: Sequence[np.ndarray]) -> tuple[str, ...]:
        machine, self._machine = self._machine or self._load(), None  # put back only after a run that ended well
        array = machine.array
        array.strictness.messages.clear()
        array.refill()
        array.host = HostBuffers(host_arrays(None, args, True, array.strictness))
        machine.run(stream_operations(array, instructions))
        self._machine = machine
        return machine.warnings

    def _load(self) -> Machine:
        array = Array(self._start.device, HostBuffers(), Scheduler(self._budget), Strictness(self._permissive))
        array.by_words = True
        return Machine(self._module, self._start, self._kernels, array, self._image)
