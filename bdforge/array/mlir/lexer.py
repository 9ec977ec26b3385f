"""Tokens of MLIR text, one regular expression match each."""

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRTokenKind

_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_TOKENS = re.compile(
    r"(?:[ \t\r\n]++|//[^\n]*+)*+"
    r"(?:(?P<PERCENT_IDENT>%" + _SUFFIX + r")"
    r"|(?P<resource>dense_resource\b)"
    r"|(?P<BARE_IDENT>[a-zA-Z_][a-zA-Z0-9_$.]*)"
    r"|(?P<punctuation>->|[:,()}\[\]<>=+/*?|]|-|\{(?!-\#))"
    r"|(?P<FLOAT_LIT>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<INTEGER_LIT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<AT_IDENT>@[a-zA-Z_][a-zA-Z0-9_$.]*)"
    r"|(?P<number>\^[0-9]+)"
    r"|(?P<CARET_IDENT>\^" + _SUFFIX + r")"
    r"|(?P<HASH_IDENT>\#(?!-\})" + _SUFFIX + r")"
    r"|(?P<EXCLAMATION_IDENT>!" + _SUFFIX + r")"
    r"|(?P<STRING_LIT>\"[^\"\\\n\v\f]*\")"
    r")",
    re.ASCII,
)
_KINDS = {name: MLIRTokenKind[name] for name in _TOKENS.groupindex if name.isupper()}
# xDSL's own expression would backtrack without end on a string that is never closed
_OPEN_STRING = re.compile(
    r"(?:[ \t\r\n]++|//[^\n]*+)*+\"(?!(?:[^\"\\\n\v\f]++|\\(?:[\"nt\\]|[0-9A-Fa-f]{2}))*+\")", re.ASCII
)
_RESOURCE = "dense_resource stands for data behind the text, which is not read; write dense<...> instead"


class TextToken(Token[MLIRTokenKind, str]):
    """A token that makes its span when it is asked for it, which is seldom: spans take longer than tokens."""

    def __init__(self, kind: MLIRTokenKind, start: int, end: int, input: Input[str]):
        self.kind, self.start, self.end, self.input = kind, start, end, input

    @property
    def span(self) -> Span[str]:  # pyrefly: ignore[bad-override]
        """Where it stands."""
        return Span(self.start, self.end, self.input)

    @property
    def text(self) -> str:
        """As it is written."""
        return self.input.content[self.start : self.end]


class _NumberedSpan(Span[str]):
    """A label that is a number, under a name that xDSL takes for a block."""

    @property
    def text(self) -> str:
        """The name."""
        return f"^bb0{self.content[1:]}"


class _NumberedLabel(TextToken):
    @property
    def span(self) -> Span[str]:
        return _NumberedSpan(self.start, self.end, self.input)

    @property
    def text(self) -> str:
        return self.span.text


class TextLexer(MLIRLexer):
    """xDSL's lexer, with the frequent tokens matched at once."""

    input: Input[str]

    def __init__(self, input: Input[str]):
        super().__init__(input)
        self._ends: dict[int, int] = {}

    def end_before(self, start: int) -> int:
        """Where the token ends that stands before the one at `start`."""
        return self._ends[start]

    def lex(self) -> TextToken:
        """The next token; rare ones are left to xDSL."""
        before, match = self.pos, _TOKENS.match(self.input.content, self.pos)
        token = self._lex_rare() if match is None else self._token(match)
        self._ends.setdefault(token.start, before)
        return token

    def _token(self, match: re.Match[str]) -> TextToken:
        name = match.lastgroup
        assert name is not None
        start, self.pos = match.span(name)
        if name == "number":
            return _NumberedLabel(MLIRTokenKind.CARET_IDENT, start, self.pos, self.input)
        if name == "resource":
            raise ParseError(Span(start, self.pos, self.input), _RESOURCE)
        kind = _KINDS.get(name) or KIND_BY_PUNCTUATION_SPELLING[match[name]]
        return TextToken(kind, start, self.pos, self.input)

    def _lex_rare(self) -> TextToken:
        if (opened := _OPEN_STRING.match(self.input.content, self.pos)) is not None:
            at = opened.end() - 1
            raise ParseError(Span(at, at, self.input), "End of file reached before closing string literal.")
        try:
            token = super().lex()
        except ParseError as error:
            error.msg = _without_placeholder(error)
            raise
        except (ValueError, OverflowError) as error:
            raise ParseError(Span(self.pos, self.pos, self.input), str(error)) from error
        return TextToken(token.kind, token.span.start, token.span.end, self.input)


def _without_placeholder(error: ParseError) -> str:
    """The message, where xDSL 0.74 forgot to fill in a character."""
    sign = error.span.input.content[error.span.start : error.span.start + 1]
    return error.msg.replace("Expected suffix identifier after {first_char}", f"a name must follow {sign!r}")
