"""An array with a design on it, on which operations run: once (`emulate`) or again and again (`Resident`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.devices import MLIR_DEVICES
from bdforge.emulator.array import Array
from bdforge.emulator.controller import execute
from bdforge.emulator.cores.mlir.values import modes
from bdforge.emulator.errors import DesignError
from bdforge.emulator.reconfigure import Reconfiguration
from bdforge.images.read import read_image
from bdforge.mlir import parse
from bdforge.mlir.device_ops import DeviceOp
from bdforge.txn import Operation, TxnError, decode


class Machine:
    """An array with a device of a module loaded; MlirError, DesignError or KernelError where that fails.

    With the writes of an `image` it boots from them.
    """

    def __init__(
        self,
        module: ModuleOp,
        start: DeviceOp,
        kernels: Mapping[str, Callable],
        array: Array,
        image: Sequence[Operation] = (),
    ) -> None:
        self.array = array
        self.configurations = Reconfiguration(module, array, kernels)
        self.configurations.load(start, image)

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


def only_configuration(image: bytes) -> Sequence[Operation]:
    """The register writes of a CDO, PDI, xclbin or full ELF; ImageError for bytes that are none, DesignError where it
    holds several configurations."""
    found = read_image(image).configurations
    if len(found) != 1:
        raise DesignError(f"the image holds {len(found)} configurations; give a PDI or CDO of one")
    return found[0]


def empty_design(device: str | None, instructions: np.ndarray | bytes | None) -> str:
    """Text for an image that comes without: an array as `device` or the instruction stream names it.

    DesignError where neither does.
    """
    if device is None and instructions is not None:
        with suppress(TxnError):
            header = decode(instructions).header
            made_for = header.generation, header.columns
            known = ((d.generation.instruction_generation, d.columns) for d in MLIR_DEVICES.values())
            device = dict(zip(known, MLIR_DEVICES, strict=True)).get(made_for) if header.knows_device else None
    if device not in MLIR_DEVICES:
        raise DesignError(f"an image does not tell its array: name the device ({', '.join(MLIR_DEVICES)})")
    return f"aie.device({device}) {{\n}}\n"


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
