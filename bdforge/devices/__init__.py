"""Facts of AMD's NPUs: topology, limits and registers, each with its source.

Nothing outside this package may state a hardware number. Sources are named in the modules:

- *MA*: Xilinx/mlir-aie 5ff2ab97, `AIETargetModel`, verifiers and lowerings
- *RT*: Xilinx/aie-rt cc68248, register lists of AIE2 (`xaiemlgbl`) and AIE2P (`xaie2pgbl`)
- *API*: Xilinx/aie_api headers
- *020*: AMD AM020, architecture of AIE-ML
- *DRV*: amd/xdna-driver 856409ca
"""

from bdforge.devices.limits import AIE2, AIE2P, Generation, TileKind, TileLimits
from bdforge.devices.switches import PortBundle, Switch, neighbour, switch_of
from bdforge.devices.topology import (
    DEVICES,
    FIRST_CORE_ROW,
    MLIR_DEVICES,
    Device,
    DeviceError,
    device_named,
    mlir_device_named,
)

__all__ = [
    "AIE2", "AIE2P", "DEVICES", "FIRST_CORE_ROW", "MLIR_DEVICES", "Device", "DeviceError", "Generation", "PortBundle",
    "Switch", "TileKind", "TileLimits", "device_named", "mlir_device_named", "neighbour", "switch_of",
]  # fmt: skip
