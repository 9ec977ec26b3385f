"""The aie and aiex dialects: text to operations and back.

`parse` reads and verifies text, `parsed` keeps what it read; `print_module` writes the custom form, `print_generic` the
generic one. Operations stand in modules by what they are for (`bd_ops`, `task_ops`, ...) and carry accessors
(`TileOp.column`, `DmaBdOp.dims`, ...); `location` tells where each stood in its text.
"""

from functools import cache, lru_cache

from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir.convert import convert as converted
from bdforge.array.mlir.dialect_forms import Era, era_of
from bdforge.array.mlir.dialects import context
from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.printer import print_generic, print_module
from bdforge.array.mlir.verify import read_module
from bdforge.common.messages import Location

_context = cache(context)


def parse(text: str, file: str = "<string>") -> ModuleOp:
    """Read and verify MLIR text in custom or generic form.

    MlirError names the place (of `file`) and what is wrong, for any text; no other exception leaves this function.
    """
    return read_module(_context(), SourceText(text, file))


@lru_cache(maxsize=16)
def parsed(text: str, file: str = "<string>") -> ModuleOp:
    """What `parse` reads, for those who leave the module as it is: of the last texts it is kept, since designs are
    run, built and joined more often than they change."""
    return parse(text, file)


def convert(text: str, era: Era, file: str = "<string>") -> str:
    """A design's text in the form of `era`: what differs is written anew, comments and layout stay.

    MlirError for text that is no design, and for what the other form cannot say.
    """
    return converted(_context(), SourceText(text, file), era)


__all__ = [
    "Era",
    "Location",
    "MlirError",
    "context",
    "convert",
    "era_of",
    "location",
    "parse",
    "parsed",
    "print_generic",
    "print_module",
]
