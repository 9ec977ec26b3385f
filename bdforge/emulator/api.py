"""`emulate`: run an explicit AIE design on host arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.controller import execute
from bdforge.emulator.errors import ArgumentError, DesignError
from bdforge.emulator.host import HostMemory
from bdforge.emulator.load import Configuration, dtype_of
from bdforge.mlir import parse
from bdforge.mlir.allocate import AllocationError
from bdforge.mlir.array_ops import DeviceOp
from bdforge.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.txn.lower import lower


@dataclass(frozen=True)
class Result:
    """What is left of a run: the arrays given (updated in place), warnings, and the array's memory.

    `buffers` maps the name of every named `aie.buffer` to a view of its memory.
    """

    arguments: tuple[np.ndarray, ...]
    warnings: tuple[str, ...]
    buffers: Mapping[str, np.ndarray]


def emulate(
    mlir: str,
    args: Sequence[np.ndarray] = (),
    kernels: Mapping[str, Callable] | None = None,
    sequence: str | None = None,
    *,
    file: str = "<string>",
) -> Result:
    """Run a design on the emulated array.

    `mlir` is the text of a module with an `aie.device`; `file` names it in messages. `args` are the host buffers of
    the runtime sequence, in order: C-contiguous numpy arrays of the memrefs' element types and sizes, updated in place.
    `kernels` maps the names of external functions to callables, which get numpy views of their memref arguments
    and plain numbers. `sequence` names one of several runtime sequences. A design without a runtime sequence runs
    until nothing moves.

    Raises MlirError for text that is no valid design, EmulationError (Deadlock, DmaError, LockError, KernelError, …)
    for what the array would not survive, ArgumentError for arrays that do not fit.
    """
    module = parse(mlir, file)
    device, entry = _choose(module, sequence, file)
    host = HostMemory(_host_arrays(entry, args))
    try:
        configuration = Configuration(device, host, {} if kernels is None else kernels)
        operations = [] if entry is None else lower(entry)
    except AllocationError as error:
        raise DesignError(str(error)) from None
    array = configuration.array
    execute(array, operations)
    array.scheduler.run()
    host.write_back()
    return Result(tuple(args), tuple(_warnings(array)), configuration.views())


def _choose(module: ModuleOp, name: str | None, file: str) -> tuple[DeviceOp, RuntimeSequenceOp | None]:
    """The device and the sequence to run; DesignError when the name fits none, or several and none was chosen."""
    devices = [op for op in module.walk() if isinstance(op, DeviceOp)]
    if not devices:
        raise DesignError(f"{file}: there is no aie.device")
    sequences = [op for op in module.walk() if isinstance(op, RuntimeSequenceOp)]
    chosen = sequences if name is None else [op for op in sequences if op.symbol == name]
    names = ", ".join(op.symbol for op in sequences) or "none"
    if name is not None and not chosen:
        raise DesignError(f"{file}: there is no runtime sequence {name!r}; there is {names}")
    if len(chosen) > 1:
        raise DesignError(f"{file}: choose one of the runtime sequences {names} (sequence= or --sequence)")
    if not chosen:
        return devices[0], None
    parent = chosen[0].parent_op()
    assert isinstance(parent, DeviceOp)
    return parent, chosen[0]


def _host_arrays(entry: RuntimeSequenceOp | None, args: Sequence[np.ndarray]) -> list[tuple[str, np.ndarray]]:
    expected = [] if entry is None else list(entry.arguments)
    if len(args) != len(expected):
        what = "the design has no runtime sequence" if entry is None else f"@{entry.symbol} takes {len(expected)}"
        raise ArgumentError(f"{len(args)} arrays were given, but {what}")
    named = [value.name_hint or str(i) for i, value in enumerate(expected)]
    for name, value, array in zip(named, expected, args, strict=True):
        _check_array(f"argument {name}", value.type, array)
    return list(zip(named, args, strict=True))


def _check_array(what: str, type_, array: np.ndarray) -> None:
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{what} must be a numpy array, got {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ArgumentError(f"{what} is not C-contiguous; pass np.ascontiguousarray of it")
    if not isinstance(type_, MemRefType):
        return
    dtype, elements = dtype_of(type_.element_type), int(np.prod(type_.get_shape()))
    if array.dtype.itemsize != dtype.itemsize or (array.dtype.kind == "f") != (dtype.kind == "f"):
        raise ArgumentError(f"{what} must hold {dtype} elements ({type_}), got {array.dtype}")
    if array.size != elements:
        raise ArgumentError(f"{what} must have {elements} elements ({type_}), got {array.size}, shape {array.shape}")


def _warnings(array: Array) -> list[str]:
    left = {key: count for key, count in array.tokens.items() if count}
    return [
        f"{count} token{'s' if count > 1 else ''} of {direction} {channel} of tile ({column}, {row}) nobody awaited"
        for (column, row, direction, channel), count in left.items()
    ]
