"""From a parsed `aie.device` to a configured array: memory, locks, DMA programs, streams, cores."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from bdforge.emulator.array import Array
from bdforge.emulator.cascade import connect_cascades
from bdforge.emulator.cores.core import Core
from bdforge.emulator.cores.isa import loading
from bdforge.emulator.cores.kernel_call import KernelCall, waits
from bdforge.emulator.cores.mlir.body import Body
from bdforge.emulator.cores.mlir.values import bytes_of_blocks
from bdforge.emulator.cores.stack import Frame, frames_of
from bdforge.emulator.errors import ArgumentError, DesignError, KernelError
from bdforge.emulator.flows import Flows
from bdforge.emulator.lock import Lock
from bdforge.emulator.poison import PoisonedView
from bdforge.emulator.routes import check_routes
from bdforge.emulator.static_dma import load_dma
from bdforge.messages import InputError
from bdforge.mlir import dense, location
from bdforge.mlir.allocate import allocate, buffer_bytes
from bdforge.mlir.array_ops import BufferOp, CoreOp, DeviceOp, FlowOp, LockOp, UseLockOp
from bdforge.mlir.dma_ops import DmaProgramOp
from bdforge.mlir.stream_ops import PacketFlowOp
from bdforge.routing import is_physical
from bdforge.txn.tasks import acquire_value


def dtype_of(element: Attribute) -> np.dtype:
    """The numpy type of a memref's elements, as memory holds them; DesignError where numpy has none."""
    if (dtype := _numpy_type(element)) is None:
        raise DesignError(f"elements of type {element} have no numpy view")
    return dtype


def _numpy_type(element: Attribute) -> np.dtype | None:
    dtype = dense.dtype_of(element)
    return None if dtype == np.bool_ else dtype  # numpy gives each bit a byte


