"""What `emulate` was given: of which kind, which device and sequence of a module to run, which arrays it takes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation

from bdforge.array.emulator.device_load import dtype_of
from bdforge.array.emulator.errors import ArgumentError, LoadError
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.timed import TimingOptions
from bdforge.array.mlir.control_ops import ConfigureOp, NpuLoadPdiOp, RunOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.common.arrays import host_array
from bdforge.common.messages import clip
from bdforge.core.isa.meaning import Approximation


def choose(
    module: ModuleOp, sequence: str | None, device: str | None, file: str, runs_words: bool = False
) -> tuple[DeviceOp, RuntimeSequenceOp | None]:
    """The device to start with and the sequence to run, if any; LoadError when names fit none, or several fit.

    `sequence` is a name or `device::name`. Without one, sequences that others call (`aiex.run`) and those of devices
    that others load are left out. With `runs_words`, instruction words take the sequence's place: it only points at a
    device.
    """
    found = [op for op in module.walk() if isinstance(op, DeviceOp | RuntimeSequenceOp)]
    devices = [op for op in found if isinstance(op, DeviceOp)]
    if not devices:
        raise LoadError(f"{file}: there is no aie.device")
    sequences = [op for op in found if isinstance(op, RuntimeSequenceOp)]
    if device is not None:
        devices = [op for op in devices if op.symbol == device]
        if not devices:
            names = ", ".join(op.symbol for op in found if isinstance(op, DeviceOp))
            raise LoadError(f"{file}: there is no device {device!r}; there is {names}")
        sequences = [op for op in sequences if _parent(op) is devices[0]]
    if runs_words and sequence is None and len(homes := {_parent(op) for op in sequences if not _is_called(op)}) == 1:
        return homes.pop(), None
    chosen = _chosen(sequences, sequence, file)
    if chosen is not None:
        return _parent(chosen), chosen
    if len(devices) > 1:
        names = ", ".join(op.symbol for op in devices)
        raise LoadError(f"{file}: choose one of the devices {names} (device= or --device)")
    return devices[0], None


def _chosen(sequences: list[RuntimeSequenceOp], name: str | None, file: str) -> RuntimeSequenceOp | None:
    names = ", ".join(_full_name(op) for op in sequences) or "none"
    if name is None:
        found = [op for op in sequences if not _is_called(op)] or sequences
    else:
        found = [op for op in sequences if name in (op.symbol, _full_name(op))]
        if not found:
            raise LoadError(f"{file}: there is no runtime sequence {name!r}; there is {names}")
    if len(found) > 1:
        raise LoadError(f"{file}: choose one of the runtime sequences {names} (sequence= or --sequence)")
    return found[0] if found else None


def _parent(sequence: RuntimeSequenceOp) -> DeviceOp:
    parent = sequence.parent_op()
    assert isinstance(parent, DeviceOp)
    return parent


def _full_name(sequence: RuntimeSequenceOp) -> str:
    return f"{_parent(sequence).symbol}::{sequence.symbol}"


def _is_called(sequence: RuntimeSequenceOp) -> bool:
    """Whether an aiex.run of the module names this sequence, or a sequence of another device loads its device."""
    device = _parent(sequence)
    module = device.parent_op()
    return module is not None and any(_calls(op, device, sequence) for op in module.walk())


def _calls(op: Operation, device: DeviceOp, sequence: RuntimeSequenceOp) -> bool:
    if isinstance(op, RunOp):
        holder = op.parent_op()
        return op.symbol == sequence.symbol and isinstance(holder, ConfigureOp) and holder.symbol == device.symbol
    loads = isinstance(op, ConfigureOp) and op.symbol == device.symbol
    loads = loads or (isinstance(op, NpuLoadPdiOp) and op.device_ref == device.symbol)
    return loads and not device.is_ancestor(op)


def host_arrays(
    entry: RuntimeSequenceOp | None, args: Sequence[np.ndarray], any_type: bool, strictness: Strictness
) -> list[tuple[str, np.ndarray]]:
    """The arrays with the names of the arguments they stand for; ArgumentError for those that do not fit."""
    expected = [] if entry is None else list(entry.arguments)
    if any_type:
        return [(str(i), _checked(f"argument {i}", None, array, strictness)) for i, array in enumerate(args)]
    if len(args) != len(expected):
        what = "the design has no runtime sequence" if entry is None else f"@{entry.symbol} takes {len(expected)}"
        raise ArgumentError(f"{len(args)} arrays were given, but {what}")
    names = [value_name(value) or str(i) for i, value in enumerate(expected)]
    given = zip(names, expected, args, strict=True)
    return [(name, _checked(f"argument {name}", value.type, array, strictness)) for name, value, array in given]


def zero_arrays(entry: RuntimeSequenceOp | None) -> list[np.ndarray]:
    """An array of zeros for each argument of a sequence, as `host_arrays` takes them; none without a sequence."""
    arrays = []
    for value in [] if entry is None else entry.arguments:
        if not isinstance(type_ := value.type, MemRefType):
            raise ArgumentError(f"argument {value_name(value)} is no memref but {type_}; give the arrays of a run")
        dtype, elements = dtype_of(type_.element_type), int(np.prod(type_.get_shape()))
        blocks = dtype.kind == "V"
        arrays.append(np.zeros(elements * dtype.itemsize if blocks else elements, np.uint8 if blocks else dtype))
    return arrays


def _checked(what: str, type_, given: object, strictness: Strictness) -> np.ndarray:
    array = host_array(given, what, ArgumentError, in_place=True)
    if not array.flags.c_contiguous:
        raise ArgumentError(f"{what} is not C-contiguous; pass np.ascontiguousarray of it")
    if isinstance(type_, MemRefType):
        _check_elements(what, type_, array, strictness)
    return array


def _check_elements(what: str, type_: MemRefType, array: np.ndarray, strictness: Strictness) -> None:
    dtype, elements = dtype_of(type_.element_type), int(np.prod(type_.get_shape()))
    if dtype.kind == "V":
        _check_blocks(what, type_, dtype, array, strictness)
        return
    if array.dtype.itemsize != dtype.itemsize or (array.dtype.kind == "f") != (dtype.kind == "f"):
        raise ArgumentError(f"{what} must hold {dtype} elements ({type_}), got {array.dtype}")
    if array.size != elements:
        size = f"{what} must have {elements} elements ({type_}), got {array.size}, shape {array.shape}"
        strictness.fault("argument-size", ArgumentError(size))


def _check_blocks(what: str, type_: MemRefType, dtype: np.dtype, array: np.ndarray, strictness: Strictness) -> None:
    """Block floats are given as bytes, in any shape."""
    blocks, size = int(np.prod(type_.get_shape())), dtype.itemsize
    error = ArgumentError(
        f"{what} must be a uint8 array of {blocks} blocks of {size} bytes, {blocks * size} in all ({type_}), "
        f"got {array.dtype}, shape {array.shape}; bdforge.devices.formats packs them"
    )
    if array.dtype != np.uint8:
        raise error
    if array.size != blocks * size:
        strictness.fault("argument-size", error)


_TEXT, _MAPPING, _LIST = (str, "a text"), (Mapping, "a mapping"), (Sequence, "a list")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "mlir": _TEXT, "file": _TEXT, "schedule": _TEXT, "approximate": _TEXT, "sequence": _TEXT, "device": _TEXT,
    "dram": _TEXT, "args": (Sequence, "a list of arrays"),
    "kernels": _MAPPING, "elfs": _MAPPING, "permissive": (Collection, "a collection of names"), "observers": _LIST,
    "objects": (Sequence, "a list of paths"),
    "instructions": ((np.ndarray, bytes, bytearray, memoryview, Sequence), "words or bytes"),
    "seed": (Integral, "a whole number"), "image": (bytes, "bytes"),
    "timing": (TimingOptions, "TimingOptions"),
}  # fmt: skip
_OPTIONAL = ("kernels", "sequence", "device", "instructions", "timing", "elfs", "image", "breakpoints")
_ELEMENTS: Mapping[str, tuple[Any, str]] = {"permissive": _TEXT, "objects": ((str, Path), "a path")}


def check_given(given: Mapping[str, object]) -> None:
    """ArgumentError for the first of `emulate`'s arguments, by name, that is of another kind than it takes."""
    for name, (kinds, what) in _KINDS.items():
        value = given[name]
        if value is None and name in _OPTIONAL:
            continue
        _check(name, value, kinds, what)
    for name, (kinds, what) in _ELEMENTS.items():
        found = given[name]
        assert isinstance(found, Iterable)
        for each in found:
            _check(f"each of {name}", each, kinds, what)


def _check(name: str, value: object, kinds: Any, what: str) -> None:
    if not isinstance(value, kinds) or (isinstance(value, str) and kinds not in (str, (str, Path))):
        raise ArgumentError(f"{name} must be {what}, got {clip(type(value).__name__)}")


def approximation_named(name: str) -> Approximation:
    """What becomes of approximations, by its name; ArgumentError lists the names."""
    for how in Approximation:
        if how.name.lower() == name:
            return how
    names = ", ".join(how.name.lower() for how in Approximation)
    raise ArgumentError(f"approximations are not {clip(name)!r}; they are one of {names}")
