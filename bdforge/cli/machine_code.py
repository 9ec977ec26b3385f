"""Cores that run machine code on the command line: which programs, with which names; looked at and counted."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bdforge.array.core_bodies.symbols import core_symbols
from bdforge.array.emulator.cores.breakpoints import Breakpoints
from bdforge.array.emulator.module_choice import choose
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.common.files import read_text
from bdforge.common.messages import clip
from bdforge.common.screen import new_table, put, say, screen
from bdforge.core.exact.profile import SLOTS, CoreProfile
from bdforge.core.isa.asm_expression import evaluate, is_symbol
from bdforge.core.isa.disassembler import bundle_text

if TYPE_CHECKING:
    from bdforge.core.exact.translated import Executor

Break = Annotated[
    list[str] | None,
    typer.Option("--break", help="COLUMN,ROW:PLACE: show a core before the bundle at an address or name; repeatable."),
]
Core = Annotated[str | None, typer.Option("--core", help="Only this core: COLUMN,ROW.")]
Define = Annotated[
    list[str] | None,
    typer.Option(
        "--define", help="NAME=NUMBER: a constant of the assembly, or an option of assembled kernels; repeatable."
    ),
]
Elf = Annotated[
    list[str] | None,
    typer.Option("--elf", help="COLUMN,ROW=FILE: an ELF that a core runs instead; FILE alone: all cores; repeatable."),
]
Profile = Annotated[bool, typer.Option("--profile", help="Where the cycles of machine code went (emulated).")]

MOST_LOOKS = 32
_MOST_DIGITS = 64
_WHOLE = re.compile(r"(r|p|m|dn|dj|dc|s|x|e|q|dm|cm)\d+|lc|ls|le|lr|sp|cr[A-Z]\w*|srCarry")


def defined(texts: Sequence[str]) -> dict[str, int]:
    """Constants from NAME=NUMBER."""
    found = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not (is_symbol(name) and equals):
            raise typer.BadParameter(f"{clip(repr(text))} is not NAME=NUMBER, such as TILE_M=64")
        found[name] = evaluate(number, found)
    return found


def design_symbols(design: Path | None, core: str | None) -> dict[str, int]:
    """Names of a design that a core reaches; none without a design."""
    if design is None and core is None:
        return {}
    if design is None or core is None:
        raise typer.BadParameter("--design and --core COLUMN,ROW go together")
    device, _ = choose(parse(read_text(design), str(design)), None, None, str(design))
    return core_symbols(device, *_place(core))


def elfs_of(texts: Sequence[str], design: str, file: str) -> dict[tuple[int, int], Path]:
    """ELFs by core; one without a core is for all that have none of their own."""
    alone = [Path(text) for text in texts if "=" not in text]
    named = [text.split("=", 1) for text in texts if "=" in text]
    cores = [op.tile for op in parse(design, file).walk() if isinstance(op, CoreOp)] if alone else []
    everywhere = {(tile.column, tile.row): path for path in alone for tile in cores}
    return everywhere | {_place(place): Path(path) for place, path in named}


def _place(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\(?(\d{1,3}), ?(\d{1,3})\)?", text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no core: write COLUMN,ROW, such as 0,2")
    return int(match[1]), int(match[2])


class _Looker:
    """Prints cores where they stop: all of what is not 0 at first, then what has changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], dict[str, int]] = {}
        self._left = MOST_LOOKS

    def __call__(self, place: tuple[int, int], core: "Executor", where: str) -> None:
        """Show a core."""
        if self._left == 0:
            return
        self._left -= 1
        text = bundle_text(core.isa.generation, core.isa.decode(core.code, core.pc))
        say(f"core {place}{where}, cycle {core.cycle}: {text}")
        before = self._seen.get(place, {})
        now = {name: core.read(name) for name in sorted(core.isa.registers, key=_natural) if _WHOLE.fullmatch(name)}
        for name, value in now.items():
            if value != before.get(name, 0):
                say(f"    {name:6} {_digits(value)}")
        self._seen[place] = now
        if self._left == 0:
            say(f"    no more than {MOST_LOOKS} are shown")


def _natural(name: str) -> tuple[str, int]:
    digits = re.search(r"\d+$", name)
    return (name[: digits.start()], int(digits[0])) if digits else (name, 0)


def _digits(value: int) -> str:
    text = f"{value:#x}"
    return text if len(text) <= _MOST_DIGITS else f"{text[:8]} ... {text[-_MOST_DIGITS:]} (highest ... lowest)"


def looked_at(places: list[str]) -> Breakpoints | None:
    """Where cores are shown; ArgumentError for what names no place."""
    return Breakpoints.of(places, _Looker()) if places else None


def show_profiles(profiles: Sequence[CoreProfile]) -> None:
    """A table for each core."""
    if not profiles:
        say("no core ran machine code: there is nothing to profile")
    for profile in profiles:
        _show(profile)


def _show(profile: CoreProfile) -> None:
    total = profile.bundles or 1
    table = new_table(
        f"{profile.core}, {profile.file}: {profile.bundles} bundles (emulated)",
        "function", ">bundles", ">share", *(f">{slot}" for slot in SLOTS), ">MACs/cycle",
    )  # fmt: skip
    for share in profile.shares:
        slots = (f"{share.slots[slot] / share.bundles:.0%}" for slot in SLOTS)
        macs = f"{share.macs / share.bundles:.1f}"
        table.add_row(share.name, str(share.bundles), f"{share.bundles / total:.1%}", *slots, macs)
    put(screen(), table)
    waits = ", ".join(f"{count} x {kind}" for kind, count in sorted(profile.waits.items())) or "nothing"
    say(f"  waited {profile.conflicts} cycles for its own banks; blocked on {waits}")
