"""Operations to text."""

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from bdforge.mlir.upstream import PRINTERS


class TextPrinter(Printer):
    """xDSL's printer with the writers that it lacks."""

    def print_op(self, op: Operation) -> None:
        """Write one operation, in custom form where there is one."""
        form = None if self.print_generic_format else PRINTERS.get(op.name)
        if form is None:
            super().print_op(op)
            return
        self._print_results(op)
        self.print_string(op.name.removeprefix("builtin."))
        form(self, op)


def print_module(module: ModuleOp) -> str:
    """Custom form, which reads back to an equivalent module."""
    return _print(module, generic=False)


def print_generic(module: ModuleOp) -> str:
    """Generic form, which reads back to an equivalent module."""
    return _print(module, generic=True)


def _print(module: ModuleOp, generic: bool) -> str:
    stream = StringIO()
    TextPrinter(stream=stream, print_generic_format=generic).print_op(module)
    return stream.getvalue() + "\n"
