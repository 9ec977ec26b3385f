"""Programs of all cores of a device, and the device that names them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from bdforge.array.core_bodies.core_program import CoreSource, LinkedProgram, core_source, linked
from bdforge.array.core_bodies.symbols import core_symbols
from bdforge.array.mlir.allocate import allocate
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.locations import take_places
from bdforge.core.codegen.abi import AssemblyKernel, callees
from bdforge.core.codegen.errors import CodegenError

Tile = tuple[int, int]
"""Column and row."""

_COMMENT = re.compile(r"//.*")


@dataclass(frozen=True, slots=True)
class DevicePrograms:
    """Machine code by core, and why there is none for the others; cores with an `elf_file` are in neither."""

    programs: Mapping[Tile, LinkedProgram]
    without: Mapping[Tile, str]


def device_programs(device: DeviceOp, kernel: Callable[[str], AssemblyKernel]) -> DevicePrograms:
    """Programs of cores that have a body; `kernel` gives functions that they call, or raises CodegenError.

    CodegenError and AssemblyError for what is wrong with a program whose kernels are there.
    """
    programs: dict[Tile, LinkedProgram] = {}
    without: dict[Tile, str] = {}
    known: dict[tuple, LinkedProgram] = {}
    allocation = allocate(device)
    for core in _bodies(device):
        tile = core.tile.column, core.tile.row
        try:
            kernels = {name: kernel(name) for name in core.callees}
        except CodegenError as error:
            without[tile] = str(error)
            continue
        source = core_source(core, callees(kernels), allocation)
        symbols = core_symbols(device, *tile, allocation)
        key = _identity(source, symbols)
        if key not in known:
            known[key] = linked(core, source, kernels, symbols)
        programs[tile] = known[key]
    return DevicePrograms(programs, without)


def naming_programs(device: DeviceOp, programs: Mapping[Tile, LinkedProgram]) -> DeviceOp:
    """A copy of a device whose cores run the ELFs called as `elf_name` says, instead of their bodies."""
    copy = device.clone()
    take_places(copy, device)
    for core in _bodies(copy):
        tile = core.tile.column, core.tile.row
        if tile in programs:
            core.properties["elf_file"] = StringAttr(elf_name(tile))
    return copy


def elf_name(tile: Tile) -> str:
    """What stands for a core's program where files do; no file of a user's is called so."""
    return f"(made here)/core_{tile[0]}_{tile[1]}.elf"


def _bodies(device: DeviceOp) -> Iterator[CoreOp]:
    return (op for op in device.walk() if isinstance(op, CoreOp) and op.elf_file is None)


def _identity(source: CoreSource, symbols: Mapping[str, int]) -> tuple:
    """What two programs have in common when they are the same: text but for comments, and the names' values in it."""
    text = _COMMENT.sub("", source.text)
    words = set(re.findall(r"[\w.$]+", text))
    return text, source.calls, tuple(sorted((name, value) for name, value in symbols.items() if name in words))
