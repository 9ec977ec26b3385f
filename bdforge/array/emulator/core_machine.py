"""An array on which operations run, and the devices of a module, one of which is loaded at a time.

It runs once (`emulate`) or again and again (`Resident`). Loading resets DMAs, streams and cores. Buffers with initial
values are written and locks set as on the first load; everything else in memory stays (hardware facts 1.3, mlir-aie's
`AIERT.cpp`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.controller import execute
from bdforge.array.emulator.cores.interpreted.number_formats import modes
from bdforge.array.emulator.device_load import LoadedDevice
from bdforge.array.emulator.errors import LoadError
from bdforge.array.images.read import read_image
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.txn.lower import lower
from bdforge.common.messages import listed
from bdforge.devices import MLIR_DEVICES
from bdforge.devices.txn_format.codec import TxnError, decode
from bdforge.devices.txn_format.operations import LoadPdi, Operation


class Machine:
    """An array with a device of a module loaded; MlirError, LoadError or KernelError where that fails.

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
        self.module, self.array, self.kernels = module, array, kernels
        self._loaded: dict[str, LoadedDevice] = {}
        self._ids: dict[int, set[str]] | None = None
        self.load(start, image)

    def run(self, operations: Iterable[Operation]) -> None:
        """Run operations on the array's host memory until nothing moves; EmulationError for what it does not survive.

        Memory, locks and BDs stay as they are then, for the next run to find.
        """
        array = self.array
        with modes(start=not array.strictness.permits("start-modes")):  # no operation of MLIR sets rounding modes
            execute(array, operations, self._load_pdi)
            array.scheduler.run()
        array.dram.finish()
        array.host.write_back()

    @property
    def warnings(self) -> tuple[str, ...]:
        return *self.array.strictness.warnings, *self.array.left_over()

    def buffers(self) -> dict[str, np.ndarray]:
        """Memory of every named buffer of the device loaded last; where there were several, also as device::name."""
        views = {}
        for symbol, configuration in self._loaded.items():
            if len(self._loaded) > 1:
                views |= {f"{symbol}::{name}": view for name, view in configuration.views().items()}
        return views | [*self._loaded.values()][-1].views()

    def load(self, device: DeviceOp, image: Sequence[Operation] = ()) -> None:
        """Load a device, or an image of it; what was loaded before stops."""
        self.array.restart()
        self._loaded.pop(device.symbol, None)  # the one loaded last comes last
        self._loaded[device.symbol] = LoadedDevice(device, self.array, self.kernels, image)

    def _load_pdi(self, operation: LoadPdi, source: str) -> None:
        """Load the device that an operation means; LoadError for one that names none."""
        name = operation.device or self._device_of_id(operation.id)
        for device in self.module.walk():
            if isinstance(device, DeviceOp) and device.symbol == name:
                if device.device != self.array.device:
                    raise LoadError(
                        f"@{name} is for {device.device.mlir}, but {self.array.device.mlir} is running{source}"
                    )
                if operation.expanded:
                    self.array.strictness.warn(
                        f"@{name} is loaded by {operation.expanded}: here at once, as a PDI is, in a PDI's time"
                    )
                self.load(device)
                return
        named = f"id {operation.id}" if name is None else f"@{name}"
        raise LoadError(f"the array configuration of {named} is no aie.device of this module{source}; give device_ref")

    def _device_of_id(self, pdi_id: int) -> str | None:
        """Instruction words hold ids only; the module's sequences, lowered, tell which device each id stands for."""
        if self._ids is None:
            sequences = [op for op in self.module.walk() if isinstance(op, RuntimeSequenceOp)]
            loads = [op for sequence in sequences for op in lower(sequence) if isinstance(op, LoadPdi)]
            self._ids = defaultdict(set)
            for op in loads:
                if op.device is not None:
                    self._ids[op.id].add(op.device)
        names = self._ids[pdi_id]
        if len(names) > 1:
            meant = listed(sorted(f"@{name}" for name in names))
            raise LoadError(f"configurations {meant} are all loaded as id {pdi_id}; give each load an id of its own")
        return next(iter(names), None)


def only_configuration(image: bytes | None) -> Sequence[Operation]:
    """The register writes of a CDO, PDI, xclbin or full ELF, none without one; ImageError for bytes that are none,
    LoadError where it holds several configurations."""
    if image is None:
        return ()
    found = read_image(image).configurations
    if len(found) != 1:
        raise LoadError(f"the image holds {len(found)} configurations; give a PDI or CDO of one")
    return found[0]


def empty_design(device: str | None, instructions: np.ndarray | bytes | None) -> str:
    """Text for an image that comes without: an array as `device` or the instruction stream names it.

    LoadError where neither does.
    """
    if device is None and instructions is not None:
        with suppress(TxnError):
            header = decode(instructions).header
            made_for = header.generation, header.columns
            known = ((d.generation.instruction_generation, d.columns) for d in MLIR_DEVICES.values())
            device = dict(zip(known, MLIR_DEVICES, strict=True)).get(made_for) if header.knows_device else None
    if device not in MLIR_DEVICES:
        raise LoadError(f"an image does not tell its array: name the device ({', '.join(MLIR_DEVICES)})")
    return f"aie.device({device}) {{\n}}\n"


def stream_operations(array: Array, instructions: np.ndarray | bytes) -> Sequence[Operation]:
    """Operations of an instruction stream; LoadError for words that are none, or that were made for another array."""
    try:
        stream = decode(instructions)
    except TxnError as error:
        raise LoadError(f"instruction stream: {error}") from None
    device, header = array.device, stream.header
    made_for = header.generation, header.columns, header.rows
    wanted = device.generation.instruction_generation, device.columns, device.rows
    for note in stream.notes:
        array.strictness.warn(f"instruction stream: {note}")
    if header.knows_device and made_for != wanted:
        words, here = (f"generation {g} with {c} columns x {r} rows" for g, c, r in (made_for, wanted))
        raise LoadError(
            f"the instruction stream is for {words}, but {device.mlir} is {here}; encode it for this device"
        )
    return stream.operations
