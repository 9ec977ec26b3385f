"""The assembly text of each form: a mnemonic and a pattern of operands, derived from the tables.

Printing and parsing use the same pattern, so text and code cannot drift apart. `docs/isa.md` describes the syntax.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.core.isa.asm_expression import evaluate, unknown
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

# Parts of a form's name that belong to the mnemonic; others name operands or pipelines of the compiler.
_WORD = re.compile(
    r"[A-Z]+\d*|\d+|\dD|\dx|\d+x\d+|[su](8|16|32)|[SDU](4|8|16|32|64)|bf16|fp32|BF16|FP32|bfp16ebs(8|16)|ebs8|d[1-6]|hi|lo|f|nb|tlast"
)
_OPERAND_WORDS = {"X", "Y", "QX", "QY", "EX", "EY", "QEX", "QEY", "AM", "W", "IND", "BF", "CNTR"}
_JOINED = {"LT", "GE", "GTZ", "LTZ"}  # as in vmax_lt
_SIGN = re.compile(r"_([a-z]+Sign[01])$")
_RENAMED = {
    "MOV_alu_mv_alu_flt2fx": "flt2fx",
    "MOV_alu_mv_alu_fx2flt": "fx2flt",
    "SELEQZ": "sel.eqz",
    "SELNEZ": "sel.nez",
}
_WORD_BITS = 32
_EVENTS = {"EVENT_event0": "#0", "EVENT_event1": "#1", "EVENT_ERROR": "error", "EVENT_WARNING": "warning"}


class Mismatch(EncodeError):
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

    def parse(self, tokens: list[str], symbols: Mapping[str, int], assume: bool = False) -> Instruction:
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
                raise Mismatch(str(error), 2 * done + self._is_number(item, rest, tokens)) from None
        if rest:
            raise Mismatch(f"unexpected {rest[0]!r}", 2 * len(self.pattern))
        return Instruction(self.form, tuple(values[name] for name in self.form.names))

    def _is_number(self, item: str, rest: list[str], tokens: list[str]) -> bool:
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
        for syntax in _of_form(load(generation), form):
            found.setdefault(syntax.mnemonic, []).append(syntax)
    return found


@cache
def syntax_of(generation: str, form: str) -> tuple[Syntax, ...]:
    """Syntaxes of a form, the preferred one last."""
    return tuple(_of_form(load(generation), load(generation).form(form)))


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
    for register in kind.codes:
        tokens = _spelled_tokens(register)
        if [token.lower() for token in rest[: len(tokens)]] == tokens:
            del rest[: len(tokens)]
            return register
    raise EncodeError(f"{rest[0]} is not in register class {kind.name} ({kind.summary})")


@cache
def _spelled_tokens(register: str) -> list[str]:
    return TOKEN.findall(spelled(register).lower())


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


def _of_form(isa: Isa, form: Form) -> Iterator[Syntax]:
    mnemonic, pattern = _mnemonic(form.name), _pattern(isa.generation, form)
    spare = [f for f in form.fields if form.name.startswith("PADDB_") and f.name == "dst"]
    if spare:  # bits that a sibling form has for its result: shown only where they are not 0
        yield _syntax(form, mnemonic, f"{pattern}, {{dst}}", {})
        yield _syntax(form, mnemonic, pattern, {"dst": str(spare[0].kind.decode(0))})
        return
    yield _syntax(form, mnemonic, pattern, {})


def _syntax(form: Form, mnemonic: str, pattern: str, implied: Mapping[str, Value]) -> Syntax:
    return Syntax(form, mnemonic, tuple(re.findall(r"\{\w+\}|#\d+|[\w.]+|[\[\],]", pattern)), implied)


def _mnemonic(name: str) -> str:
    if name in _RENAMED:
        return _RENAMED[name]
    if name in _EVENTS:
        return "event"
    stem = _SIGN.sub("", re.sub(r"_mMStream_tlast_(imm|reg)|_mv_scl2ms(_doTlast_reg)?|_mv_ss2scl", "", name))
    stem = re.sub(
        r"^MOV((?:_NB)?(?:_TLAST)?)_mv_(c?ph)2ms(_doTlast_reg)?$", lambda m: f"MOV_{m[2].upper()}{m[1]}", stem
    )
    stem = re.sub(r"GTZ(8|16|32)$", r"GTZ_\1", re.sub(r"^EXTEND(?=[su])", "EXTEND_", stem))
    first, *rest = stem.split("_")
    text = first
    for word in rest:
        if _WORD.fullmatch(word) and word not in _OPERAND_WORDS:
            text += f"{'_' if word in _JOINED else '.'}{word}"
    return text.lower()


def _pattern(generation: str, form: Form) -> str:
    name = form.name
    if name in _EVENTS:
        return _EVENTS[name]
    address, inside = _address(form)
    shown = _aie2p_operands(form) if generation == "aie2p" else _aie2_operands(form)
    items = [text for operand, text in shown if operand not in inside]
    if re.match(r"MOV_(.*2ms|.*(tlast|TLAST))|VMOV_(st_)?mv_mcd", name):
        items.insert(0, "mcd" if name.startswith("VMOV") else "ms")
    if re.match(r"MOV_(nb_lda|lda|.*ss2scl)", name):
        items.append("ss")
    if name.startswith("VMOV") and re.search(r"_scd|VMOV_(LO|HI|2|3)$", name):
        items.insert(1, "scd.incr" if name.endswith("_dyn") else "scd")
    if re.search(r"CNTR$|cntr2l$", name):
        items.append("cntr")
    if name.startswith("VINSERT") and name.endswith("Imm0"):
        items.insert(2, "#0")
    if (
        name.startswith(("VADD", "VSUB")) and "_add_scd" in name
    ):  # before the register with its position, perhaps stepped
        items.insert(items.index("r31"), "scd.incr" if "_scd_incr" in name else "scd")
    sign = _SIGN.search(name)
    return ", ".join(items + address + ([sign[1]] if sign else []))


def _aie2p_operands(form: Form) -> list[tuple[str, str]]:
    """Operands in the timing table's order, results first; what is updated in place appears once."""
    timing = form.timing
    results = [n for n in timing.defs if n in form.names or n in timing.fixed]
    sources = [n for n in timing.uses if n in form.names or n in timing.fixed]
    if form.name.startswith(("ACQ", "REL")):
        sources.sort(key=lambda n: ("id", "s1", "s2").index(n))
    names = dict.fromkeys(n for n in results + sources if n != "conf_e7")  # one register read at two stages
    return [(n, timing.fixed.get(n, f"{{{n}}}")) for n in names]


