"""Operations to text."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer

from bdforge.array.mlir.dialect_forms import require_march
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.upstream import print_module_op


class TextPrinter(Printer):
    """xDSL's printer with the writers that it lacks, and names that never clash."""

    def __init__(self, stream: StringIO, generic: bool):
        super().__init__(stream=stream, print_generic_format=generic)
        self._used: set[str] = set()
        self._values: dict[SSAValue, str] = {}
        self._labels: dict[Block, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        """Write a value's name: its own where nothing else has it, else with a number behind."""
        if (hint := value_name(value)) is None:
            return super().print_ssa_value(value)
        if value not in self._values:
            self._values[value] = _free_name(hint, self._used)
        self.print_string(f"%{self._values[value]}")
        return self._values[value]

    def print_block_name(self, block: Block) -> str:
        """Write a block's label likewise; those without a name are numbered in the order of their region."""
        if block not in self._labels:
            used: set[str] = set()
            for number, each in enumerate([block] if block.parent is None else block.parent.blocks):
                self._labels[each] = _free_name(each.name_hint or f"bb{number}", used)
        self.print_string(f"^{self._labels[block]}")
        return self._labels[block]

    def print_op_attributes(self, attributes: Mapping[str, Attribute], **options: Any) -> bool:
        """Write `{...}` in the order of names, as MLIR does."""
        return super().print_op_attributes(dict(sorted(attributes.items())), **options)

    def print_op(self, op: Operation) -> None:
        """Write one operation, in custom form where there is one."""
        if isinstance(op, ModuleOp) and not self.print_generic_format:
            print_module_op(self, op)
        else:
            super().print_op(op)


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
