"""Operations to text."""

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer

from bdforge.array.mlir.dialect_forms import require_march
from bdforge.array.mlir.upstream import PRINTERS


class TextPrinter(Printer):
    """xDSL's printer with the writers that it lacks, and names that never clash."""

    constants: Callable[[int], str] | None = None  # names of numbers, to write what 1.4 takes as operands

    def __init__(self, stream: StringIO, generic: bool):
        super().__init__(stream=stream, print_generic_format=generic)
        self._names: set[str] = set()
        self._labels: dict[Region | None, set[str]] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        """Write a value's name: its own where nothing else has it, else with a number behind."""
        if value not in self._ssa_values and value.name_hint:
            self._ssa_values[value] = _free_name(value.name_hint, self._names)
        return super().print_ssa_value(value)

    def _populate_block_name(self, block: Block, block_index: int | None = None) -> None:
        labels = self._labels.setdefault(block.parent, set())
        number = len(labels) if block_index is None else block_index
        self._blocks[block] = _free_name(block.name_hint or f"bb{number}", labels)

    def print_op_attributes(self, attributes: Mapping[str, Attribute], **options: Any) -> bool:
        """Write `{...}` in the order of names, as MLIR does."""
        return super().print_op_attributes(dict(sorted(attributes.items())), **options)

    def print_op(self, op: Operation) -> None:
        """Write one operation, in custom form where there is one."""
        form = None if self.print_generic_format else PRINTERS.get(op.name)
        if form is None:
            super().print_op(op)
            return
        self._print_results(op)
        self.print_string(op.name.removeprefix("builtin."))
        form(self, op)


def _free_name(wanted: str, used: set[str]) -> str:
    name, number = wanted, 0
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    used.add(name)
    return name


def print_module(module: ModuleOp) -> str:
    """Custom form as mlir-aie reads it up to 1.3.4, which reads back to an equivalent module.

    `convert` makes that of 1.4 from it. MlirError for a module of which only the newer form tells.
    """
    return _print(module, generic=False)


def print_generic(module: ModuleOp) -> str:
    """Generic form as mlir-aie reads it up to 1.3.4, which reads back to an equivalent module; MlirError likewise."""
    return _print(module, generic=True)


def _print(module: ModuleOp, generic: bool) -> str:
    require_march(module)
    stream = StringIO()
    TextPrinter(stream, generic).print_op(module)
    return stream.getvalue() + "\n"