def _aie2_operands(form: Form) -> list[tuple[str, str]]:
    """Operands in the encoding table's order, which is that of assembly; then registers that are always the same."""
    names = [n for n in form.names if not (n == "dst" and form.name.startswith("PADDB_"))]
    return [(n, f"{{{n}}}") for n in names] + list(form.timing.fixed.items())


def _address(form: Form) -> tuple[list[str], set[str]]:
    """The address operand, and the names of the operands inside."""
    names, name = set(form.names), _SIGN.sub("", form.name)
    if re.match(r"PADD.*_(pstm_)?sp(_imm)?$", name):
        step = "imm" if "imm" in names else "mod"
        return [f"[sp], {{{step}}}"], {step}
    if "imm" in names and name.endswith("spill"):
        return ["[sp, {imm}]"], {"imm"}
    if re.match(r"VST_(PUSH|FLUSH)", name):
        step = ", {mod}" if "mod" in names else ""
        return ["[p2, sf, r26]" + step], {"ptr", "fifo_reg", "avail", "mod"}
    if "ptr" not in names:
        return [], set()
    if "dj" in names or (name.endswith("idx_imm") and "ptr_inc" not in name):
        offset = "dj" if "dj" in names else "imm"
        return [f"[{{ptr}}, {{{offset}}}]"], {"ptr", offset}
    step = next((n for n in ("mod", "imm") if n in names), None)
    tail = f", {{{step}}}" if step else ""
    return ["[{ptr}]" + tail], {"ptr", *([step] if step else [])}
