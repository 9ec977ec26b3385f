"""Drawing a design with matplotlib; `bdforge.array.show.image` imports this only when a picture is wanted."""

from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bdforge.array.routing import Net
from bdforge.array.show.array_use import DesignUse
from bdforge.array.show.draw_streams import DASHES, draw_streams
from bdforge.array.show.draw_tiles import draw_tile
from bdforge.array.show.picture_layout import layout_for
from bdforge.array.show.scene import CASCADE_COLOR, TEXT_COLOR, Role, Scene, role_label
from bdforge.devices import PortBundle
from bdforge.devices.switches import STEPS

_INCHES = {1: 3.4, 2: 3.0, 3: 2.7, 4: 2.5}  # side of a tile, by columns drawn
_INCHES_MANY = 2.2
_FULL_DPI, _MANY_DPI = 150, 120
_LEGEND_INCHES = 4.4  # width of one legend entry
_LINE_INCHES = 0.2


def figure_of(use: DesignUse, title: str) -> Figure:
    """The array as a grid, row 0 at the bottom, with tiles, buffers and routed streams."""
    shown = {slave.tile for net in use.routing.nets for slave, _ in use.routing.connections(net)} | set(use.tiles)
    columns = range(min(c for c, _ in shown), max(c for c, _ in shown) + 1) if shown else range(1)
    rows = range(max((r for _, r in shown), default=0) + 1)
    inches = _INCHES.get(len(columns), _INCHES_MANY)
    scene = scene_of(use, inches)
    legend_columns = max(1, int(inches * len(columns) / _LEGEND_INCHES))
    below = _LINE_INCHES * -(-(len(scene.colors) + bool(use.cascades)) // legend_columns) + 0.2
    above = 0.5
    grid_width, grid_height = inches * len(columns), inches * len(rows)
    width, height = max(grid_width, _LEGEND_INCHES) + 0.2, grid_height + below + above
    figure = Figure(figsize=(width, height), dpi=_FULL_DPI if len(columns) <= 4 else _MANY_DPI)
    left = (width - grid_width) / 2 / width
    axes = figure.add_axes((left, below / height, grid_width / width, grid_height / height))
    _draw(axes, scene, columns, rows)
    figure.text(0.5, 1 - 0.08 / height, title, ha="center", va="top", fontsize=9.5, color=TEXT_COLOR)
    _legend(figure, scene, legend_columns, 0.06 / height)
    return figure


def scene_of(use: DesignUse, inches: float) -> Scene:
    """A design laid out in tiles of that size."""
    return Scene(use, layout_for(_channels(use)), inches)


def _channels(use: DesignUse) -> dict[PortBundle, int]:
    """Lanes needed towards each side: one more than the highest channel in use."""
    lanes: dict[PortBundle, int] = defaultdict(int)
    for net in use.routing.nets:
        for _, master in use.routing.connections(net):
            if master.bundle in STEPS:
                lanes[master.bundle] = max(lanes[master.bundle], master.channel + 1)
    return lanes


def _draw(axes: Axes, scene: Scene, columns: range, rows: range) -> None:
    axes.set_axis_off()
    axes.set_xlim(columns.start, columns.stop)
    axes.set_ylim(rows.start, rows.stop)
    for column in columns:
        for row in rows:
            draw_tile(axes, scene, column, row)
    draw_streams(axes, scene)


def _legend(figure: Figure, scene: Scene, columns: int, bottom: float) -> None:
    nets: dict[Role, list[Net]] = defaultdict(list)
    for net, role in scene.roles.items():
        nets[role].append(net)
    handles = [
        Line2D([], [], color=color, linewidth=2, linestyle=DASHES if nets[role][0].packet_id is not None else "-",
               label=role_label(role, nets[role]))
        for role, color in scene.colors.items()
    ]  # fmt: skip
    if scene.use.cascades:
        handles.append(Line2D([], [], color=CASCADE_COLOR, linewidth=4, label="cascade"))
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=columns, fontsize=7.5, frameon=False,
                      bbox_to_anchor=(0.5, bottom))  # fmt: skip
