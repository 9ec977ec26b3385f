"""The lines of `tracked.py` as a page: one small diagram for each figure, a line for each machine, over commits."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

Line = dict[str, Any]
WIDTH, HEIGHT, EDGE = 640, 160, 50
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's, which colour-blind readers tell apart."""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>bdforge: tracked benchmarks</title>
<style>body {{ font: 14px sans-serif; max-width: 720px; margin: 2em auto; }} svg {{ width: 100%; }} h2 {{ font-size: 1em; }}</style>
<h1>Tracked benchmarks</h1>
<p>CPU seconds (measured) over commits: a dot is the least of a run's repetitions, a bar leads to their median. Point at it for the commit.</p>
{}
</html>
"""  # noqa: E501


def read(path: Path) -> list[Line]:
    """The lines of a file; ValueError names one that is none."""
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            for part in ("commit", "date", "machine", "figures"):
                line[part]
            lines.append(line)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number}: no line of a run ({error}); remove it") from error
    return lines


def page(lines: Sequence[Line]) -> str:
    """HTML that needs nothing else."""
    names = dict.fromkeys(name for line in lines for name in line["figures"])
    machines = list(dict.fromkeys(_machine(line) for line in lines))
    legend = "".join(f'<li style="color: {_color(i)}">{escape(name)}</li>' for i, name in enumerate(machines))
    return _PAGE.format(f"<ul>{legend}</ul>\n" + "\n".join(_diagram(name, lines, machines) for name in names))


def _machine(line: Line) -> str:
    machine = line["machine"]
    return f"{machine['processor']}, {machine['processors']} processors, {machine['system']}"


def _color(index: int) -> str:
    return COLORS[index % len(COLORS)]


def _diagram(name: str, lines: Sequence[Line], machines: Sequence[str]) -> str:
    """The figure's dots from left to right in the order of the file, from 0 up."""
    most = max(line["figures"][name]["median_s"] for line in lines if name in line["figures"]) or 1
    marks = "".join(_marks(name, lines, machines, most))
    frame = f'<path d="M{EDGE},0 V{HEIGHT - EDGE} H{WIDTH}" fill="none" stroke="#888"/>'
    scale = f'<text x="0" y="12">{most:.2g} s</text><text x="12" y="{HEIGHT - EDGE}">0</text>'
    return f'<h2>{escape(name)}</h2>\n<svg viewBox="0 0 {WIDTH} {HEIGHT}">{frame}{scale}{marks}</svg>'


def _marks(name: str, lines: Sequence[Line], machines: Sequence[str], most: float) -> Iterator[str]:
    ways = defaultdict[str, list[str]](list)
    for index, line in enumerate(lines):
        if (figure := line["figures"].get(name)) is None:
            continue
        x = EDGE + 10 + (WIDTH - EDGE - 20) * (index + 0.5) / len(lines)
        low, middle = ((HEIGHT - EDGE) * (1 - 0.92 * figure[key] / most) for key in ("min_s", "median_s"))
        color = _color(machines.index(_machine(line)))
        ways[color].append(f"{x:.1f},{low:.1f}")
        told = escape(f"{line['commit'][:10]}{' and changes' if line.get('changed') else ''}, {line['date']}")
        yield f'<path d="M{x:.1f},{low:.1f} V{middle:.1f}" stroke="{color}"/>'
        title = f"<title>{told}: {figure['min_s']} s</title>"
        yield f'<circle cx="{x:.1f}" cy="{low:.1f}" r="4" fill="{color}">{title}</circle>'
    for color, points in ways.items():
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}"/>'
