"""`emulate`: run an explicit AIE design on host arrays."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp

from bdforge.emulator.array import Array
from bdforge.emulator.controller import execute
from bdforge.emulator.errors import ArgumentError, DesignError
from bdforge.emulator.host import HostMemory
from bdforge.emulator.load import Configuration, dtype_of
from bdforge.emulator.observe import Observer
from bdforge.emulator.scheduler import SCHEDULES, STEP_BUDGET, scheduler_named
from bdforge.emulator.strictness import Strictness
from bdforge.mlir import parse
from bdforge.mlir.array_ops import DeviceOp
from bdforge.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.txn import TxnError, decode
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
    instructions: np.ndarray | bytes | None = None,
    file: str = "<string>",
    schedule: str = "in-order",
    seed: int = 0,
    permissive: Collection[str] = (),
    observers: Sequence[Observer] = (),
    budget: int = STEP_BUDGET,
) -> Result:
    """Run a design on the emulated array.

    `mlir` is the text of a module with an `aie.device`; `file` names it in messages. `args` are the host buffers of
    the runtime sequence, in order: C-contiguous numpy arrays of the memrefs' element types and sizes, updated in place.
    `kernels` maps the names of external functions to callables, which get numpy views of their memref arguments
    and plain numbers. `sequence` names one of several runtime sequences. A design without a runtime sequence runs
    until nothing moves.

    `instructions` are the words of an instruction stream to run on the configured array instead of a sequence;
    `args` are then its arguments by number, of any type. `schedule` is "in-order", or "random" for an adversary that
    shuffles every legal choice by `seed`. `permissive` names checks to switch off (`strictness.CHECKS`).
    `observers` are told every event. `budget` bounds the steps of all cores and channels.

    Raises MlirError for text that is no valid design, EmulationError (Deadlock, DmaError, LockError, KernelError, …)
    for what the array would not survive, ArgumentError for arrays that do not fit.
    """
    if schedule not in SCHEDULES:
        raise ArgumentError(f"no schedule is called {schedule!r}; there is {', '.join(SCHEDULES)}")
    scheduler = scheduler_named(schedule, seed, budget)
    scheduler.observers = list(observers)
    strictness = Strictness.without(permissive)
    module = parse(mlir, file)
    device, entry = _choose(module, sequence, instructions is None, file)
    array = Array(device.device, HostMemory(_host_arrays(entry, args, instructions is not None)), scheduler, strictness)
    configuration = Configuration(device, array, {} if kernels is None else kernels)
    execute(array, _operations(entry, instructions))
    scheduler.run()
    array.host.write_back()
    return Result(
        tuple(args), (*strictness.warnings, *_unread_tokens(array), *_unread_words(array)), configuration.views()
    )


def _operations(entry: RuntimeSequenceOp | None, instructions: np.ndarray | bytes | None):
    if instructions is None:
        return [] if entry is None else lower(entry)
    try:
        return decode(instructions).operations
    except TxnError as error:
        raise DesignError(f"instruction stream: {error}") from None


def _choose(module: ModuleOp, name: str | None, wanted: bool, file: str) -> tuple[DeviceOp, RuntimeSequenceOp | None]:
    """The device and the sequence to run; DesignError when the name fits none, or several and none was chosen."""
    devices = [op for op in module.walk() if isinstance(op, DeviceOp)]
    if not devices:
        raise DesignError(f"{file}: there is no aie.device")
    if not wanted:
        return devices[0], None
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


def _host_arrays(
    entry: RuntimeSequenceOp | None, args: Sequence[np.ndarray], any_type: bool
) -> list[tuple[str, np.ndarray]]:
    expected = [] if entry is None else list(entry.arguments)
    if any_type:
        named = [str(i) for i in range(len(args))]
    else:
        if len(args) != len(expected):
            what = "the design has no runtime sequence" if entry is None else f"@{entry.symbol} takes {len(expected)}"
            raise ArgumentError(f"{len(args)} arrays were given, but {what}")
        named = [value.name_hint or str(i) for i, value in enumerate(expected)]
    types = [value.type for value in expected] if not any_type else [None] * len(args)
    for name, type_, array in zip(named, types, args, strict=True):
        _check_array(f"argument {name}", type_, array)
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


def _unread_tokens(array: Array) -> list[str]:
    left = {key: count for key, count in array.tokens.items() if count}
    return [
        f"{count} token{'s' if count > 1 else ''} of {direction} {channel} of tile ({column}, {row}) nobody awaited"
        for (column, row, direction, channel), count in left.items()
    ]


def _unread_words(array: Array) -> Iterator[str]:
    """Words that a stream delivered and no BD took, and BDs that began and never got the rest."""
    for channel in array.channels():
        if channel.sink is not None and channel.sink.held:
            yield f"{channel.sink.held} words were left in the input of {channel.name}{channel.source()}"
        if missing := channel.missing_words():
            yield f"{channel.name} stopped in the middle of BD {channel.bd}, {missing} words are missing{channel.source()}"
