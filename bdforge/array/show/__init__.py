"""Tables and pictures of a design: tiles, buffers, locks, streams, switches and memory maps."""

from importlib import import_module
from typing import TYPE_CHECKING

from bdforge.array.show.image import ShowError, picture
from bdforge.array.show.memory_map import Span, TileMemory, memory_map

if TYPE_CHECKING:
    from bdforge.array.show.design_report import tables
    from bdforge.array.show.shown_file import command
    from bdforge.common.screen import as_text

__all__ = ["ShowError", "Span", "TileMemory", "as_text", "command", "memory_map", "picture", "tables"]
_HOMES = {
    "as_text": "bdforge.common.screen", "command": "bdforge.array.show.shown_file",
    "tables": "bdforge.array.show.design_report",
}  # fmt: skip


def __getattr__(name: str):
    """Import on first use what needs a terminal's tables: the page of a design does not."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bdforge.array.show' has no attribute {name!r}")
