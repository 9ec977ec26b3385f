"""How forms are written: a mnemonic and a pattern of operands, as the tables have them, and the form that a text means.

Printing and parsing use the same pattern, so text and code cannot drift apart. `docs/isa.md` describes the syntax.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from bdforge.core.isa.assembly_text import evaluate, names, unknown
from bdforge.core.isa.bundle_codec import Isa, load
from bdforge.core.isa.errors import EncodeError
from bdforge.core.isa.forms import Form, Instruction
from bdforge.core.isa.operand_kinds import Immediate, OperandKind, RegisterClass, Value

TOKEN = re.compile(r"#[^,\]]+|[\w.$]+|\S")
"""A token of an operand list: a number or an expression after `#`, a name, a bracket or a comma."""

BRANCH_KINDS = {"cpmaddr", "c20raw", "c20u"}
"""Kinds of operands that are addresses in program memory."""

LOOP_REGISTERS = ("ls", "le")
"""Registers that hold addresses in program memory: a loop's first and last bundle."""

_WORD_BITS = 32
_SHOWN = 6


class OperandMismatch(EncodeError):
    """Operands that are not those of a pattern; `done` grows with the items that fitted."""

    def __init__(self, reason: str, done: int) -> None:
        super().__init__(reason)
        self.done = done


@dataclass(frozen=True, eq=False, slots=True)
class Syntax:
    """How a form is written: `mnemonic`, then `pattern`, whose items are literal tokens or operand names in braces.

    `implied` are operands that the text leaves out, with the values that they then have.
    """

    form: Form
    mnemonic: str
    pattern: tuple[str, ...]
    implied: Mapping[str, Value]

    def print(self, instruction: Instruction, symbols: Mapping[int, str] | None = None) -> str:
        """The instruction as text; branch targets by name if `symbols` knows them."""
        items = (self._shown(instruction, item, symbols or {}) for item in self.pattern)
        return f"{self.mnemonic}\t{join(items)}" if self.pattern else self.mnemonic

    def parse(self, tokens: Sequence[str], symbols: Mapping[str, int], assume: bool = False) -> Instruction:
        """The instruction with these operand tokens; with `assume`, symbols without a value fit anywhere.

        Mismatch if they do not fit the pattern.
        """
        rest = list(tokens)
        values = dict(self.implied)
        for done, item in enumerate(self.pattern):
            try:
                if item[0] == "{":
                    values[item[1:-1]] = _take(self.form.field(item[1:-1]).kind, rest, symbols, assume)
                elif not rest or rest.pop(0).lower() != item.lower():
                    raise EncodeError(f"expected {item!r}")
            except EncodeError as error:
                raise OperandMismatch(str(error), 2 * done + self._is_number(item, rest, tokens)) from None
        if rest:
            raise OperandMismatch(f"unexpected {rest[0]!r}", 2 * len(self.pattern))
        return Instruction(self.form, tuple(values[name] for name in self.form.names))

    def _is_number(self, item: str, rest: list[str], tokens: Sequence[str]) -> bool:
        """Whether a number stood where the pattern has one, so that only its value is wrong."""
        numeric = item[0] == "{" and isinstance(self.form.field(item[1:-1]).kind, Immediate)
        return numeric and len(rest) < len(tokens) and tokens[len(tokens) - len(rest) - 1].startswith("#")

    @property
    def shape(self) -> str:
        """The pattern as a reader would write it, for messages: `vlda x, [p], #imm`."""
        return f"{self.mnemonic} {join(self._placeholder(item) for item in self.pattern)}".strip()

    def _placeholder(self, item: str) -> str:
        if item[0] != "{":
            return item
        kind = self.form.field(item[1:-1]).kind
        return kind.name if isinstance(kind, RegisterClass) else f"#{kind.low}..{kind.high}"

    def _shown(self, instruction: Instruction, item: str, symbols: Mapping[int, str]) -> str:
        if item[0] != "{":
            return item
        kind, value = self.form.field(item[1:-1]).kind, instruction[item[1:-1]]
        if isinstance(value, str):
            return spelled(value)
        if kind.name in BRANCH_KINDS or (instruction.values[0] in LOOP_REGISTERS and value in symbols):
            return f"#{symbols.get(value, hex(value))}"
        return f"#{value}"


def spelled(register: str) -> str:
    """A register's text: its name; what a FIFO load's one bit chooses is written out (`p0, lf0, r24`)."""
    unit = register.removeprefix("plfr")
    return register if unit == register else f"p{unit}, lf{unit}, r{24 + int(unit)}"


def join(items: Iterator[str]) -> str:
    """Tokens with the spaces that people write."""
    return re.sub(r" *, *", ", ", re.sub(r"\[ | \]", lambda m: m[0].strip(), " ".join(items)))


@cache
def syntaxes(generation: str) -> Mapping[str, list[Syntax]]:
    """All syntaxes by mnemonic."""
    found: dict[str, list[Syntax]] = {}
    for form in load(generation).forms.values():
        for syntax in _of_form(form):
            found.setdefault(syntax.mnemonic, []).append(syntax)
    return found


@cache
def syntax_of(generation: str, form: str) -> tuple[Syntax, ...]:
    """Syntaxes of a form, the preferred one last."""
    return tuple(_of_form(load(generation).form(form)))


