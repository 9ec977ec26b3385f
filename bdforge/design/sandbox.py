"""What templates may do: make text of what they are given, in bounded steps.

They come with projects and designs of other people, so they get neither private attributes nor other files than
templates, and no number of theirs makes a text or a loop without end. Memory that a template adds up itself, from many
small texts that it keeps, is not counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.loaders import split_template_path
from jinja2.nodes import Filter, For
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bdforge.common.files import TEXT_BYTES_MAX, read_text

STEPS_MAX = 4_000_000
"""Turns of loops in one rendering; the largest of ours take some ten thousand."""
LENGTH_MAX = 1 << 20
"""Of what `*` or a width makes: elements, characters, bits of a number."""
_FILTERS = ("batch", "center", "indent", "round", "slice", "tojson")
_METHODS = ("center", "expandtabs", "ljust", "rjust", "zfill")
"""Filters and texts' methods whose numbers are lengths."""
_BYTES = ("encode", "to_bytes")
"""Methods that make bytes, for which a text has no use."""
_WIDE = re.compile(r"%[^a-zA-Z%]*(\d{6}|\*)|\{[^{}]*:[^{}]*(\d{6}|\{)")
"""A format with a width of six digits, or one that is another argument."""
_steps: ContextVar[Iterator[int]] = ContextVar("steps")


@contextmanager
def limited() -> Iterator[None]:
    """What is rendered inside has STEPS_MAX turns of loops, all in all."""
    token = _steps.set(iter(range(STEPS_MAX)))
    try:
        yield
    finally:
        _steps.reset(token)


def rendered(template: jinja2.Template, values: Mapping[str, Any]) -> str:
    """The text, which ends with a newline; SecurityError beyond TEXT_BYTES_MAX characters."""
    parts, size = [], 0
    for part in template.generate(values):
        parts.append(part)
        size += len(part)
        if size > TEXT_BYTES_MAX:
            raise SecurityError(f"it writes more than {TEXT_BYTES_MAX} characters")
    text = "".join(parts)
    return text if text.endswith("\n") else text + "\n"


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for templates of `folders`; SecurityError for what none may do."""

    intercepted_binops = frozenset({"*", "**", "%"})  # what is made may be far larger than what it is made of

    def __init__(self, folders: Sequence[Path]):
        super().__init__(loader=_loader(folders), undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        self._safe: dict[tuple[type, str], bool] = {}  # asked at each attribute of a text; instances make no difference
        del self.globals["lipsum"]
        self.filters |= {name: _bounded(self.filters[name]) for name in _FILTERS}
        self.filters["format"] = lambda text, *given, **named: _format(str(text)) % (named or given)
        self.filters["counted"] = _counted

    def _generate(self, source: Any, *rest: Any, **named: Any) -> str:
        for loop in source.find_all(For):
            loop.iter = Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
        return super()._generate(source, *rest, **named)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether it is public, changes nothing, and makes no bytes."""
        asked = type(obj), attr
        if asked not in self._safe:
            self._safe[asked] = super().is_safe_attribute(obj, attr, value) and attr not in _BYTES
        return self._safe[asked]

    def call(__self, __context: Any, __obj: Any, *args: Any, **named: Any) -> Any:  # noqa: N805  named as Jinja's
        """Call `__obj`: texts' methods with lengths within bounds, a recursive loop with its turns counted."""
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str) and __obj.__name__ in _METHODS:
            args = tuple(map(_length, args))
        elif isinstance(owner, str) and __obj.__name__ in ("format", "format_map"):
            _format(owner)
        if isinstance(__obj, LoopContext) and args:
            args = _counted(args[0]), *args[1:]
        return super().call(__context, __obj, *args, **named)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute what is within bounds."""
        if isinstance(left, int) and isinstance(right, int):
            _length(left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length())
        elif operator == "*":
            _length(_size(left) * _size(right))
        elif isinstance(left, str):
            _format(left)
        return super().call_binop(context, operator, left, right)


def _loader(folders: Sequence[Path]) -> jinja2.BaseLoader:
    def load(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        found = (folder.joinpath(*split_template_path(name)) for folder in folders)
        if (path := next((path for path in found if path.is_file()), None)) is None:
            return None
        changed = path.stat().st_mtime_ns
        return read_text(path), str(path), lambda: path.is_file() and path.stat().st_mtime_ns == changed

    return jinja2.FunctionLoader(load)


def _counted(items: Iterable) -> Iterator:
    steps = _steps.get()
    for item in items:
        if next(steps, None) is None:
            raise SecurityError(f"its loops take more than {STEPS_MAX} turns")
        yield item


def _bounded(function: Callable) -> Callable:
    @wraps(function)
    def bounded(*given: Any, **named: Any) -> Any:
        first = 2 if hasattr(function, "jinja_pass_arg") else 1  # behind it stand the numbers that are lengths
        for value in (*given[first:], *named.values()):
            _length(value)
        return function(*given, **named)

    return bounded


def _format(text: str) -> str:
    if _WIDE.search(text):
        raise SecurityError("a width in a format has five digits at most, and is no argument")
    return text


def _size(value: Any) -> int:
    """Elements of a sequence, or how often a number repeats one."""
    if isinstance(value, Sequence):
        return len(value)
    return value if isinstance(value, int) else 0


def _length(value: Any) -> Any:
    if isinstance(value, int) and value > LENGTH_MAX:
        raise SecurityError(f"{value} is more than {LENGTH_MAX}, the limit of lengths")
    return value
