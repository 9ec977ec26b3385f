"""The parser: xDSL's, with locations, isolated names and one kind of error."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from bdforge.array.mlir.attribute_parser import CLOSING, OPENING, TextAttrParser
from bdforge.array.mlir.constraints import missing_problem, settle_braces, value_problem
from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.array.mlir.legacy import legacy_form, unknown_attribute, unknown_operation
from bdforge.array.mlir.locations import keep_name, place

OPERATIONS_MAX = 1 << 17
"""Of one text: reading and checking take about a quarter of a millisecond for each."""

_GAP = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
_RESULT = rf"%(?:[0-9]+|[\w$.-]+){_GAP}(?::{_GAP}[0-9]+{_GAP})?"
_HEAD = re.compile(rf'(?:{_RESULT}(?:,{_GAP}{_RESULT})*={_GAP})?(?P<name>[a-zA-Z_][\w$.]*|"[^"\n]*")?', re.ASCII)
_RESULTS = re.compile(r"Operation has ([0-9]+) results, but was given ([0-9]+) to bind\.")
_TYPES = re.compile(r"expected ([0-9]+) operand types but had ([0-9]+)")
_CLEARER = {" in block definition": "expected an operation, a block's label or '}'"}


class _Values(dict[str, tuple[SSAValue, ...]]):
    """Values by name, each of which keeps the name that its text gives it."""

    def __setitem__(self, name: str, values: tuple[SSAValue, ...]) -> None:
        super().__setitem__(name, values)
        for index, value in enumerate(values):
            keep_name(value, name if len(values) == 1 else f"{name}#{index}")

    def copy(self) -> "_Values":
        return _Values(self)


class TextParser(TextAttrParser):
    """Reads a module from text; raises ParseError and VerifyException, which `parse_text` turns into MlirError."""

    def __init__(self, context: Context, source: SourceText):
        super().__init__(context, source)
        self.ssa_values, self.forward_ssa_references = _Values(), {}
        self.blocks, self.forward_block_references = {}, defaultdict(list)
        self._operations: list[tuple[type[Operation], int]] = []
        self._dictionary_start: int | None = None
        self._forward_spans: dict[str, Span] = {}
        self._read = 0

    def parse_operation(self) -> Operation:
        """Read one operation and remember where its name stands."""
        begin = self.pos
        self._count(begin)
        name, start = self._name_from(begin)
        with self._inside(self._operation_named(name, start), start):
            op = super().parse_operation()
            if (problem := settle_braces(op) or missing_problem(op)) is not None:
                self.raise_error(problem, self._fault_start(start))
        place(op, self.source, start, (begin, self.tokens.end_before(self.pos)))
        return op

    def _name_from(self, begin: int) -> tuple[str, int]:
        """The name of the operation that begins here, with its results, and where it stands."""
        head = _HEAD.match(self.source.text, begin)
        if head is None or head["name"] is None:
            self.raise_error("expected an operation's name", begin if head is None else head.end())
        return head["name"].strip('"'), head.start("name")

    def _count(self, start: int) -> None:
        self._read += 1
        if self._read > OPERATIONS_MAX:
            self.raise_error(
                f"this is operation {self._read} of the text, more than {OPERATIONS_MAX} are not read; whole arrays "
                "with all their sequences take a tenth of that, so look for what is there many times",
                start,
            )

    def _operation_named(self, name: str, start: int) -> type[Operation]:
        op_type = self.ctx.get_optional_op(name, dialect_stack=self.state.dialect_stack)
        if op_type is None:
            self.raise_error(unknown_operation(name), start, start + len(name))
        return op_type

    @contextmanager
    def _inside(self, op_type: type[Operation], start: int) -> Iterator[None]:
        """What is read belongs to an operation; a context, for a method more would let less be nested."""
        self._operations.append((op_type, start))
        outer_dictionary, self._dictionary_start = self._dictionary_start, None
        try:
            yield
        except VerifyException as error:
            problem, at = str(error).split("\n")[0], self._fault_start(start)
            raise ParseError(Span(at, at, self.tokens.input), f"'{op_type.name}': {problem}") from error
        except ParseError as error:
            if (counts := _RESULTS.fullmatch(error.msg)) is not None:
                error.msg = f"'{op_type.name}' has {counts[1]} results, not {counts[2]}"
            if (counts := _TYPES.fullmatch(error.msg)) is not None:
                error.msg = f"'{op_type.name}' has {counts[2]} operands here, and {counts[1]} types of them behind ':'"
            self._raise_legacy(op_type, error)
            raise
        self._dictionary_start = outer_dictionary
        self._operations.pop()

    def _fault_start(self, start: int) -> int:
        return start if self._dictionary_start is None else self._dictionary_start

    def _raise_legacy(self, op_type: type[Operation], error: ParseError) -> None:
        if self._operations[-1][0] is not op_type or getattr(error, "explained", False):
            return
        error.explained = True  # pyrefly: ignore[missing-attribute]
        hint = legacy_form(op_type.name, self.source.text[self._operations[-1][1] + len(op_type.name) :][:200])
        if hint is not None:
            error.msg = hint

    def parse_optional_attr_dict(self) -> dict[str, Attribute]:
        """Read `{...}` and remember where it starts, for complaints about its values."""
        if self.kind is MLIRTokenKind.L_BRACE:
            start = self.pos
            return self._checked(super().parse_optional_attr_dict(), start)
        return {}

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        """Read `<{...}>` and remember where it starts, for complaints about its values."""
        if self.kind is MLIRTokenKind.LESS:
            start = self.pos
            return self._checked(super().parse_optional_properties_dict(), start)
        return {}

    def _checked(self, values: dict[str, Attribute], start: int) -> dict[str, Attribute]:
        self._dictionary_start = start
        for name, value in values.items():
            if (problem := value_problem(self._operations[-1][0], name, value)) is not None:
                self.raise_error(problem, start)
        return values

    def parse_optional_argument(self, expect_type: bool = True):  # pyrefly: ignore[bad-override]
        """Read `%name: type`, and a location after it."""
        argument = super().parse_optional_argument(expect_type)
        if argument is not None and expect_type:
            self.parse_optional_location()
        return argument

    def parse_optional_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region | None:
        """Read a region; those of isolated operations see no outer names."""
        if self.kind is not MLIRTokenKind.L_BRACE:
            return None
        arguments = None if arguments is None else list(arguments)
        if not self._operations or not self._operations[-1][0].has_trait(IsolatedFromAbove):
            return super().parse_optional_region(arguments)
        values, forward = self.ssa_values, self.forward_ssa_references
        self.ssa_values, self.forward_ssa_references = _Values(), {}
        region = super().parse_optional_region(arguments)
        self._require_definitions()
        self.ssa_values, self.forward_ssa_references = values, forward
        return region

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:  # pyrefly: ignore[bad-override]
        """The value of a name; remembers where a name was used first."""
        if operand.operand_name not in self.ssa_values:
            self._forward_spans.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def rest_of_statement(self) -> str:
        """Skip what follows an operation's name: to the end of the line, or of brackets that are open there."""
        text, start, depth = self.source.text, self._operations[-1][1], 0
        start = end = start + len(self._operations[-1][0].name)
        while (token := self.state.current_token).kind is not MLIRTokenKind.EOF:
            closing = token.span.text in CLOSING
            if depth == 0 and (closing or "\n" in text[end : token.span.start]):
                break
            depth += (token.span.text in OPENING) - closing
            end = token.span.end
            self.advance()
        return text[start:end]

    def _require_definitions(self) -> None:
        for name in self.forward_ssa_references:
            self.raise_error(f"%{name} is used but never defined", self._forward_spans[name])

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Read the whole text: a module, or bare operations."""
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError:
            if self.at_end and not self._operations:
                self._require_definitions()
            raise

    def fault(self, error: Exception) -> NoReturn:
        """Turn whatever went wrong while reading into an MlirError."""
        if isinstance(error, MultipleSpansParseError) and error.refs:
            raise MlirError.at(self.source, *_label_fault(error, self.source)) from error
        if isinstance(error, ParseError):
            message = unknown_attribute(error.msg) or _CLEARER.get(error.msg, error.msg)
            raise MlirError.at(self.source, error.span.start, message) from error
        if isinstance(error, KeyError) and (again := _defined_again(error, self.source, self.pos)) is not None:
            raise MlirError.at(self.source, *again) from error
        if isinstance(error, RecursionError):
            raise MlirError.at(self.source, self.pos, _too_deep(self.source.text[: self.pos])) from None
        raise MlirError.at(self.source, self.pos, f"cannot read this: {error}") from error


def _too_deep(before: str) -> str:
    open_brackets = sum(map(before.count, OPENING)) - sum(map(before.count, CLOSING)) + before.count("->")
    return (
        f"nested too deeply to read: about {open_brackets} brackets are open here, designs need some ten; is one never "
        "closed?"
    )


def _defined_again(error: KeyError, source: SourceText, offset: int) -> tuple[int, str] | None:
    """Where a label before `offset` stands twice, which xDSL overlooks after a use of it; None for other errors."""
    label = f"^{error.args[0]}"
    found = [match.start() for match in re.finditer(re.escape(label) + _GAP + "[:(]", source.text[: offset + 1])]
    if len(found) < 2:
        return None
    return found[-1], f"block {label} is already defined in line {source.location(found[-2]).line}"


def _label_fault(error: MultipleSpansParseError, source: SourceText) -> tuple[int, str]:
    """Where a block's label is wrong, and how."""
    (other, _), *_ = error.refs
    if error.msg.startswith("re-declaration"):
        line = source.location(other.start).line
        return error.span.start, f"block {error.span.content} is already defined in line {line}"
    return other.start, f"block {other.content} is used but never defined"


def parse_text(context: Context, source: SourceText) -> ModuleOp:
    """A module from text; MlirError for whatever is wrong with it."""
    try:
        parser = TextParser(context, source)
    except ParseError as error:
        raise MlirError.at(source, error.span.start, error.msg) from error
    if parser.at_end:
        raise MlirError.at(source, len(source.text), "this text holds no operation; a design is an aie.device")
    try:
        return parser.parse_module()
    except Exception as error:
        parser.fault(error)
