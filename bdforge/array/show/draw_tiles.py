"""Tiles of the picture: outline, memory with its buffers, ports."""

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from bdforge.array.mlir.enums import Direction
from bdforge.array.show.array_use import TileUse
from bdforge.array.show.memory_map import FREE, STACK, Span, TileMemory
from bdforge.array.show.picture_layout import CAPTION, MARGIN, LocalPort
from bdforge.array.show.scene import (
    BUFFER_COLORS,
    FREE_COLOR,
    IDLE_COLOR,
    STACK_COLOR,
    TEXT_COLOR,
    TILE_COLORS,
    TILE_EDGES,
    Scene,
)

_KIB = 1024
_POINTS_PER_INCH = 72
_NAME_POINTS, _CAPTION_POINTS, _PORT_POINTS = 4.4, 5.4, 3.9
_LINE = 1.25  # height of a line over its font size
_GLYPH = 0.55  # width of a letter over its font size
_BRIEF = {"TileControl": "ctrl", "Trace": "trace", "Core": "core", "FIFO": "fifo", "South": "south"}


def draw_tile(axes: Axes, scene: Scene, column: int, row: int) -> None:
    """One tile; pale where the design does not use it."""
    kind, use = scene.device.kind(column, row), scene.use.tiles.get((column, row))
    side = 1 - 2 * MARGIN
    axes.add_patch(FancyBboxPatch(
        (column + MARGIN, row + MARGIN), side, side, boxstyle="round,pad=0,rounding_size=0.03",
        facecolor=TILE_COLORS[kind], edgecolor=TILE_EDGES[kind], linewidth=scene.points(0.9),
        alpha=1.0 if use else 0.45, zorder=1,
    ))  # fmt: skip
    caption = f"{kind} ({column}, {row})"
    if use and use.memory:
        caption += f"\n{_amount(use.memory.used_bytes)} of {_amount(use.memory.limit_bytes)}"
    axes.text(column + CAPTION[0], row + CAPTION[1], caption, fontsize=scene.points(_CAPTION_POINTS), va="center",
              linespacing=1.1, color=TEXT_COLOR if use else IDLE_COLOR, zorder=6)  # fmt: skip
    if use and use.memory:
        _memory(axes, scene, use.memory)
    if use:
        _ports(axes, scene, use)


def _memory(axes: Axes, scene: Scene, memory: TileMemory) -> None:
    left, bottom, right, top = scene.layout.panel
    scale = (top - bottom) / memory.limit_bytes
    line = scene.points(_NAME_POINTS) * _LINE / scene.inches / _POINTS_PER_INCH
    unnamed: list[Span] = []
    for number, span in enumerate(memory.spans):
        at, height = memory.row + bottom + span.start * scale, span.size_bytes * scale
        colors = {STACK: STACK_COLOR, FREE: FREE_COLOR}
        color = colors.get(span.what, BUFFER_COLORS[memory.kind][number % 2])
        axes.add_patch(Rectangle((memory.column + left, at), right - left, height, facecolor=color, edgecolor="none",
                                 zorder=2))  # fmt: skip
        if span.what == FREE:
            continue
        if height > line:
            _name(axes, scene, memory.column, at + height / 2, span)
        else:
            unnamed.append(span)
    _list_names(axes, scene, memory, unnamed, line)
    axes.add_patch(Rectangle((memory.column + left, memory.row + bottom), right - left, top - bottom, fill=False,
                             edgecolor=TILE_EDGES[memory.kind], linewidth=scene.points(0.6), zorder=3))  # fmt: skip


def _name(axes: Axes, scene: Scene, column: int, y: float, span: Span | str) -> None:
    left, _, right, _ = scene.layout.panel
    letters = int((right - left - 0.02) * scene.inches * _POINTS_PER_INCH / scene.points(_NAME_POINTS) / _GLYPH)
    text = span if isinstance(span, str) else _sized(span, letters)
    axes.text(column + left + 0.012, y, text, fontsize=scene.points(_NAME_POINTS), va="center_baseline",
              color=TEXT_COLOR, zorder=3)  # fmt: skip


def _list_names(axes: Axes, scene: Scene, memory: TileMemory, spans: list[Span], line: float) -> None:
    """Names of bars that are too thin for them, in the largest free space, lowest at the bottom."""
    free = max((s for s in memory.spans if s.what == FREE), key=lambda s: s.size_bytes, default=None)
    if not spans or free is None:
        return
    _, bottom, _, top = scene.layout.panel
    scale = (top - bottom) / memory.limit_bytes
    room = int(free.size_bytes * scale / line)
    shown: list[Span | str] = [*spans]
    if len(spans) > room:
        shown = [*spans[: max(room - 1, 0)], f"and {len(spans) - max(room - 1, 0)} more"][:room]
    for number, span in enumerate(shown):
        y = memory.row + bottom + free.start * scale + (number + 0.6) * line
        _name(axes, scene, memory.column, y, span)


def _amount(size_bytes: int) -> str:
    return f"{size_bytes} B" if size_bytes < _KIB else f"{size_bytes / _KIB:.3g} KiB"


def _sized(span: Span, letters: int) -> str:
    """Name and size, shortened to so many letters."""
    size = f" {_amount(span.size_bytes)}"
    name = span.what.removeprefix("@")
    room = max(letters - len(size), 4)
    return (name if len(name) <= room else name[: room - 1] + "…") + size


def _ports(axes: Axes, scene: Scene, use: TileUse) -> None:
    tile, layout = (use.column, use.row), scene.layout
    slots = scene.slots(tile)
    height, left = layout.slot_height(len(slots)), layout.panel_right + 0.01
    for slot, port in enumerate(slots):
        color, y = scene.ports[tile].get(port), use.row + layout.slot_y(slot, len(slots))
        axes.add_patch(Rectangle(
            (use.column + left, y - height * 0.42), layout.ports_right - left, height * 0.84,
            facecolor=color or "white", edgecolor=color or IDLE_COLOR, linewidth=scene.points(0.4), zorder=3,
        ))  # fmt: skip
        axes.text(use.column + (left + layout.ports_right) / 2, y, _port_label(port), ha="center",
                  fontsize=scene.points(_PORT_POINTS), va="center_baseline", color="white" if color else IDLE_COLOR,
                  zorder=4)  # fmt: skip
        direction = Direction.S2MM if port[0] == "in" else Direction.MM2S
        if port[1] == "DMA" and (name := use.names.get((direction, port[2]))):
            axes.text(use.column + left - 0.02, y, f"@{name}", fontsize=scene.points(_CAPTION_POINTS), ha="right",
                      va="center_baseline", color=TEXT_COLOR, zorder=4)  # fmt: skip


def _port_label(port: LocalPort) -> str:
    way, bundle, channel = port
    if bundle == "DMA":
        return f"{'S2MM' if way == 'in' else 'MM2S'} {channel}"
    return f"{_BRIEF.get(bundle, bundle)} {channel}"
