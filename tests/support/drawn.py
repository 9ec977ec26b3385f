"""What stands on a matplotlib figure, as lines of text: places, colours and words, nothing of fonts or rendering."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def drawn(figure: Any) -> str:
    """A line for the figure, for each of its axes and for everything on them, in the order of drawing."""
    from matplotlib.colors import to_hex

    def color(value: Any) -> str:
        if isinstance(value, str):
            return value if value == "none" else to_hex(value, keep_alpha=True)
        colors = np.atleast_2d(value)
        return "/".join(to_hex(tuple(one), keep_alpha=True) for one in colors if len(one)) or "none"

    def parts(axes: Any) -> Iterator[str]:
        for one in axes.patches:
            box = _numbers(one.get_path().transformed(one.get_patch_transform()).vertices.ravel())
            yield (
                f"patch {box} face {color(one.get_facecolor()) if one.get_fill() else 'none'} "
                f"edge {color(one.get_edgecolor())} {one.get_linewidth():.3g} {one.get_linestyle()} "
                f"order {one.get_zorder()}"
            )
        for one in axes.lines:
            places = _numbers(np.column_stack([np.ravel(one.get_xdata()), np.ravel(one.get_ydata())]).ravel())
            yield (
                f"line {places} {color(one.get_color())} {one.get_linewidth():.3g} {one.get_linestyle()} "
                f"mark {one.get_marker()} {one.get_markersize():.3g} order {one.get_zorder()} {one.get_label()!r}"
            )
        for one in (one for one in axes.collections if hasattr(one, "get_sizes")):  # others are bars of colour
            yield (
                f"marks {_numbers(np.ravel(one.get_offsets()))} face {color(one.get_facecolor())} "
                f"edge {color(one.get_edgecolor())} area {_numbers(one.get_sizes())} alpha {one.get_alpha()} "
                f"order {one.get_zorder()} {one.get_label()!r}"
            )
        for one in axes.images:
            yield f"image {_numbers(np.ma.filled(one.get_array().astype(float), np.nan).ravel())} of {one.get_clim()}"
        for one in axes.texts:
            yield _text(one)

    lines = [f"figure {_numbers(figure.get_size_inches())} inches, {figure.dpi:g} dpi", *map(_text, figure.texts)]
    for axes in figure.axes:
        lines.append(
            f"axes {axes.get_xscale()} {_numbers(axes.get_xlim())} {axes.get_yscale()} {_numbers(axes.get_ylim())} "
            f"{axes.get_xlabel()!r} {axes.get_ylabel()!r} {axes.get_title()!r}"
        )
        lines += parts(axes)
        lines += _legend(axes.get_legend())
    for legend in figure.legends:
        lines += _legend(legend)
    return "\n".join(lines) + "\n"


def _legend(legend: Any) -> list[str]:
    return [] if legend is None else [f"legend {one.get_text()!r}" for one in legend.get_texts()]


def _text(one: Any) -> str:
    beside = f"{_numbers(one.xy)} + " if hasattr(one, "xyann") else ""
    return (
        f"text {one.get_text()!r} at {beside}{_numbers(one.get_position())} size {one.get_fontsize():.3g} "
        f"turned {one.get_rotation():.0f} {one.get_ha()} {one.get_va()} {one.get_color()}"
    )


def _numbers(values: Any) -> str:
    return "(" + ", ".join(f"{float(value):.4g}" for value in values) + ")"
