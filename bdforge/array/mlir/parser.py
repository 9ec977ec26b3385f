"""The parser: xDSL's, with locations, isolated names and one kind of error."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    RankedStructure,
    TensorType,
    UnknownLoc,
    VectorType,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import AttrParser, Parser, ParserState, UnresolvedOperand
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from bdforge.array.mlir.constraints import missing_problem, settle_braces, value_problem
from bdforge.array.mlir.dense import DENSE_BYTES_MAX, dense_bytes, has_constants, literal_end, misspelled, plain_dense
from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.array.mlir.legacy import legacy_form, unknown_attribute, unknown_operation
from bdforge.array.mlir.lexer import TextLexer
from bdforge.array.mlir.locations import keep_name, location, place, source_of

OPERATIONS_MAX = 1 << 17
"""Of one text: reading and checking take about a quarter of a millisecond for each."""

DenseElement = IntegerType | IndexType | AnyFloat | ComplexType[IntegerType | AnyFloat]
_PLAIN_TYPE = re.compile(r"memref<[0-9x]+[a-z]+[0-9]+>|[a-z]*i[0-9]+\b", re.ASCII)
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")
_LOOK_BACK = 80  # characters; more space than that does not stand between an arrow and a type
_WHOLE = re.compile(r"-?[0-9]++(?![.xX])", re.ASCII)
_GAP = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
_RESULT = rf"%(?:[0-9]+|[\w$.-]+){_GAP}(?::{_GAP}[0-9]+{_GAP})?"
_HEAD = re.compile(rf'(?:{_RESULT}(?:,{_GAP}{_RESULT})*={_GAP})?(?P<name>[a-zA-Z_][\w$.]*|"[^"\n]*")?', re.ASCII)
_RESULTS = re.compile(r"Operation has ([0-9]+) results, but was given ([0-9]+) to bind\.")
_TYPES = re.compile(r"expected ([0-9]+) operand types but had ([0-9]+)")
_CLEARER = {" in block definition": "expected an operation, a block's label or '}'"}
_PLAIN_INTEGER = re.compile(r"[0-9]+ : [a-z]*i[0-9]+\b", re.ASCII)


class _Values(dict[str, tuple[SSAValue, ...]]):
    """Values by name, each of which keeps the name that its text gives it."""

    def __setitem__(self, name: str, values: tuple[SSAValue, ...]) -> None:
        super().__setitem__(name, values)
        for index, value in enumerate(values):
            keep_name(value, name if len(values) == 1 else f"{name}#{index}")

    def copy(self) -> "_Values":
        return _Values(self)


class TextParser(Parser):
    """Reads a module from text; raises ParseError and VerifyException, which `parse_text` turns into MlirError."""

    def __init__(self, context: Context, source: SourceText):
        self.tokens = TextLexer(Input(source.text, source.file))
        self.state = ParserState(self.tokens)
        AttrParser.__init__(self, self.state, context)  # the constructor of Parser would make a lexer of its own
        self.ssa_values, self.forward_ssa_references = _Values(), {}
        self.blocks, self.forward_block_references = {}, defaultdict(list)
        self.source = source
        self._operations: list[tuple[type[Operation], int]] = []
        self._dictionary_start: int | None = None
        self._forward_spans: dict[str, Span] = {}
        self._types: dict[str, TypeAttribute | None] = {}
        self._numbers: dict[str, IntegerAttr | FloatAttr | None] = {}
        self._read = 0

    @property
    def kind(self) -> MLIRTokenKind:
        """Of the next token."""
        return self.state.current_token.kind

    @property
    def at_end(self) -> bool:
        """Whether nothing but blanks and comments is left."""
        return self.kind is MLIRTokenKind.EOF

    def advance(self) -> None:
        """Go behind the next token."""
        self.state.current_token = self.tokens.lex()

    def go_on_from(self, offset: int) -> None:
        """Read from a character of the text on."""
        self.tokens.pos = offset
        self.advance()

    def skip_brackets(self) -> int | None:
        """Go behind a bracket, all that it holds, and the one that closes it: where that begins, None without one."""
        depth = 0
        while not self.at_end:
            last, text = self.pos, self.state.current_token.text
            depth += (text in _OPENING) - (text in _CLOSING)
            self.advance()
            if depth <= 0:
                return last
        return None

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
        error.explained = True  # pyright: ignore[reportAttributeAccessIssue]
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

    def parse_optional_location(self) -> LocationAttr | None:
        """Skip `loc(...)`, whose aliases may be defined later: `location` tells where the text itself stands."""
        if self.kind is not MLIRTokenKind.BARE_IDENT or not self.parse_optional_keyword("loc"):
            return None
        start = self.pos
        if self.kind is not MLIRTokenKind.L_PAREN or self.skip_brackets() is None:
            self.raise_error("this location is never closed", start)
        return UnknownLoc()

    def parse_optional_argument(self, expect_type: bool = True):  # pyright: ignore[reportIncompatibleMethodOverride]
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

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:
        """The value of a name; remembers where a name was used first."""
        if operand.operand_name not in self.ssa_values:
            self._forward_spans.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type; one that was read before in the same plain spelling is not read again."""
        if self.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        match = _PLAIN_TYPE.match(self.source.text, self.pos)
        if match is None:
            return super().parse_optional_type()
        known = self._types.get(match[0])
        if known is None:
            known = self._types[match[0]] = super().parse_optional_type()
        else:
            self.go_on_from(match.end())
        return known

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """A number; an integer that was read before in the same plain spelling is not read again."""
        start = self.pos
        match = _PLAIN_INTEGER.match(self.source.text, start)
        if match is None:
            found = super().parse_optional_builtin_int_or_float_attr()
            if isinstance(found, FloatAttr) and (written := _WHOLE.match(self.source.text, start)) is not None:
                self.raise_error(f"{written[0]} is no {found.type}: write {written[0]}.0, or its bits as 0x...", start)
            return found
        known = self._numbers.get(match[0])
        if known is None:
            known = self._numbers[match[0]] = super().parse_optional_builtin_int_or_float_attr()
        else:
            self.go_on_from(match.end())
        return known

    def parse_comma_separated_list(self, delimiter, parse, context_msg=""):
        """A list; of types after `->` a single one may stand without parentheses, as everywhere in MLIR."""
        bare = delimiter is self.Delimiter.PAREN and self.kind is not MLIRTokenKind.L_PAREN
        if bare and self.source.text[max(0, self.pos - _LOOK_BACK) : self.pos].rstrip().endswith("->"):
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_dimension_list(self) -> list[int]:
        """Sizes of a shape, up to the `x` before its element type; spaces may stand around each `x`."""
        sizes: list[int] = []
        delimiter = self.pos
        while self.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION):
            sizes.append(self.parse_shape_dimension())
            delimiter = self.pos
            if self.kind is not MLIRTokenKind.BARE_IDENT or not self.state.current_token.text.startswith("x"):
                return sizes
            self.go_on_from(self.pos + 1)
        if sizes:
            self.go_on_from(delimiter)
        return sizes

    def rest_of_statement(self) -> str:
        """Skip what follows an operation's name: to the end of the line, or of brackets that are open there."""
        text, start, depth = self.source.text, self._operations[-1][1], 0
        start = end = start + len(self._operations[-1][0].name)
        while (token := self.state.current_token).kind is not MLIRTokenKind.EOF:
            closing = token.span.text in _CLOSING
            if depth == 0 and (closing or "\n" in text[end : token.span.start]):
                break
            depth += (token.span.text in _OPENING) - closing
            end = token.span.end
            self.advance()
        return text[start:end]

    def _require_definitions(self) -> None:
        for name in self.forward_ssa_references:
            self.raise_error(f"%{name} is used but never defined", self._forward_spans[name])

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Read what follows `dense`, of bounded size and whose elements are spelled as their type asks for."""
        start, text = self.pos, self.source.text
        end = literal_end(text, start + 1) if self.kind is MLIRTokenKind.LESS else None
        dense, structure = None, self._type_behind(end) if type is None else type
        if structure is not None:
            self._limit_dense(structure, start)
            dense = None if end is None else plain_dense(text[start + 1 : end], structure)
        if dense is None:
            dense = self._dense_elements(type, start)
        elif type is not None and end is not None:
            self.go_on_from(end + 1)
        if (problem := misspelled(text[start + 1 : text.index(">", start)], dense)) is not None:
            self.raise_error(problem[1], start + 1 + problem[0])
        return dense

    def _type_behind(self, end: int | None) -> RankedStructure[AnyDenseElement] | None:
        """Read past a literal, which ends at `end` if it is plain, and its type; None where that is no constant's."""
        if end is None:
            self.skip_brackets()
        else:
            self.go_on_from(end + 1)
        found = self.parse_optional_type() if self.parse_optional_punctuation(":") else None
        return found if isinstance(found, MemRefType | TensorType | VectorType) and has_constants(found) else None

    def _dense_elements(self, type: RankedStructure[AnyDenseElement] | None, start: int) -> DenseIntOrFPElementsAttr:
        """What is not plain numbers, as xDSL reads it."""
        self.go_on_from(start)
        try:
            return super().parse_dense_int_or_fp_elements_attr(type)
        except (VerifyException, ValueError, OverflowError) as error:
            self.raise_error(str(error).split("\n")[0], start)

    def _limit_dense(self, structure: RankedStructure[AnyDenseElement], start: int) -> None:
        size = dense_bytes(structure)
        if size > DENSE_BYTES_MAX:
            self.raise_error(f"a constant of {size} bytes is too large; the limit is {DENSE_BYTES_MAX}", start)

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
    open_brackets = sum(map(before.count, _OPENING)) - sum(map(before.count, _CLOSING)) + before.count("->")
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


__all__ = ["TextParser", "location", "parse_text", "source_of"]
