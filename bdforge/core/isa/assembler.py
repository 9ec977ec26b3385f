"""From assembly source to the bytes of a core's memories."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter

from bdforge.common.messages import clip, listed
from bdforge.core.isa.assembly_text import Line, evaluate, lines, names, unknown
from bdforge.core.isa.bundle_codec import Isa, load
from bdforge.core.isa.elf import core_elf
from bdforge.core.isa.errors import AssemblyError, EncodeError
from bdforge.core.isa.flow import TARGET_BYTES
from bdforge.core.isa.forms import Bundle
from bdforge.core.isa.syntax import has_symbols, match
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

DATA_BASE, DATA_END, OWN_DATA = 0x40000, 0x80000, 0x70000
"""Data memories as a core addresses them: south, west, north, own, 64 KB each; its own starts at OWN_DATA."""

_DATA_ALIGNMENT = 64
_MOST_ERRORS, _ERRORS_COUNTED = 12, 10_000
_MOST_FILL = 1 << 18
_WORD = (1 << 32) - 1
_WIDTHS = {".byte": 1, ".short": 2, ".hword": 2, ".half": 2, ".long": 4, ".int": 4, ".word": 4, ".quad": 8}
_IGNORED = {".file", ".type", ".size", ".ident", ".addrsig", ".addrsig_sym", ".loc", ".weak", ".local", ".hidden"}


@dataclass(slots=True)
class AssembledSection:
    """A section: `pieces` of bytes at offsets from its address; one of zeros only is `zero`."""

    name: str
    code: bool
    address: int | None
    pieces: dict[int, bytearray] = field(default_factory=lambda: {0: bytearray()})
    start: int = 0  # offset of the piece that is being filled
    zero: bool = False

    @property
    def here(self) -> int:
        """Offset of the next byte."""
        return self.start + len(self.pieces[self.start])

    def put(self, data: bytes) -> None:
        """Append bytes; EncodeError for more than it can hold."""
        if self.here + len(data) > DATA_END:
            raise EncodeError(f"{self.name} grows beyond {DATA_END:#x}, where the last memory of a core ends")
        self.check(data)
        self.pieces[self.start] += data

    def check(self, data: bytes) -> None:
        """EncodeError for bytes that the section cannot hold."""
        if self.zero and any(data):
            raise EncodeError(f"{self.name} holds zeros only")

    def move(self, offset: int) -> None:
        """Go on at a higher offset, leaving a gap."""
        if offset != self.here:
            self.start = offset
            self.pieces[offset] = bytearray()


@dataclass(frozen=True, slots=True)
class BundleSource:
    """Where a bundle comes from, and the registers whose old value it reads on purpose (`.old`)."""

    line: Line
    old: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assembled:
    """An assembled program: (address, bytes) of code and data, (address, size) of zeroed memory, symbols, sources.

    `constants` are the symbols that are no addresses, `exported` the global ones.
    """

    generation: str
    code: tuple[tuple[int, bytes], ...]
    data: tuple[tuple[int, bytes], ...]
    zeros: tuple[tuple[int, int], ...]
    symbols: Mapping[str, int]
    exported: frozenset[str]
    constants: frozenset[str]
    sources: Mapping[int, BundleSource]

    def elf(self) -> bytes:
        """The program as an ELF that loaders take for a core; its symbols are those of 32 bits.

        AssemblyError without an instruction: a core would run what was there before.
        """
        if not self.code:
            raise AssemblyError("there are no instructions; a program begins with one")
        held = {name: value & _WORD for name, value in self.symbols.items() if -(1 << 31) <= value <= _WORD}
        return core_elf(self.generation, self.code, self.data, self.zeros, held, self.exported, self.constants)


def assemble(
    source: str, generation: str = "aie2p", file: str = "source.s", symbols: Mapping[str, int] | None = None
) -> Assembled:
    """Assemble one source file; AssemblyError lists the wrong lines (at most twelve), each with its reason.

    `symbols` are constants besides those that the source defines itself, such as addresses of a design's buffers.
    """
    return _Assembler(load(generation), list(lines(source, file)), symbols or {}).run()


class _Assembler:
    """Two passes: the first lays out (a bundle's size follows from its slots alone), the second encodes."""

    def __init__(self, isa: Isa, source: list[Line], symbols: Mapping[str, int]) -> None:
        self.isa = isa
        self.source = source
        self.sections: dict[str, AssembledSection] = {}
        self.section = self._section(".text")
        self.labels: dict[str, tuple[AssembledSection, int]] = {}
        self.constants: dict[str, str] = {name: str(value) for name, value in symbols.items()}
        self.numbers: dict[str, int] = dict(symbols)  # constants that need no others
        self.exported: set[str] = set()
        self.later: list[tuple[AssembledSection, int, int, Callable[[Mapping[str, int]], bytes], Line]] = []
        self.old: frozenset[str] = frozenset()
        self.sources: dict[tuple[str, int], BundleSource] = {}
        self.errors: list[AssemblyError] = []

    def run(self) -> Assembled:
        """Both passes."""
        for line in self.source:
            self._try(line, lambda line=line: self._lay_out(line))
        self._stop_at_errors()
        self._place()
        symbols = self._symbols()
        for section, start, offset, encode, line in self.later:
            self._try(line, lambda s=section, p=start, o=offset, e=encode: self._fill(s, p, o, e(symbols)))
        self._check_bounds()
        self._stop_at_errors()
        return self._result(symbols)

    def _try(self, line: Line, do: Callable[[], None]) -> None:
        try:
            do()
        except AssemblyError as error:
            self.errors.append(error)
        except EncodeError as error:
            self.errors.append(line.error(str(error)))
        if len(self.errors) == _ERRORS_COUNTED:  # the others are of the same kinds
            self._stop_at_errors()

    def _stop_at_errors(self) -> None:
        if not self.errors:
            return
        shown = [str(error)[:300] for error in self.errors[:_MOST_ERRORS]]
        more = len(self.errors) - len(shown)
        raise AssemblyError("\n".join(shown + ([f"and {more} more"] if more else [])))

    # First pass.

    def _lay_out(self, line: Line) -> None:
        for label in line.labels:
            self._define(label, line)
        if line.directive:
            return self._directive(line)
        return self._bundle(line) if line.instructions else None

    def _define(self, name: str, line: Line) -> None:
        if name in self.labels or name in self.constants:
            raise line.error(f"{name} is defined twice")
        self.labels[name] = (self.section, self.section.here)

    def _bundle(self, line: Line) -> None:
        if not self.section.code:
            raise line.error(f"an instruction in {self.section.name}, which is data")
        draft = self._encoded(line, self.numbers, assume=True)  # for its size; labels may stand further down
        section, start, offset = self.section, self.section.start, self.section.here
        section.put(bytes(draft.size))
        self.later.append((section, start, offset, lambda symbols: bytes(self._encoded(line, symbols)), line))
        self.sources[section.name, offset] = BundleSource(line, self.old)
        self.old = frozenset()

    def _encoded(self, line: Line, symbols: Mapping[str, int], assume: bool = False) -> Bundle:
        if not any(map(has_symbols, line.instructions)):
            return _bundle(self.isa.generation, line.instructions)
        return self.isa.bundle([match(self.isa, text, symbols, assume) for text in line.instructions])

    def _directive(self, line: Line) -> None:
        if line.directive not in _DIRECTIVES:
            raise line.error(f"unknown directive {line.directive}")
        _DIRECTIVES[line.directive](self, line)

    def _ignore(self, line: Line) -> None:
        """What compilers say for others."""

    def _open(self, line: Line) -> None:
        self.section = self._section(line.directive)

    def _select(self, line: Line) -> None:
        name, *rest = _needed(line, 1)
        address = next((evaluate(text, {}) for text in rest if _is_known(text)), None)
        self.section = self._section(name.strip('"'), address)

    def _section(self, name: str, address: int | None = None) -> AssembledSection:
        if name not in self.sections:
            code = name == ".text" or name.startswith(".text.")
            self.sections[name] = AssembledSection(name, code, address, zero=name.startswith(".bss"))
        found = self.sections[name]
        found.address = found.address if address is None else address
        return found

    def _align(self, line: Line) -> None:
        argument = evaluate(_needed(line, 1)[0], {})
        size, taken = argument, "a power of two up to 65536"
        if line.directive != ".balign":
            size, taken = 1 << argument if 0 <= argument <= 16 else 0, "an exponent of two from 0 to 16"
        if size < 1 or size & (size - 1) or size > 1 << 16:
            raise line.error(f"{argument} is no alignment: {taken}")
        gap = -self.section.here % size
        if not self.section.code:
            return self.section.put(bytes(gap))
        if gap % 2:
            raise line.error("code ends at an odd address here")
        while gap:
            self.section.put(bytes(self.isa.nop(min(gap, 16))))
            gap -= min(gap, 16)
        return None

    def _org(self, line: Line) -> None:
        offset = evaluate(_needed(line, 1)[0], {})
        if not self.section.here <= offset < DATA_END:
            raise line.error(f".org {offset:#x} lies before {self.section.here:#x}, or outside of all memories")
        self.section.move(offset)

    def _space(self, line: Line) -> None:
        size, *rest = (evaluate(text, {}) for text in _needed(line, 1))
        if not 0 <= size <= _MOST_FILL:
            raise line.error(f"{size} bytes do not fit any memory")
        self.section.put(bytes([rest[0] & 255 if rest else 0]) * size)

    def _numbers(self, line: Line) -> None:
        width = _WIDTHS[line.directive]
        for text in _needed(line, 1):
            offset = self.section.here
            self.section.put(bytes(width))
            encode = lambda symbols, text=text: _number(evaluate(text, symbols), width)  # noqa: E731
            self.later.append((self.section, self.section.start, offset, encode, line))

    def _text(self, line: Line) -> None:
        for argument in _needed(line, 1):
            end = b"" if line.directive == ".ascii" else b"\0"
            self.section.put(_unquoted(argument, line).encode() + end)

    def _set(self, line: Line) -> None:
        name, text = _needed(line, 2)[:2]
        if name in self.labels:
            raise line.error(f"{name} is defined twice")
        self.constants[name] = text
        self.numbers.pop(name, None)
        if not names(text):
            self.numbers[name] = evaluate(text, {})

    def _export(self, line: Line) -> None:
        self.exported |= set(_needed(line, 1))

    def _keep_old(self, line: Line) -> None:
        names, known = [name.lower() for name in _needed(line, 1)], _registers(self.isa.generation)
        for name in names:
            if name not in known:
                raise line.error(f"{name} is no register of {self.isa.generation}")
        self.old = frozenset(known[name] for name in names)

    # Second pass.

    def _place(self) -> None:
        """Addresses of sections that have none: code one after the other from 0, data from OWN_DATA, zeros last."""
        ends = {True: 0, False: OWN_DATA}
        for section in sorted(self.sections.values(), key=lambda s: s.zero):  # zeros are in no image: last of all
            if section.address is None:
                alignment = TARGET_BYTES if section.code else _DATA_ALIGNMENT
                section.address = -(-ends[section.code] // alignment) * alignment
            end = section.address + max((o + len(piece) for o, piece in section.pieces.items()), default=0)
            ends[section.code] = max(ends[section.code], end)

    def _symbols(self) -> dict[str, int]:
        symbols = {name: (section.address or 0) + offset for name, (section, offset) in self.labels.items()}
        for name in self._ordered():
            text = self.constants[name]
            if missing := unknown(text, symbols):
                raise AssemblyError(f"{clip(name)}: defined by {listed(sorted(set(missing)))}, not defined")
            try:
                symbols[name] = evaluate(text, symbols)
            except EncodeError as error:
                raise AssemblyError(f"{clip(name)}: {error}") from None
        return symbols

    def _ordered(self) -> list[str]:
        """Constants, each behind those that define it."""
        uses = {name: [used for used in names(text) if used in self.constants] for name, text in self.constants.items()}
        try:
            return list(TopologicalSorter(uses).static_order())
        except CycleError as error:
            raise AssemblyError(f"{listed(sorted(set(error.args[1])))}: defined by each other") from None

    @staticmethod
    def _fill(section: AssembledSection, start: int, offset: int, data: bytes) -> None:
        section.check(data)
        section.pieces[start][offset - start : offset - start + len(data)] = data

    def _check_bounds(self) -> None:
        for section in self.sections.values():
            for offset, piece in section.pieces.items():
                start = (section.address or 0) + offset
                low, high = (0, PROGRAM_MEMORY_BYTES) if section.code else (DATA_BASE, DATA_END)
                if piece and not low <= start <= start + len(piece) <= high:
                    kind = "program" if section.code else "data"
                    place = f"{start:#x} to {start + len(piece):#x}"
                    reason = f"{section.name} takes {place}, beyond {kind} memory ({low:#x} to {high:#x})"
                    self.errors.append(AssemblyError(f"{self.source[0].file}: {reason}"))

    def _result(self, symbols: Mapping[str, int]) -> Assembled:
        placed = [
            (section, (section.address or 0) + offset, bytes(piece))
            for section in self.sections.values()
            for offset, piece in sorted(section.pieces.items())
            if piece
        ]
        return Assembled(
            self.isa.generation,
            code=tuple((address, piece) for section, address, piece in placed if section.code),
            data=tuple((a, piece) for section, a, piece in placed if not section.code and not section.zero),
            zeros=tuple((address, len(piece)) for section, address, piece in placed if section.zero),
            symbols=symbols,
            exported=frozenset(self.exported),
            constants=frozenset(self.constants),
            sources={(self.sections[n].address or 0) + offset: s for (n, offset), s in self.sources.items()},
        )


@cache
def _registers(generation: str) -> Mapping[str, str]:
    """Registers by their names in lower case."""
    return {register.lower(): register for register in load(generation).registers}


@lru_cache(maxsize=1 << 14)
def _bundle(generation: str, instructions: tuple[str, ...]) -> Bundle:
    """The bundle of instructions without symbols: programs of one device have most of them in common."""
    isa = load(generation)
    return isa.bundle([match(isa, text, {}) for text in instructions])


_DIRECTIVES: Mapping[str, Callable[[_Assembler, Line], None]] = {
    **dict.fromkeys(_WIDTHS, _Assembler._numbers),
    **dict.fromkeys(_IGNORED, _Assembler._ignore),
    **dict.fromkeys((".text", ".data", ".bss", ".rodata"), _Assembler._open),
    ".section": _Assembler._select,
    ".p2align": _Assembler._align,
    ".align": _Assembler._align,
    ".balign": _Assembler._align,
    ".org": _Assembler._org,
    ".zero": _Assembler._space,
    ".space": _Assembler._space,
    ".skip": _Assembler._space,
    ".ascii": _Assembler._text,
    ".asciz": _Assembler._text,
    ".string": _Assembler._text,
    ".set": _Assembler._set,
    ".equ": _Assembler._set,
    ".globl": _Assembler._export,
    ".global": _Assembler._export,
    ".old": _Assembler._keep_old,
}


def _needed(line: Line, count: int) -> tuple[str, ...]:
    if len(line.arguments) < count:
        raise line.error(f"{line.directive} takes {'an argument' if count == 1 else f'{count} arguments'}")
    return line.arguments


def _is_known(text: str) -> bool:
    """Whether an expression is a number."""
    try:
        evaluate(text, {})
    except EncodeError:
        return False
    return True


def _number(value: int, width: int) -> bytes:
    if not -(1 << (8 * width - 1)) <= value < 1 << 8 * width:
        raise EncodeError(f"{value} does not fit {8 * width} bits")
    return struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF)[:width]


def _unquoted(argument: str, line: Line) -> str:
    """A string in quotation marks, with the escapes of JSON."""
    try:
        text = json.loads(argument, strict=False)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise line.error(f"{argument} is no string in quotation marks")
    return text
