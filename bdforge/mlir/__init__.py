"""The aie and aiex dialects: text to operations and back.

`parse` reads and verifies text; `print_module` writes the custom form, `print_generic` the generic one. Operations
carry accessors (`TileOp.column`, `DmaBdOp.dims`, ...), and `location` tells where each stood in its text.
"""

from functools import cache

from xdsl.dialects.builtin import ModuleOp

from bdforge.mlir.array_ops import CoreOp, Endpoint, FlowOp, ShimDmaAllocationOp
from bdforge.mlir.attributes import BlockFloatType, Dimension, PacketInfo, Padding
from bdforge.mlir.bd_ops import DmaBdOp, DmaBdPacketOp, NextBdOp, bd_chain_from, bd_of
from bdforge.mlir.control_ops import (
    ConfigureOp,
    DmaStartBdChainForOp,
    DmaStartBdChainOp,
    NpuLoadPdiOp,
    NpuPreemptOp,
    RunOp,
    StartBdChainOp,
)
from bdforge.mlir.convert import convert as converted
from bdforge.mlir.dense import numpy_of
from bdforge.mlir.device_ops import DeviceOp, EndOp, TileOp
from bdforge.mlir.dialects import AIE, AIEX, context
from bdforge.mlir.dma_ops import BdChainOp, DmaOp, DmaProgramOp, DmaStartOp, MemOp, MemtileDmaOp, ShimDmaOp
from bdforge.mlir.eras import Era, era_of
from bdforge.mlir.errors import Location, MlirError, Source
from bdforge.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.mlir.memory_ops import BufferOp, ExternalBufferOp, LockOp, UseLockOp
from bdforge.mlir.operation import constant_of
from bdforge.mlir.places import error_at, location
from bdforge.mlir.printer import print_generic, print_module
from bdforge.mlir.register_ops import (
    AddressedOp,
    ControlPacketOp,
    NpuAddressPatchOp,
    NpuBlockWriteOp,
    NpuMaskWrite32Op,
    NpuPushQueueOp,
    NpuWrite32Op,
    NpuWriteBdOp,
)
from bdforge.mlir.sequence_ops import NpuDmaWaitOp, NpuRtpWriteOp, NpuSyncOp, RuntimeSequenceOp, SetLockOp
from bdforge.mlir.stream_ops import (
    CascadeFlowOp,
    ConfigureCascadeOp,
    EventOp,
    GetCascadeOp,
    GetStreamOp,
    PacketDestOp,
    PacketFlowOp,
    PacketSourceOp,
    PutCascadeOp,
    PutStreamOp,
)
from bdforge.mlir.task_ops import (
    ConfigureTaskOp,
    DmaAwaitTaskOp,
    DmaConfigureTaskForOp,
    DmaConfigureTaskOp,
    DmaFreeTaskOp,
    DmaStartTaskOp,
    TaskOp,
    TaskUserOp,
)
from bdforge.mlir.upstream import GlobalOp
from bdforge.mlir.verify import read_module
from bdforge.mlir.words import Bundle, CascadeDirection, DeviceName, Direction, LockAction

_context = cache(context)


def parse(text: str, file: str = "<string>") -> ModuleOp:
    """Read and verify MLIR text in custom or generic form.

    MlirError names the place (of `file`) and what is wrong, for any text; no other exception leaves this function.
    """
    return read_module(_context(), Source(text, file))


def convert(text: str, era: Era, file: str = "<string>") -> str:
    """A design's text in the form of `era`: what differs is written anew, comments and layout stay.

    MlirError for text that is no design, and for what the other form cannot say.
    """
    return converted(_context(), Source(text, file), era)


__all__ = [
    "AIE", "AIEX", "AddressedOp", "BdChainOp", "BlockFloatType", "BufferOp", "Bundle", "CascadeDirection",
    "CascadeFlowOp", "ConfigureCascadeOp", "ConfigureOp", "ConfigureTaskOp", "ControlPacketOp", "CoreOp", "DeviceName",
    "DeviceOp", "Dimension", "Direction", "DmaAwaitTaskOp", "DmaBdOp", "DmaBdPacketOp", "DmaConfigureTaskForOp",
    "DmaConfigureTaskOp", "DmaFreeTaskOp", "DmaOp", "DmaProgramOp", "DmaStartBdChainForOp", "DmaStartBdChainOp",
    "DmaStartOp", "DmaStartTaskOp", "EndOp", "Endpoint", "Era", "EventOp", "ExternalBufferOp", "FlowOp", "GetCascadeOp",
    "GetStreamOp", "GlobalOp", "Location", "LockAction", "LockOp", "MemOp", "MemtileDmaOp", "MlirError", "NextBdOp",
    "NpuAddressPatchOp", "NpuBlockWriteOp", "NpuDmaMemcpyNdOp", "NpuDmaWaitOp", "NpuLoadPdiOp", "NpuMaskWrite32Op",
    "NpuPreemptOp", "NpuPushQueueOp", "NpuRtpWriteOp", "NpuSyncOp", "NpuWrite32Op", "NpuWriteBdOp", "PacketDestOp",
    "PacketFlowOp", "PacketInfo", "PacketSourceOp", "Padding", "PutCascadeOp", "PutStreamOp", "RunOp",
    "RuntimeSequenceOp", "SetLockOp", "ShimDmaAllocationOp", "ShimDmaOp", "StartBdChainOp", "TaskOp", "TaskUserOp",
    "TileOp", "UseLockOp", "bd_chain_from", "bd_of", "constant_of", "context",
    "convert", "era_of", "error_at", "location", "numpy_of", "parse", "print_generic", "print_module",
]  # fmt: skip
