"""From a parsed `aie.device` to a configured array: it boots from the writes of the text; cores get their bodies."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.ir import Operation as MlirOperation

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.boot import boot, enabled_cores
from bdforge.array.emulator.cores import load_machine_code as loading
from bdforge.array.emulator.cores.core import EmulatedCore, Frame, frames_of
from bdforge.array.emulator.cores.interpreted.body import InterpretedBody
from bdforge.array.emulator.cores.interpreted.number_formats import bytes_of_blocks
from bdforge.array.emulator.cores.kernel_call import KernelCall, waits
from bdforge.array.emulator.errors import ArgumentError, KernelError, LoadError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.poison import PoisonedView
from bdforge.array.emulator.strictness import CAUTIONS, Strictness
from bdforge.array.images.image_build import program_of
from bdforge.array.lower import ProgramSegment, allocated, configuration
from bdforge.array.lower import StaticConfiguration as Lowered
from bdforge.array.lower.array_state import ArrayState, StateError
from bdforge.array.mlir import dense, location
from bdforge.array.mlir.allocate import buffer_bytes, memref_bytes, name_of
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.memory_ops import BufferOp, ExternalBufferOp, LockOp, UseLockOp
from bdforge.array.routing import RoutingError, is_physical, route
from bdforge.array.routing.nets import flow_cautions
from bdforge.array.txn.dma_tasks import acquire_value
from bdforge.array.txn.target import LoweringError, Policy
from bdforge.common.files import read_bytes
from bdforge.common.messages import InputError
from bdforge.core.isa.elf import CoreProgram, core_segments
from bdforge.devices.txn_format.operations import Operation


def dtype_of(element: Attribute) -> np.dtype:
    """The numpy type of a memref's elements, as memory holds them; LoadError where numpy has none."""
    if (dtype := _numpy_type(element)) is None:
        raise LoadError(f"elements of type {element} have no numpy view")
    return dtype


def _numpy_type(element: Attribute) -> np.dtype | None:
    dtype = dense.dtype_of(element)
    return None if dtype == np.bool_ else dtype  # numpy gives each bit a byte


def first_line(error: Exception) -> str:
    """An error without the source line that it shows."""
    return str(error).partition("\n")[0]


class _Policy:
    """Faults of a text on an array: those with a switch as the array's strictness has them."""

    def __init__(self, strictness: Strictness) -> None:
        self._strictness = strictness
        self.silent = True

    def fault(self, name: str, error: Exception) -> None:
        self.silent = False
        if self._strictness.permits(name) or name in CAUTIONS:
            self._strictness.fault(name, LoadError(first_line(error)))
            return
        error.add_note(f"[{name}]")
        raise error

    def caution(self, name: str, warning: str) -> None:
        self.silent = False
        if name != "token-route":  # the wait itself tells
            self._strictness.caution(name, warning)


def lowered(
    device: DeviceOp, policy: Policy, programs: Mapping[tuple[int, int], Path | Sequence[ProgramSegment]] | None = None
) -> Lowered:
    """The register writes of a device whose flows are what its switches do; errors as `configuration` has them."""
    for name, caution in flow_cautions(device):
        policy.caution(name, caution)
    if is_physical(device):  # it has to lead what its flows say, and every circuit somewhere
        try:
            route(device)
        except RoutingError as error:
            policy.fault("routing", error)
    return configuration(device, program_of, policy, programs)


def check_acquire(use: UseLockOp, strictness: Strictness) -> None:
    """Refuse what the hardware would misread in a core's acquire: one of at least 0."""
    fault = partial(strictness.fault, "acquire-zero")
    acquire_value(use, lambda error: fault(LoadError(f"{location(use)}: {error}")))


def host_memory(device: DeviceOp, array: Array) -> dict[str, np.ndarray]:
    """Memory of every aie.external_buffer with a name, at the address that the text gives it on the array's host."""
    views = {}
    for op in (op for op in device.walk() if isinstance(op, ExternalBufferOp)):
        name, size = op.symbol or f"at {location(op)}", memref_bytes(op.type)
        memory = array.host.add_external(name, size, op.address)
        if memory is None:
            array.strictness.warn(
                f"{location(op)}: the {size} bytes of external buffer {name} from address {op.address:#x} on are "
                "another's too, which has them; give each an address of its own"
            )
        elif op.symbol:
            dtype = _numpy_type(op.type.element_type)
            views[op.symbol] = memory if dtype is None else memory.view(dtype).reshape(op.type.get_shape())
    return views


@lru_cache(maxsize=4)
def _kept(device: DeviceOp) -> list[Lowered]:
    """A place for what a text lowers to where no strictness and no file has a say: a text is run more often than it
    changes."""
    return []


