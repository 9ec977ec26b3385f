"""The parser's types, numbers and constants: xDSL's, each plain spelling read once, constants of bounded size."""

import re
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    RankedStructure,
    TensorType,
    UnknownLoc,
    VectorType,
)
from xdsl.ir import TypeAttribute
from xdsl.parser import AttrParser, Parser, ParserState
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRTokenKind, PunctuationSpelling

from bdforge.array.mlir.dense import DENSE_BYTES_MAX, dense_bytes, has_constants, literal_end, misspelled, plain_dense
from bdforge.array.mlir.errors import SourceText
from bdforge.array.mlir.lexer import TextLexer

OPENING, CLOSING = frozenset("([{<"), frozenset(")]}>")
_PLAIN_TYPE = re.compile(r"memref<[0-9x]+[a-z]+[0-9]+>|[a-z]*i[0-9]+\b", re.ASCII)
_LOOK_BACK = 80  # characters; more space than that does not stand between an arrow and a type
_WHOLE = re.compile(r"-?[0-9]++(?![.xX])", re.ASCII)
_PLAIN_INTEGER = re.compile(r"[0-9]+ : [a-z]*i[0-9]+\b", re.ASCII)


class TextAttrParser(Parser):
    """Reads types, numbers and constants of a text; operations are its subclass's."""

    def __init__(self, context: Context, source: SourceText):
        self.tokens = TextLexer(Input(source.text, source.file))
        self.state = ParserState(self.tokens)
        AttrParser.__init__(self, self.state, context)  # the constructor of Parser would make a lexer of its own
        self.source = source
        self._types: dict[str, TypeAttribute | None] = {}
        self._numbers: dict[str, IntegerAttr | FloatAttr | None] = {}

    @property
    def kind(self) -> MLIRTokenKind:
        """Of the next token."""
        return self.state.current_token.kind

    @property
    def pos(self) -> int:
        """Where the next token begins."""
        return self.state.current_token.start  # pyrefly: ignore[missing-attribute]

    def taken(self, kind: MLIRTokenKind) -> str | None:
        """The next token's text, read, if it is of a kind. (xDSL's own way takes four times as long.)"""
        token = self.state.current_token
        if token.kind is not kind:
            return None
        self.advance()
        return token.text

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        """A punctuation, read if it comes next."""
        return punctuation if self.taken(KIND_BY_PUNCTUATION_SPELLING[punctuation]) else None

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        """A punctuation; ParseError where another token comes."""
        if not self.taken(KIND_BY_PUNCTUATION_SPELLING[punctuation]):
            self.raise_error(f"Expected '{punctuation}'" + context_msg, self.state.current_token.span)
        return punctuation

    def parse_optional_characters(self, text: str) -> str | None:
        """A token of this text, read if it comes next."""
        if self.state.current_token.text != text:
            return None
        self.advance()
        return text

    def parse_optional_identifier(self) -> str | None:
        """A bare word, read if one comes next."""
        return self.taken(MLIRTokenKind.BARE_IDENT)

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
            depth += (text in OPENING) - (text in CLOSING)
            self.advance()
            if depth <= 0:
                return last
        return None

    def parse_optional_location(self) -> LocationAttr | None:
        """Skip `loc(...)`, whose aliases may be defined later: `location` tells where the text itself stands."""
        if self.kind is not MLIRTokenKind.BARE_IDENT or not self.parse_optional_keyword("loc"):
            return None
        start = self.pos
        if self.kind is not MLIRTokenKind.L_PAREN or self.skip_brackets() is None:
            self.raise_error("this location is never closed", start)
        return UnknownLoc()

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
        ranked = isinstance(found, MemRefType | TensorType | VectorType) and has_constants(found)
        return cast(RankedStructure[AnyDenseElement], found) if ranked else None

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
