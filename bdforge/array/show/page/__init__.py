"""A design, and a run of it, as one HTML file that needs nothing else: no network, no server."""

import json
import re
from collections.abc import Collection, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from bdforge.array.emulator.verification import verify_module
from bdforge.array.mlir import MlirError, parse
from bdforge.array.show.array_use import use_of
from bdforge.array.show.image import ShowError, chosen_device
from bdforge.array.show.page.design_data import design_data
from bdforge.array.show.page.run_record import EVENTS_MAX, RunRecord

_SCRIPTS = ("model.js", "array.js", "text.js", "details.js", "walk.js", "run.js", "page.js")
_LINE = re.compile(r":(\d+):\d+\b")


class Page(NamedTuple):
    """A page, and what the checks of its design found."""

    html: str
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def page(
    text: str,
    file: str,
    device: str | None = None,
    permissive: Collection[str] = (),
    record: RunRecord | None = None,
    fault: str = "",
) -> Page:
    """The page of a design's MLIR, which need not be valid: faults stand at their lines then.

    `file` names the text. `device` is the `aie.device` to draw where there are several. `permissive` names checks as in
    `verify_module`. `record` is of a run, which `fault` ended if not empty.
    """
    faults, warnings, drawn = _judged(text, file, device, permissive)
    run = None if record is None else record.data(fault)
    messages = [_message("error", found) for found in faults] + [_message("warning", found) for found in warnings]
    data = {"file": file, "text": text, "messages": messages, "design": drawn, "run": run}
    return Page(_filled(data, file), tuple(faults), tuple(warnings))


def _judged(
    text: str, file: str, device: str | None, permissive: Collection[str]
) -> tuple[Sequence[str], Sequence[str], dict[str, Any] | None]:
    """Faults and warnings, and what is drawn: nothing of what cannot be read, placed or routed."""
    try:
        module = parse(text, file)
        chosen, found = chosen_device(module, device), verify_module(module, file, permissive)
    except (MlirError, ShowError) as error:
        return [str(error)], [], None
    try:
        return found.faults, found.warnings, design_data(use_of(chosen))
    except (MlirError, ValueError) as error:
        return found.faults or [str(error)], found.warnings, None


def _message(kind: str, text: str) -> dict[str, Any]:
    place = _LINE.search(text)
    return {"kind": kind, "text": text, "line": int(place[1]) if place else None}


def _filled(data: dict[str, Any], title: str) -> str:
    """The page with its style, scripts and data in it."""
    parts = {
        "TITLE": title.translate(_MARKUP), "STYLE": _asset("page.css"),
        "SCRIPT": "\n".join(map(_asset, _SCRIPTS)), "DATA": embedded(data),
    }  # fmt: skip
    return re.sub(r"@@([A-Z]+)@@", lambda found: parts[found[1]], _asset("page.html"))


_MARKUP = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_IN_SCRIPTS = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(data: object) -> str:
    """JSON that no script element ends or leaves early, whatever the texts in it say."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True).translate(_IN_SCRIPTS)


def _asset(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


__all__ = ["EVENTS_MAX", "Page", "RunRecord", "page"]
