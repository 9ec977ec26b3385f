"""A design, and a run of it, as one HTML file that needs nothing else: no network, no server."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Any, NamedTuple

from bdforge.array.emulator.verification import verify_module
from bdforge.array.mlir import MlirError, parsed
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


@dataclass(frozen=True)
class CheckedDesign:
    """A text, what its checks found, and what is drawn of it: nothing of what cannot be read, placed or routed."""

    text: str
    file: str
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: str
    drawn: dict[str, Any] | None

    @classmethod
    def of(cls, text: str, file: str, device: str | None = None, permissive: Collection[str] = ()) -> "CheckedDesign":
        """Read and check a text, which need not be valid; arguments as `page` has them."""
        try:
            module = parsed(text, file)
            chosen, found = chosen_device(module, device), verify_module(module, file, permissive)
        except (MlirError, ShowError) as error:
            return cls(text, file, (str(error),), (), "", None)
        try:
            return cls(text, file, found.faults, found.warnings, found.summary, design_data(use_of(chosen)))
        except (MlirError, ValueError) as error:
            return cls(text, file, found.faults or (str(error),), found.warnings, found.summary, None)

    def page(self, record: RunRecord | None = None, fault: str = "") -> Page:
        """The page, with a run of the design or without."""
        run = None if record is None else record.data(fault)
        data = {"file": self.file, "text": self.text, "messages": self.messages, "design": self.drawn, "run": run}
        return Page(_filled(data, self.file), self.faults, self.warnings)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Faults and warnings, each with its kind, text and line, None where it has none."""
        return [_message("error", text) for text in self.faults] + [_message("warning", text) for text in self.warnings]


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
    return CheckedDesign.of(text, file, device, permissive).page(record, fault)


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


@cache
def _asset(name: str) -> str:
    content = get_data(__name__, name)  # faster from a zip than importlib.resources, which lists all of it
    assert content is not None
    return content.decode()


__all__ = ["EVENTS_MAX", "CheckedDesign", "Page", "RunRecord", "page"]
