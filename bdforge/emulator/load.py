"""From a parsed `aie.device` to a configured array: memory, locks, DMA programs, streams, cores."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation

from bdforge.emulator.array import Array
from bdforge.emulator.core import Core
from bdforge.emulator.errors import DesignError, KernelError
from bdforge.emulator.lock import Lock
from bdforge.emulator.static_dma import load_dma
from bdforge.mlir import location
from bdforge.mlir.allocate import allocate
from bdforge.mlir.array_ops import BufferOp, CoreOp, DeviceOp, Endpoint, FlowOp, LockOp
from bdforge.mlir.dma_ops import DmaProgramOp
from bdforge.mlir.words import Bundle

_FLOATS = {Float16Type: np.float16, Float32Type: np.float32, Float64Type: np.float64}


def dtype_of(element: Attribute) -> np.dtype:
    """The numpy type of a memref's elements; bf16 is seen as its 16 bits."""
    if isinstance(element, IntegerType):
        bits = element.width.data
        if bits in (8, 16, 32, 64):
            return np.dtype(f"{'u' if element.signedness.data.name == 'UNSIGNED' else ''}int{bits}")
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, BFloat16Type):
        return np.dtype(np.uint16)
    if type(element) in _FLOATS:
        return np.dtype(_FLOATS[type(element)])
    raise DesignError(f"elements of type {element} have no numpy view")


class Configuration:
    """A device's operations placed on an array, as aiecc would: everything but the runtime sequence."""

    def __init__(self, device: DeviceOp, array: Array, kernels: Mapping[str, Callable]):
        self.array, self.kernels = array, kernels
        self.allocation = allocate(device)
        operations = list(device.walk())
        for op in operations:
            match op:
                case BufferOp():
                    self._fill(op)
                case LockOp():
                    if op.symbol:
                        self.lock(op).name = f"{op.symbol} ({self.lock(op).name})"
                    self.lock(op).set(op.init, lambda op=op: f" ({location(op)})")
                case FlowOp():
                    self._connect(op)
        for op in operations:
            if isinstance(op, DmaProgramOp):
                load_dma(self.array, op, self.allocation)
            elif isinstance(op, CoreOp):
                self._start(op)

    def views(self) -> dict[str, np.ndarray]:
        """Memory of every named buffer."""
        return {op.symbol: self.view(op) for op in self.allocation.buffers if op.symbol}

    def lock(self, op: LockOp) -> Lock:
        """The lock of an aie.lock."""
        return self.array.tile(op.tile.column, op.tile.row).locks[self.allocation.locks[op]]

    def view(self, op: BufferOp) -> np.ndarray:
        """A buffer's memory in its shape and element type."""
        tile = self.array.tile(op.tile.column, op.tile.row)
        dtype, shape = dtype_of(op.type.element_type), op.type.get_shape()
        start = self.allocation.buffers[op]
        return tile.bytes[start : start + int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape)

    def _fill(self, op: BufferOp) -> None:
        if (value := op.initial_value) is not None:
            view = self.view(op)
            view[...] = value.astype(view.dtype)

    def _connect(self, op: FlowOp) -> None:
        if Bundle.TRACE in (op.source.bundle, op.destination.bundle):
            return
        where = location(op)
        source = self._channel(op.source, "MM2S", where).stream
        target = self._channel(op.destination, "S2MM", where)
        assert source is not None and target.sink is not None
        if target.sink.source is not None:
            raise DesignError(f"{where}: two flows end in {target.name}; a circuit port takes one")
        source.connect(target.sink)

    def _channel(self, end: Endpoint, direction: str, where):
        if end.bundle is not Bundle.DMA:
            raise DesignError(f"{where}: flows of bundle {end.bundle} are not emulated; use DMA")
        tile = self.array.tile(end.tile.column, end.tile.row)
        if (direction, end.channel) not in tile.channels:
            raise DesignError(
                f"{where}: {tile.name} has {direction} channels 0 to {tile.limits.channels - 1}, not {end.channel}"
            )
        return tile.channels[direction, end.channel]

    def _start(self, op: CoreOp) -> None:
        if op.elf_file is not None:
            raise DesignError(f"{location(op)}: a core given as elf_file cannot be emulated; give its body")
        core = Core(f"core ({op.tile.column}, {op.tile.row})", op, self, self.array.scheduler)
        self.array.cores.append(core)
        self.array.scheduler.wake(core)
        for lock in core.released:
            self.array.core_releases.setdefault(id(lock), []).append(core)

    def kernel(self, name: str, core: Core, op: Operation) -> Callable[..., None]:
        """The callable behind a func.call, with its faults named."""
        if name not in self.kernels:
            known = f"; given: {', '.join(sorted(self.kernels))}" if self.kernels else ""
            raise KernelError(f"{location(op)}: no kernel {name!r} was given{known}; pass one with kernels= or --kernels")
        kernel = self.kernels[name]
        if (for_core := getattr(kernel, "for_core", None)) is not None:
            kernel = for_core(len(self.array.cores))
        return partial(_call, kernel, core, name, f"{location(op)}: {name} on {core.name}")


def _call(kernel: Callable, core: Core, name: str, where: str, *arguments) -> None:
    core.note("begin", name)
    try:
        kernel(*arguments)
    except Exception as error:
        raise KernelError(f"{where}: {error or type(error).__name__}") from error
    core.note("end", name)
