"""The parser: xDSL's, with locations, isolated names and one kind of error."""

import re
from collections.abc import Iterable, Sequence
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
    ModuleOp,
    RankedStructure,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import Parser, ParserState, UnresolvedOperand
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind

from bdforge.array.mlir.constraints import missing_problem, value_problem
from bdforge.array.mlir.dense import DENSE_BYTES_MAX, dense_bytes, literal_end, misspelled, plain_dense
from bdforge.array.mlir.errors import MlirError, SourceText
from bdforge.array.mlir.legacy import legacy_form, unknown_attribute, unknown_operation
from bdforge.array.mlir.lexer import TextLexer
from bdforge.array.mlir.locations import location, place, source_of
from bdforge.array.mlir.trace_ops import is_trace, trace_operation
from bdforge.array.mlir.upstream import PARSERS
from bdforge.common.messages import clip_path

OPERATIONS_MAX = 1 << 17
"""Of one text: reading and checking take about a quarter of a millisecond for each."""

DenseElement = IntegerType | IndexType | AnyFloat | ComplexType[IntegerType | AnyFloat]
_PLAIN_TYPE = re.compile(r"memref<[0-9x]+[a-z]+[0-9]+>|[a-z]*i[0-9]+\b", re.ASCII)
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")
_LOOK_BACK = 80  # characters; more space than that does not stand between an arrow and a type
_WHOLE = re.compile(r"-?[0-9]++(?![.xX])", re.ASCII)
_PLAIN_INTEGER = re.compile(r"[0-9]+ : [a-z]*i[0-9]+\b", re.ASCII)


