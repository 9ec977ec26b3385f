"""Access orders: in which order a DMA visits the elements of a buffer."""

from typing import TYPE_CHECKING

import numpy as np

from bd_patterns import Pattern
from bdforge.perf.plots.figure import TEXT, VERMILION, PlotError, empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARROWS = 1024  # visits up to which the path is drawn
NUMBERS = 160  # cells up to which the order is written into them
LARGEST = 1 << 20  # cells
_TICKS = 8
_LEAST_INCHES = 1.6


def order_grid(pattern: Pattern, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(order, visits) by row and column of a buffer of `width` elements a row; order is that of the last visit, or -1.

    PlotError for patterns that reach beyond what can be drawn.
    """
    if pattern.count > LARGEST or pattern.span[1] >= LARGEST:
        raise PlotError(f"pattern {pattern} reaches beyond 0 and the {LARGEST} elements that can be drawn; take a part")
    visited = pattern.order()
    rows = pattern.span[1] // width + 1
    order, visits = np.full(rows * width, -1), np.zeros(rows * width, int)
    order[visited] = np.arange(len(visited))
    np.add.at(visits, visited, 1)
    return order.reshape(rows, width), visits.reshape(rows, width)


def natural_width(pattern: Pattern) -> int:
    """Elements of a row of the buffer, as the pattern tells: its largest stride that others divide, or all of it."""
    strides = sorted({stride for size, stride in pattern.dims() if size > 1 and stride > 1}, reverse=True)
    extent = pattern.span[1] + 1
    if not strides:
        return extent if extent <= 64 else next(w for w in (64, 32, 16, 8, 4, 2, 1) if extent % w == 0)
    rows = [s for s in strides if all(s % t == 0 or s == t or t % s == 0 for t in strides)]
    fitting = [s for s in rows if extent / s >= 4] or rows[:1] or strides[:1]
    return fitting[0]


def pattern_picture(pattern: Pattern, width: int | None = None, title: str = "") -> "Figure":
    """The order as colour, the path as a line for up to `ARROWS` visits, and visits beside it where some repeat."""
    width = natural_width(pattern) if width is None else width
    if not 1 <= width <= LARGEST:
        raise PlotError(f"a buffer of {width} elements a row cannot be drawn; give --width of 1 to {LARGEST}")
    order, visits = order_grid(pattern, width)
    repeats = bool((visits > 1).any())
    shape = order.shape
    wide, high = _grid_inches(shape)
    panel_count = 2 if repeats else 1
    figure = empty_figure(panel_count * (max(wide, 3.0) + 1.6), high + 1.3)
    panels = figure.subplots(1, panel_count, squeeze=False)[0]
    _draw_order(figure, panels[0], order, pattern)
    if repeats:
        _draw_visits(figure, panels[1], visits)
    figure.suptitle(f"{title + chr(10) if title else ''}sizes:strides+offset {pattern}", fontsize=10, color=TEXT)
    return figure


def _draw_order(figure, axes, order: np.ndarray, pattern: Pattern) -> None:
    image = axes.imshow(np.ma.masked_less(order, 0), cmap="viridis", interpolation="nearest", aspect="auto")
    axes.set_facecolor("#eeeeee")  # what is not visited
    numbered = order.size <= NUMBERS
    if numbered:
        first, last = order[order >= 0].min(), order.max()
        for (row, column), value in np.ndenumerate(order):
            if value >= 0:
                light = value - first > 0.6 * (last - first)
                axes.text(
                    column, row, str(value), ha="center", va="center", fontsize=7, color="black" if light else "white"
                )
    elif pattern.count <= ARROWS:
        rows, columns = np.divmod(pattern.order(), order.shape[1])
        axes.plot(columns, rows, color="white", linewidth=0.7, alpha=0.75)
        axes.plot(columns[0], rows[0], marker="o", color=VERMILION, markersize=6, markeredgecolor="white")
    _label(axes, order.shape)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    dot = ", the dot" if not numbered and pattern.count <= ARROWS else ""
    bar.set_label(f"order of the visit (0 is first{dot})", fontsize=9)


def _draw_visits(figure, axes, visits: np.ndarray) -> None:
    image = axes.imshow(visits, cmap="Oranges", interpolation="nearest", vmin=0, aspect="auto")
    _label(axes, visits.shape)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label("visits", fontsize=9)
    bar.locator = _whole_ticks()
    bar.update_ticks()


def _label(axes, shape: tuple[int, int]) -> None:
    axes.set_xlabel(f"element of a row of {shape[1]}", fontsize=9)
    axes.set_ylabel(f"row of {shape[0]}", fontsize=9)
    axes.xaxis.set_major_locator(_steps_of_two(shape[1]))
    axes.yaxis.set_major_locator(_steps_of_two(shape[0]))
    axes.tick_params(labelsize=8, colors=TEXT)


def _steps_of_two(extent: int):
    from matplotlib.ticker import MultipleLocator

    return MultipleLocator(1 << max(0, (extent // _TICKS).bit_length()))


def _whole_ticks():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, nbins=9, min_n_ticks=1)


def _grid_inches(shape: tuple[int, ...]) -> tuple[float, float]:
    """Width and height of a grid: square cells, but no side below `_LEAST_INCHES`."""
    rows, columns = shape
    cell = min(0.34, 9 / columns, 7 / rows)
    return max(cell * columns, _LEAST_INCHES), max(cell * rows, _LEAST_INCHES)
