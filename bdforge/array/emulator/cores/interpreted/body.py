"""The body of an `aie.core` as a core's program. Importing the modules of operations fills the table of emitters."""

from collections.abc import Generator

from bdforge.array.emulator.cores.core import EmulatedCore, largest
from bdforge.array.emulator.cores.interpreted import affine, aie
from bdforge.array.emulator.cores.interpreted import control_flow as control
from bdforge.array.emulator.cores.interpreted import float_ops as floats
from bdforge.array.emulator.cores.interpreted import integer_ops as integers
from bdforge.array.emulator.cores.interpreted import memref_ops as memory
from bdforge.array.emulator.cores.interpreted import vector_ops as vectors
from bdforge.array.emulator.cores.interpreted.translation import DesignView, Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import location
from bdforge.array.mlir.array_ops import CoreOp

OPERATIONS = affine, aie, control, floats, integers, memory, vectors
"""Where the operations of core programs get their meanings."""


class InterpretedBody:
    """A translated body, ready to run on its core; CoreError for operations that cannot be run."""

    def __init__(self, core: EmulatedCore, op: CoreOp, outside: DesignView) -> None:
        self._translation = Translation(core, op, outside)
        self._steps = self._translation.compile()
        if (fault := largest(core.frames, op.stack_size, self._translation.stack_bytes)) is not None:
            core.array.strictness.fault("stack", CoreError(f"{location(op)}: {core.name}: {fault}"))

    def run(self, core: EmulatedCore) -> Generator[None, None, None]:
        return self._steps(core)

    def place(self, error: Exception) -> str:
        """Where in the MLIR the program stood when it failed."""
        trace = error.__traceback__
        line = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._translation.file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return "" if line is None else f" ({location(self._translation.origin(line))})"