class TextParser(Parser):
    """Reads a module from text; raises ParseError and VerifyException, which `parse_text` turns into MlirError."""

    def __init__(self, context: Context, source: SourceText):
        super().__init__(context, "", source.file)
        self._parser_state = ParserState(TextLexer(Input(source.text, source.file)))
        self.source = source
        self._operations: list[tuple[type[Operation], int]] = []
        self._dictionary_start: int | None = None
        self._forward_spans: dict[str, Span] = {}
        self._types: dict[str, TypeAttribute | None] = {}
        self._numbers: dict[str, IntegerAttr | FloatAttr | None] = {}
        self._end = self._read = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing but blanks and comments is left."""
        return self._current_token.kind is MLIRTokenKind.EOF

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> Token[MLIRTokenKind, str]:
        token = super()._consume_token(expected_kind)
        self._end = token.span.end
        return token

    def _resume_from(self, pos) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(pos, int):
            self._end = pos
        super()._resume_from(pos)

    def parse_operation(self) -> Operation:
        """Read one operation and remember where its name stands."""
        results_start = self._current_token.span
        self._count(results_start)
        bound_results = self._parse_op_result_list()
        name_token = self._current_token
        start = name_token.span.start
        generic = name_token.kind is MLIRTokenKind.STRING_LIT
        if not generic and name_token.kind is not MLIRTokenKind.BARE_IDENT:
            self.raise_error("expected an operation's name")
        name = name_token.span.text.strip('"')
        op_type = self._operation_named(name, start)
        self._consume_token()
        op = self._parse_body_of(op_type, start, generic)
        place(op, self.source, start, (results_start.start, self._end))
        count = sum(size for _, size in bound_results)
        if bound_results and count != len(op.results):
            self.raise_error(f"'{name}' has {len(op.results)} results, not {count}", results_start)
        index = 0
        for span, size in bound_results:
            self._register_ssa_definition(span.text[1:], op.results[index : index + size], span)
            index += size
        return op

    def _count(self, span: Span) -> None:
        self._read += 1
        if self._read > OPERATIONS_MAX:
            self.raise_error(
                f"this is operation {self._read} of the text, more than {OPERATIONS_MAX} are not read; whole arrays "
                "with all their sequences take a tenth of that, so look for what is there many times",
                span,
            )

    def _operation_named(self, name: str, start: int) -> type[Operation]:
        if is_trace(name):
            return trace_operation(name)
        op_type = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if op_type is None:
            self.raise_error(unknown_operation(name), start, start + len(name))
        return op_type

    def _parse_body_of(self, op_type: type[Operation], start: int, generic: bool) -> Operation:
        self._parser_state.dialect_stack.append(op_type.dialect_name())
        self._operations.append((op_type, start))
        name_end = self.lexer.pos
        outer_dictionary, self._dictionary_start = self._dictionary_start, None
        try:
            if generic:
                op = self._parse_generic_operation(op_type)
            else:
                op = PARSERS.get(op_type.name, op_type.parse)(self)
                if (found := self.parse_optional_location()) is not None:
                    op.location = found
        except VerifyException as error:
            problem = str(error).split("\n")[0]
            raise ParseError(self._span(self._fault_start(start)), f"'{op_type.name}': {problem}") from error
        except ParseError as error:
            self._raise_legacy(op_type, name_end, error)
            raise
        if (problem := missing_problem(op)) is not None:
            self.raise_error(problem, self._fault_start(start))
        self._dictionary_start = outer_dictionary
        self._operations.pop()
        self._parser_state.dialect_stack.pop()
        return op

    def _fault_start(self, start: int) -> int:
        return start if self._dictionary_start is None else self._dictionary_start

    def _span(self, start: int) -> Span:
        return Span(start, start, self.lexer.input)

    def _raise_legacy(self, op_type: type[Operation], name_end: int, error: ParseError) -> None:
        if self._operations[-1][0] is not op_type or getattr(error, "explained", False):
            return
        error.explained = True  # pyright: ignore[reportAttributeAccessIssue]
        hint = legacy_form(op_type.name, self.source.text[self._operations[-1][1] + len(op_type.name) :][:200])
        if hint is not None:
            error.msg = hint

    def parse_optional_attr_dict(self) -> dict[str, Attribute]:
        """Read `{...}` and remember where it starts, for complaints about its values."""
        if self._current_token.kind is MLIRTokenKind.L_BRACE:
            start = self.pos
            return self._checked(super().parse_optional_attr_dict(), start)
        return {}

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        """Read `<{...}>` and remember where it starts, for complaints about its values."""
        if self._current_token.kind is MLIRTokenKind.LESS:
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
        if self._current_token.kind is not MLIRTokenKind.BARE_IDENT or not self.parse_optional_keyword("loc"):
            return None
        start, depth = self.pos, 0
        while True:
            kind = self._consume_token().kind
            depth += {MLIRTokenKind.L_PAREN: 1, MLIRTokenKind.R_PAREN: -1}.get(kind, 0)
            if depth <= 0:
                return UnknownLoc()
            if kind is MLIRTokenKind.EOF:
                self.raise_error("this location is never closed", start)

    def parse_optional_argument(self, expect_type: bool = True):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read `%name: type`, and a location after it."""
        argument = super().parse_optional_argument(expect_type)
        if argument is not None and expect_type:
            self.parse_optional_location()
        return argument

    def parse_optional_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region | None:
        """Read a region; those of isolated operations see no outer names."""
        if self._current_token.kind is not MLIRTokenKind.L_BRACE:
            return None
        arguments = None if arguments is None else list(arguments)
        if not self._operations or not self._operations[-1][0].has_trait(IsolatedFromAbove):
            return super().parse_optional_region(arguments)
        values, forward = self.ssa_values, self.forward_ssa_references
        self.ssa_values, self.forward_ssa_references = {}, {}
        region = super().parse_optional_region(arguments)
        self._require_definitions()
        self.ssa_values, self.forward_ssa_references = values, forward
        return region

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:
        """The value of a name; remembers where a name was used first."""
        if operand.operand_name not in self.ssa_values:
            self._forward_spans.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def parse_optional_successor(self) -> Block | None:
        """A block's label, defined or not yet."""
        token = self._parse_optional_token(MLIRTokenKind.CARET_IDENT)
        return None if token is None else self._get_block_from_name(token.span)

    def _get_block_from_name(self, block_name: Span) -> Block:
        name = block_name.text[1:]
        if name not in self.blocks:
            self.forward_block_references[name].append(block_name)
            self.blocks[name] = (_labelled_block(name), None)
        return self.blocks[name][0]

    def _parse_block(self) -> Block:
        """A labelled block; unlike xDSL's, any label that MLIR takes, and complaints about one that is given twice."""
        span = self._parse_token(MLIRTokenKind.CARET_IDENT, "expected an operation, a block's label or '}'").span
        name = span.text[1:]
        block, defined = self.blocks.get(name) or (_labelled_block(name), None)
        if defined is not None:
            line = self.source.location(defined.start).line
            self.raise_error(f"block ^{name} is already defined in line {line}", span)
        self.blocks[name] = (block, span)
        self.forward_block_references.pop(name, None)
        self._parse_optional_block_arg_list(block)
        self.parse_punctuation(":")
        self._parse_block_body(block)
        return block

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type; one that was read before in the same plain spelling is not read again."""
        if self._current_token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        match = _PLAIN_TYPE.match(self.source.text, self.pos)
        if match is None:
            return super().parse_optional_type()
        known = self._types.get(match[0])
        if known is None:
            known = self._types[match[0]] = super().parse_optional_type()
        else:
            self._resume_from(match.end())
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
            self._resume_from(match.end())
        return known

    def parse_comma_separated_list(self, delimiter, parse, context_msg=""):
        """A list; of types after `->` a single one may stand without parentheses, as everywhere in MLIR."""
        bare = delimiter is self.Delimiter.PAREN and self._current_token.kind is not MLIRTokenKind.L_PAREN
        if bare and self.source.text[max(0, self.pos - _LOOK_BACK) : self.pos].rstrip().endswith("->"):
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_dimension_list(self) -> list[int]:
        """Sizes of a shape, up to the `x` before its element type; spaces may stand around each `x`."""
        sizes: list[int] = []
        delimiter = self.pos
        while self._current_token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION):
            sizes.append(self.parse_shape_dimension())
            delimiter = self.pos
            if self._parse_optional_shape_delimiter() is None:
                return sizes
        if sizes:
            self._resume_from(delimiter)
        return sizes

    def rest_of_statement(self) -> str:
        """Skip what follows an operation's name: to the end of the line, or of brackets that are open there."""
        text, start, depth = self.source.text, self._operations[-1][1], 0
        start = end = start + len(self._operations[-1][0].name)
        while (token := self._current_token).kind is not MLIRTokenKind.EOF:
            closing = token.span.text in _CLOSING
            if depth == 0 and (closing or "\n" in text[end : token.span.start]):
                break
            depth += (token.span.text in _OPENING) - closing
            end = token.span.end
            self._consume_token()
        return text[start:end]

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for index, value in enumerate(values):
            self.source.names[value] = name if len(values) == 1 else f"{name}#{index}"
            if value.name_hint is not None:
                value._name = name  # the setter of name_hint would cut a number off its end

    def _require_definitions(self) -> None:
        for name in self.forward_ssa_references:
            self.raise_error(f"%{name} is used but never defined", self._forward_spans[name])

    def _parse_dense_literal_type(self) -> RankedStructure[DenseElement]:
        start = self.pos
        structure = super()._parse_dense_literal_type()
        self._limit_dense(structure, start)
        return structure

    def _limit_dense(self, structure: RankedStructure[AnyDenseElement], start: int) -> None:
        size = dense_bytes(structure)
        if size > DENSE_BYTES_MAX:
            self.raise_error(f"a constant of {size} bytes is too large; the limit is {DENSE_BYTES_MAX}", start)

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Read what follows `dense`, whose elements are spelled as their type asks for."""
        start = self.pos
        dense = self._dense_elements(type)
        literal = self.source.text[start + 1 : self.source.text.index(">", start)]
        if (problem := misspelled(literal, dense)) is not None:
            self.raise_error(problem[1], start + 1 + problem[0])
        return dense

    def _dense_elements(self, type: RankedStructure[AnyDenseElement] | None) -> DenseIntOrFPElementsAttr:
        """Plain numbers at once, anything else as xDSL does."""
        start = self.pos
        if type is not None:
            self._limit_dense(type, start)
        end = literal_end(self.source.text, start + 1) if self._current_token.kind is MLIRTokenKind.LESS else None
        if end is not None:
            self._resume_from(end + 1)
            structure = type
            if structure is None:
                self.parse_punctuation(":", " in dense attribute")
                structure = self._parse_dense_literal_type()
            if (dense := plain_dense(self.source.text[start + 1 : end], structure)) is not None:
                return dense
            self._resume_from(start)
        try:
            return super().parse_dense_int_or_fp_elements_attr(type)
        except (VerifyException, ValueError, OverflowError) as error:
            self.raise_error(str(error).split("\n")[0], start)

    def _parse_builtin_dense_resource_attr(self) -> NoReturn:
        self.raise_error("dense_resource stands for data behind the text, which is not read; write dense<...> instead")

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
            span = error.refs[0][0]
            raise MlirError.at(self.source, span.start, f"block {span.text} is used but never defined") from error
        if isinstance(error, ParseError):
            message = unknown_attribute(error.msg) or error.msg
            raise MlirError.at(self.source, error.span.start, message) from error
        if isinstance(error, RecursionError):
            raise MlirError.at(self.source, self.pos, _too_deep(self.source.text[: self.pos])) from None
        raise MlirError.at(self.source, self.pos, f"cannot read this: {error}") from error


def _too_deep(before: str) -> str:
    open_brackets = sum(map(before.count, _OPENING)) - sum(map(before.count, _CLOSING)) + before.count("->")
    return (
        f"nested too deeply to read: about {open_brackets} brackets are open here, designs need some ten; is one never "
        "closed?"
    )


def _labelled_block(name: str) -> Block:
    block = Block()
    if Block.is_valid_name(name) and not Block.is_default_block_name(name):
        block.name_hint = name
    return block


def parse_text(context: Context, source: SourceText) -> ModuleOp:
    """A module from text; MlirError for whatever is wrong with it."""
    if source.file.endswith(".toml"):
        how = f"'bdforge render {clip_path(source.file)} --out NEW.mlir' makes its MLIR first"
        raise MlirError(f"this file is a design's spec, not MLIR; {how}", source.location(0))
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