class LoadedDevice:
    """A device's operations placed on an array, as aiecc would: everything but the runtime sequence.

    With an `image` the array boots from its writes; the text gives names, and bodies of cores without machine code.
    """

    def __init__(
        self, device: DeviceOp, array: Array, kernels: Mapping[str, Callable], image: Sequence[Operation] = ()
    ):
        self.array, self.kernels = array, kernels
        programs: Mapping[tuple[int, int], Path | CoreProgram | Sequence[ProgramSegment]] = array.elfs
        if image:
            self.allocation = allocated(device, _Policy(array.strictness))
        else:
            found = self._lowered(device)
            self.allocation, image, programs = found.allocation, found.operations, {**found.elf_files, **array.elfs}
        for op, start in self.allocation.buffers.items():  # that were permitted to leave their tile's memory
            array.tile(op.tile.column, op.tile.row).grow(start + buffer_bytes(op))
        self._external = host_memory(device, array)
        operations = list(device.body.block.ops)
        self.functions = {op.sym_name.data: op for op in operations if isinstance(op, FuncOp)}
        for name, count in Counter(op.symbol for op in self.allocation.buffers if op.symbol).items():
            if count > 1:
                array.strictness.warn(f"{count} buffers of @{device.symbol} are called @{name}: results show the last")
        for op in self.allocation.locks:
            if op.symbol:
                self.lock(op).name = f"{op.symbol} ({self.lock(op).name})"
        names = {at: _names(elf) for at, elf in programs.items()}
        try:
            state = ArrayState(image, {at: t.bytes.size for at, t in array.tiles.items()})
        except StateError as error:
            raise LoadError(f"the configuration cannot be booted: {error}") from None
        boot(array, state, loading.ProgramMemories(array, names))
        for place, op in {(op.tile.column, op.tile.row): op for op in operations if isinstance(op, CoreOp)}.items():
            if not array.core(*place).has_program:  # of several on a tile the last
                self._start(op)
        for place in enabled_cores(state):
            if not array.core(*place).has_program:
                array.strictness.warn(f"{array.core(*place).name} is enabled but has no program: it stands still")

    def _lowered(self, device: DeviceOp) -> Lowered:
        """The text's register writes; LoadError for what registers cannot hold and for routes that are none."""
        if (kept := _kept(cast(Hashable, device))) and not self.array.elfs:
            return kept[0]
        policy = _Policy(self.array.strictness)
        given = {at: elf.code if isinstance(elf, CoreProgram) else elf for at, elf in self.array.elfs.items()}
        try:
            found = lowered(device, policy, given)
        except (LoweringError, RoutingError) as error:
            raised = LoadError(first_line(error))
            for note in getattr(error, "__notes__", ()):
                raised.add_note(note)
            raise raised from None
        if policy.silent and not found.elf_files:
            kept.append(found)
        return found

    def views(self) -> dict[str, np.ndarray]:
        """Memory of every named buffer; bytes where numpy has no such element, also of each block of floats."""
        named = [op for op in self.allocation.buffers if op.symbol]
        own = {op.symbol or "": bytes_of_blocks(self._memory(op).view(np.ndarray)) for op in named}
        return {**self._external, **own}

    def _memory(self, op: BufferOp) -> np.ndarray:
        if _numpy_type(op.type.element_type) is not None:
            return self.view(op)
        start = self.allocation.buffers[op]
        return self.array.tile(op.tile.column, op.tile.row).bytes[start : start + buffer_bytes(op)]

    def lock(self, op: LockOp) -> EmulatedLock:
        return self.array.tile(op.tile.column, op.tile.row).locks[self.allocation.locks[op]]

    def view(self, op: BufferOp) -> np.ndarray:
        """A buffer's memory in its shape and element type."""
        tile = self.array.tile(op.tile.column, op.tile.row)
        dtype, shape = dtype_of(op.type.element_type), op.type.get_shape()
        start = self.allocation.buffers[op]
        end = start + int(np.prod(shape)) * dtype.itemsize
        view = tile.bytes[start:end].view(dtype).reshape(shape)
        return (
            view
            if tile.written is None
            else PoisonedView.of(view, tile.written[start:end], f"@{op.symbol}" if op.symbol else name_of(op))
        )

    def _start(self, op: CoreOp) -> None:
        core = self.array.core(op.tile.column, op.tile.row)
        self._linked(op)
        core.take(InterpretedBody(core, op, self))
        self.array.scheduler.wake(core)
        for lock in core.released:
            core.releases(lock)

    def check_acquire(self, use: UseLockOp) -> None:
        check_acquire(use, self.array.strictness)

    def _linked(self, op: CoreOp) -> None:
        """Frames from the object that an aie.core is linked with, where it lies beside the design."""
        path = None if op.link_with is None else Path(location(op).file).parent / op.link_with
        if path is not None and path.is_file():
            with suppress(ArgumentError):  # nothing to learn from something else
                self.array.frames = frames_of(path) | self.array.frames

    def kernel(self, name: str, core: EmulatedCore, op: MlirOperation) -> KernelCall:
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
        declared = getattr(kernel, "stack_bytes", None)
        frame = self.array.frames.get(name) if declared is None else Frame(int(declared), "as the kernel declares")
        if frame is not None:
            core.frames.append((name, frame))
        if (for_core := getattr(kernel, "for_core", None)) is not None:
            kernel = for_core(core.kept)
        else:
            core.waits_in_kernels |= waits(kernel)
            kernel = partial(_with_bytes, kernel)
        return KernelCall(kernel, core, name, str(location(op)), bool(op.results))


def _with_bytes(kernel: Callable, *arguments) -> object:
    """Call a Python kernel with block floats as bytes; compiled ones need addresses only."""
    return kernel(*(bytes_of_blocks(a) if isinstance(a, np.ndarray) else a for a in arguments))


def _names(program: Path | CoreProgram | Sequence[ProgramSegment]) -> tuple[dict[int, str], str]:
    """Names of addresses in a program, and what it is called."""
    if isinstance(program, CoreProgram):
        return dict(program.symbols), program.name
    assert isinstance(program, Path)
    return core_segments(read_bytes(program))[2], program.name
