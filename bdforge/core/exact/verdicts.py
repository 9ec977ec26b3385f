"""Verdicts of the checker of machine code, kept by the content of programs: a boot of 32 cores may bring 32 of them.

They are kept in this process, and for others in `bdforge/hazards` of XDG_CACHE_HOME or ~/.cache, by a digest of the
checker's own sources and tables with that of the program. A folder that cannot be written only costs time.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from bdforge.common.compilers import folder
from bdforge.common.files import FileError, read_json, write_whole
from bdforge.core.isa.elf import CoreProgram, CoreSegment
from bdforge.core.isa.hazard_layout import HazardVerdict
from bdforge.core.isa.hazards import check_program
from bdforge.devices.limits import PROGRAM_LINE_BYTES

_SHOWN = 3


@lru_cache(maxsize=256)
def verdict(generation: str, code: bytes) -> HazardVerdict:
    """What the checker says of compiled code that starts at address 0, and of what that leads to.

    Behind it the end of another program may stand, in a composition's image, too. Of many errors it has the first and
    their number.
    """
    code = code[: len(code.rstrip(b"\0")) + PROGRAM_LINE_BYTES]  # the last bundle may end in zeros, too
    digest = hashlib.sha256(f"{generation}, reached".encode() + code).hexdigest()
    place = folder() / "hazards" / _checker() / f"{digest}.json"
    known = _read(place)
    if known is None:
        program = CoreProgram("", (CoreSegment(0, code),))
        known = _short(HazardVerdict.of(check_program(program, generation, whole=False)))
        _write(place, known)
    return known


def _short(found: HazardVerdict) -> HazardVerdict:
    more = len(found.errors) - _SHOWN
    return replace(found, errors=(*found.errors[:_SHOWN], f"and {more} more hazards")) if more > 0 else found


@cache
def _checker() -> str:
    """A digest of all that a verdict follows from."""
    found = hashlib.sha256()
    folders = [files("bdforge.core.isa").joinpath(name) for name in ("", "data", "meaning")]
    for place in sorted((place for part in folders for place in part.iterdir()), key=str):
        if place.name.endswith((".py", ".csv")):
            found.update(place.read_bytes())
    return found.hexdigest()[:20]


def _read(place: Path) -> HazardVerdict | None:
    try:
        found = read_json(place)
        return HazardVerdict(tuple(map(str, found["errors"])), str(found["unusual"]))
    except (FileError, KeyError, TypeError):
        return None


def _write(place: Path, found: HazardVerdict) -> None:
    with suppress(OSError, FileError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps({"errors": found.errors, "unusual": found.unusual}))
