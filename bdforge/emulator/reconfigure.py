"""The devices of a module, one of which is loaded on the array at a time.

Loading resets DMAs, streams and cores. Buffers with initial values are written and locks set as on the first load;
everything else in memory stays (hardware facts 1.3, mlir-aie's `AIERT.cpp`).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.errors import DesignError
from bdforge.emulator.load import Configuration
from bdforge.mlir.device_ops import DeviceOp
from bdforge.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.txn.lower import lower
from bdforge.txn.operations import LoadPdi, Operation


class Reconfiguration:
    """Loads devices of `module` on `array`."""

    def __init__(self, module: ModuleOp, array: Array, kernels: Mapping[str, Callable]):
        self.module, self.array, self.kernels = module, array, kernels
        self._loaded: dict[str, Configuration] = {}
        self._ids: dict[int, str] | None = None

    def load(self, device: DeviceOp, image: Sequence[Operation] = ()) -> None:
        """Load a device, or an image of it; what was loaded before stops."""
        self.array.restart()
        self._loaded.pop(device.symbol, None)  # the one loaded last comes last
        self._loaded[device.symbol] = Configuration(device, self.array, self.kernels, image)

    def load_pdi(self, operation: LoadPdi, source: str) -> None:
        """Load the device that an operation means; DesignError for one that names none."""
        name = operation.device or self._device_of_id(operation.id)
        for device in self.module.walk():
            if isinstance(device, DeviceOp) and device.symbol == name:
                if device.device != self.array.device:
                    raise DesignError(
                        f"@{name} is for {device.device.mlir}, but {self.array.device.mlir} is running{source}"
                    )
                self.load(device)
                return
        named = f"id {operation.id}" if name is None else f"@{name}"
        raise DesignError(
            f"the array configuration of {named} is no aie.device of this module{source}; give device_ref"
        )

    def buffers(self) -> dict[str, np.ndarray]:
        """Memory of every named buffer of the device loaded last; where there were several, also as device::name."""
        views = {}
        for symbol, configuration in self._loaded.items():
            if len(self._loaded) > 1:
                views |= {f"{symbol}::{name}": view for name, view in configuration.views().items()}
        return views | [*self._loaded.values()][-1].views()

    def _device_of_id(self, pdi_id: int) -> str | None:
        """Instruction words hold ids only; the module's sequences, lowered, tell which device each id stands for."""
        if self._ids is None:
            sequences = [op for op in self.module.walk() if isinstance(op, RuntimeSequenceOp)]
            loads = [op for sequence in sequences for op in lower(sequence) if isinstance(op, LoadPdi)]
            self._ids = {op.id: op.device for op in loads if op.device is not None}
        return self._ids.get(pdi_id)