def text_of(generation: str, instruction: Instruction, symbols: Mapping[int, str] | None = None) -> str:
    """An instruction as text that assembles to the same code."""
    fitting = [
        syntax
        for syntax in syntax_of(generation, instruction.form.name)
        if all(instruction[name] == value for name, value in syntax.implied.items())
    ]
    return fitting[-1].print(instruction, symbols)


def _take(kind: OperandKind, rest: list[str], symbols: Mapping[str, int], assume: bool) -> Value:
    """Take an operand off the front of the tokens."""
    if not rest:
        raise EncodeError("an operand is missing")
    if isinstance(kind, Immediate):
        return _immediate(kind, rest.pop(0), symbols, assume)
    for count, registers in _spelled(kind).items():
        register = registers.get(tuple(token.lower() for token in rest[:count]))
        if register is not None:
            del rest[:count]
            return register
    if (count := max(_spelled(kind))) == 1:
        raise EncodeError(f"{rest[0]} is not in register class {kind.name} ({kind.summary})")
    raise EncodeError(f"{' '.join(rest[:count]).replace(' ,', ',')} is none of {' or '.join(map(spelled, kind.codes))}")


@cache
def _spelled(kind: RegisterClass) -> Mapping[int, Mapping[tuple[str, ...], str]]:
    """Registers of a class by the number of tokens that they are written with, and by these."""
    found: dict[int, dict[tuple[str, ...], str]] = {}
    for register in kind.codes:
        tokens = tuple(TOKEN.findall(spelled(register).lower()))
        found.setdefault(len(tokens), {})[tokens] = register
    return found


def _immediate(kind: Immediate, token: str, symbols: Mapping[str, int], assume: bool) -> int:
    if not token.startswith("#"):
        raise EncodeError(f"{token} is not a number: write #{token}")
    if assume and unknown(token[1:], symbols):
        return kind.low
    value = evaluate(token[1:], symbols)
    if kind.bits == _WORD_BITS and kind.signed and value >> (_WORD_BITS - 1) == 1:
        value -= 1 << _WORD_BITS  # 0xffffffff is -1
    kind.encode(value)
    return value


def _of_form(form: Form) -> Iterator[Syntax]:
    for text in form.assembly.split("|"):
        mnemonic, _, pattern = text.partition(" ")
        items = tuple(re.findall(r"\{\w+\}|#\d+|[\w.]+|[\[\],]", pattern))
        implied = {f.name: f.kind.decode(0) for f in form.fields if f"{{{f.name}}}" not in items}
        yield Syntax(form, mnemonic, items, {name: value for name, value in implied.items() if value is not None})


@lru_cache(maxsize=256)
def _hint(generation: str, mnemonic: str) -> str:
    near = difflib.get_close_matches(mnemonic, syntaxes(generation), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def match(isa: Isa, text: str, symbols: Mapping[str, int], assume: bool = False) -> Instruction:
    """The instruction that `text` means; with `assume`, symbols that are not known yet fit anywhere.

    EncodeError for an unknown mnemonic, or with the reason of the form that fits best and the forms there are.
    """
    mnemonic, tokens = _tokens(text)
    if _with_symbols(tokens):
        return _matched(isa.generation, mnemonic, tokens, text, symbols, assume)
    return _plain(isa.generation, mnemonic, tokens, text)


@lru_cache(maxsize=1 << 14)
def has_symbols(text: str) -> bool:
    """Whether an instruction's text has symbols, so that it means something else from program to program."""
    return "#" in text and _with_symbols(_tokens(text)[1])


def _tokens(text: str) -> tuple[str, tuple[str, ...]]:
    """Mnemonic and tokens."""
    mnemonic, _, rest = text.strip().replace("\t", " ").partition(" ")
    return mnemonic, tuple(TOKEN.findall(rest))


def _with_symbols(tokens: tuple[str, ...]) -> bool:
    return any(names(token[1:]) for token in tokens if token[0] == "#")


@lru_cache(maxsize=1 << 14)
def _plain(generation: str, mnemonic: str, tokens: tuple[str, ...], text: str) -> Instruction:
    """What a text without symbols means; loops that are written out say the same again and again."""
    return _matched(generation, mnemonic, tokens, text, {}, False)


def _matched(
    generation: str, mnemonic: str, tokens: tuple[str, ...], text: str, symbols: Mapping[str, int], assume: bool
) -> Instruction:
    candidates = syntaxes(generation).get(mnemonic.lower())
    if candidates is None:
        raise EncodeError(f"{generation} has no instruction {mnemonic[:40]!r}{_hint(generation, mnemonic.lower())}")
    refused: list[tuple[int, str, Syntax]] = []
    for syntax in candidates:
        try:
            return syntax.parse(tokens, symbols, assume)
        except OperandMismatch as error:
            refused.append((error.done, str(error), syntax))
    _, reason, nearest = max(refused, key=lambda those: those[0])
    shapes = list(dict.fromkeys(syntax.shape for syntax in (nearest, *(those[2] for those in refused))))
    more = f" and {len(shapes) - _SHOWN} more" if len(shapes) > _SHOWN else ""
    raise EncodeError(f"{text.strip()[:80]}: {reason}; forms: {' | '.join(shapes[:_SHOWN])}{more}")
