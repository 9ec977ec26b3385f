"""Streams of the picture: routed lines with arrow heads, dots where a stream branches, cascades."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from bdforge.array.routing import Net
from bdforge.array.show.array_use import Coordinates
from bdforge.array.show.picture_layout import Point
from bdforge.array.show.scene import CASCADE_COLOR, Scene

DASHES = (0, (3, 1.2))  # of packets
_CORNER = 0.018  # radius of a stream's turns
_WIDTH, _CASING = 1.1, 2.4  # points
_ARROWS = {(0, 1): "^", (0, -1): "v", (1, 0): ">", (-1, 0): "<"}


def draw_streams(axes: Axes, scene: Scene) -> None:
    """Every stream along its route, then the cascades."""
    for net in scene.use.routing.nets:
        _net(axes, scene, net)
    for source, sink in scene.use.cascades:
        _cascade(axes, scene, source, sink)


def _net(axes: Axes, scene: Scene, net: Net) -> None:
    color = scene.colors[scene.roles[net]]
    connections = scene.use.routing.connections(net)
    branches = Counter(slave for slave, _ in connections)
    for connection in connections:
        points = scene.way(connection)
        curve = _rounded(points)
        axes.add_patch(PathPatch(curve, fill=False, edgecolor="white", linewidth=scene.points(_CASING), zorder=5,
                                 capstyle="butt"))  # fmt: skip
        axes.add_patch(PathPatch(curve, fill=False, edgecolor=color, linewidth=scene.points(_WIDTH), zorder=7,
                                 linestyle="-" if net.packet_id is None else DASHES, capstyle="butt"))  # fmt: skip
        if branches[connection.slave] > 1 and len(points) > 2:
            axes.plot(*points[1], "o", color=color, markersize=scene.points(3.0), zorder=8)
        _arrow(axes, scene, points, color, scene.ends_inside(connection))


def _arrow(axes: Axes, scene: Scene, points: Sequence[Point], color: str, inside: bool) -> None:
    """A head at the end: on the border between tiles, or at a port."""
    (x0, y0), (x1, y1) = points[-2], points[-1]
    step = (_sign(x1 - x0), _sign(y1 - y0))
    shift = 0.013 if inside else 0.0
    axes.plot(x1 - step[0] * shift, y1 - step[1] * shift, _ARROWS.get(step, "o"), color=color, markeredgewidth=0,
              markersize=scene.points(4.2), zorder=9)  # fmt: skip


def _cascade(axes: Axes, scene: Scene, source: Coordinates, sink: Coordinates) -> None:
    """From beside the source's memory to beside the sink's, clear of ports and captions."""
    left, bottom, right, top = scene.layout.panel
    step = (sink[0] - source[0], sink[1] - source[1])
    edge = {(1, 0): (scene.layout.ports_right, bottom / 2), (-1, 0): (left - 0.01, bottom / 2),
            (0, 1): (right - 0.03, top), (0, -1): (right - 0.03, bottom)}  # fmt: skip
    start, end = edge[step], edge[-step[0], -step[1]]
    start, end = (source[0] + start[0], source[1] + start[1]), (sink[0] + end[0], sink[1] + end[1])
    axes.annotate("", xy=end, xytext=start, zorder=6,
                  arrowprops={"arrowstyle": "-|>", "color": CASCADE_COLOR, "lw": scene.points(2.4)})  # fmt: skip


def _sign(value: float) -> int:
    return (value > 1e-9) - (value < -1e-9)


def _rounded(points: Sequence[Point]) -> Path:
    """A polyline with round corners."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        vertices += [_towards(corner, before), corner, _towards(corner, after)]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])


def _towards(corner: Point, other: Point) -> Point:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy)
    part = 0.0 if length == 0 else min(_CORNER, length / 2) / length
    return corner[0] + dx * part, corner[1] + dy * part