class Configuration:
    """A device's operations placed on an array, as aiecc would: everything but the runtime sequence."""

    def __init__(self, device: DeviceOp, array: Array, kernels: Mapping[str, Callable]):
        self.array, self.kernels = array, kernels
        array.programs = loading.Programs(array)
        strictness = array.strictness
        self.allocation = allocate(device, partial(strictness.fault, "memory-overflow"))
        self._grow()
        for op in device.walk():
            if isinstance(op, CoreOp):
                self._clear_locks(op)
        self.flows = Flows(array)
        physical = is_physical(device)
        operations = list(device.walk())
        self.functions = {op.sym_name.data: op for op in operations if isinstance(op, FuncOp)}
        for op in operations:
            match op:
                case BufferOp():
                    self._fill(op)
                case LockOp():
                    if op.symbol:
                        self.lock(op).name = f"{op.symbol} ({self.lock(op).name})"
                    if "init" in op.properties:
                        self.lock(op).set(op.init, lambda op=op: f" ({location(op)})")
                case FlowOp() if not physical:
                    self.flows.circuit(op)
                case PacketFlowOp() if not physical:
                    self.flows.packets(op)
        check_routes(device, strictness)
        if physical:
            self.flows.physical(device)
        connect_cascades(operations, array)
        for op in operations:
            if isinstance(op, DmaProgramOp):
                load_dma(self.array, op, self.allocation)
            elif isinstance(op, CoreOp):
                self._start(op)

    def views(self) -> dict[str, np.ndarray]:
        """Memory of every named buffer; bytes where numpy has no such element, also of each block of floats."""
        named = [op for op in self.allocation.buffers if op.symbol]
        return {op.symbol or "": bytes_of_blocks(self._memory(op).view(np.ndarray)) for op in named}

    def _memory(self, op: BufferOp) -> np.ndarray:
        if _numpy_type(op.type.element_type) is not None:
            return self.view(op)
        start = self.allocation.buffers[op]
        return self.array.tile(op.tile.column, op.tile.row).bytes[start : start + buffer_bytes(op)]

    def lock(self, op: LockOp) -> Lock:
        """The lock of an aie.lock."""
        return self.array.tile(op.tile.column, op.tile.row).locks[self.allocation.locks[op]]

    def view(self, op: BufferOp) -> np.ndarray:
        """A buffer's memory in its shape and element type."""
        tile = self.array.tile(op.tile.column, op.tile.row)
        dtype, shape = dtype_of(op.type.element_type), op.type.get_shape()
        start = self.allocation.buffers[op]
        end = start + int(np.prod(shape)) * dtype.itemsize
        view = tile.bytes[start:end].view(dtype).reshape(shape)
        return view if tile.written is None else PoisonedView.of(view, tile.written[start:end], f"@{op.symbol}")

    def _grow(self) -> None:
        """Room for buffers that were permitted to leave their tile's memory."""
        for op, start in self.allocation.buffers.items():
            self.array.tile(op.tile.column, op.tile.row).grow(start + buffer_bytes(op))

    def _clear_locks(self, op: CoreOp) -> None:
        """All locks of a tile with a core start at 0; elsewhere only an explicit `init` sets one (MA-t)."""
        for lock in self.array.tile(op.tile.column, op.tile.row).locks:
            lock.set(0)

    def _fill(self, op: BufferOp) -> None:
        if (value := op.initial_value) is not None:
            view = self.view(op)
            view[...] = value.astype(view.dtype)

    def _start(self, op: CoreOp) -> None:
        core = self.array.core(op.tile.column, op.tile.row)
        beside = None if op.elf_file is None else Path(location(op).file).parent / op.elf_file
        program = self.array.elfs.get(core.place, beside)
        if program is not None:
            loading.load_elf(core, program, str(location(op)))
            return
        self._linked(op)
        core.take(Body(core, op, self))
        self.array.scheduler.wake(core)
        for lock in core.released:
            core.releases(lock)

    def check_acquire(self, use: UseLockOp) -> None:
        """Refuse what the hardware would misread in a core's acquire."""
        where = location(use)
        acquire_value(use, lambda error: self.acquire_zero(f"{where}: {error}"))

    def acquire_zero(self, message: str) -> None:
        """An acquire of at least 0, which hardware misreads."""
        self.array.strictness.fault("acquire-zero", DesignError(message))

    def _frame(self, kernel: Callable, name: str) -> Frame | None:
        declared = getattr(kernel, "stack_bytes", None)
        return self.array.frames.get(name) if declared is None else Frame(int(declared), "as the kernel declares")

    def _linked(self, op: CoreOp) -> None:
        """Frames from the object that an aie.core is linked with, where it lies beside the design."""
        path = None if op.link_with is None else Path(location(op).file).parent / op.link_with
        if path is not None and path.is_file():
            with suppress(ArgumentError):  # nothing to learn from something else
                self.array.frames = frames_of(path) | self.array.frames

    def kernel(self, name: str, core: Core, op: Operation) -> KernelCall:
        """What is behind a func.call."""
        try:
            there = name in self.kernels
        except InputError as error:
            raise KernelError(f"{location(op)}: {error}") from None
        if not there:
            known = f"; given: {', '.join(sorted(self.kernels))}" if self.kernels else ""
            missing = f"no kernel {name!r} was given{known}"
            raise KernelError(f"{location(op)}: {missing}; pass one with kernels= or --kernels")
        kernel = self.kernels[name]
        if (frame := self._frame(kernel, name)) is not None:
            core.frames.append((name, frame))
        if (for_core := getattr(kernel, "for_core", None)) is not None:
            kernel = for_core(self.array.cores.index(core))
        else:
            core.waits_in_kernels |= waits(kernel)
            kernel = _with_bytes(kernel)
        return KernelCall(kernel, core, name, str(location(op)), bool(op.results))


def _with_bytes(kernel: Callable) -> Callable:
    """A Python kernel that gets block floats as bytes; compiled ones need addresses only."""

    def call(*arguments) -> object:
        return kernel(*(bytes_of_blocks(a) if isinstance(a, np.ndarray) else a for a in arguments))

    return call
