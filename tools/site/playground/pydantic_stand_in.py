"""What documents ask of pydantic, which is compiled for no Python of browsers with numpy: there this is `pydantic`.

Models of integers, texts, lists and of one another are checked, strictly, and refused in pydantic's words. Modules that
documents import have models of other forms, too: who makes one of those gets a NotImplementedError, never a guess.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

ConfigDict = dict
_NONE = object()
_IDLE = ("description", "discriminator", "repr", "strict")
"""Of a field, what makes no difference to values that are made by name; all is strict here."""


class ValidationError(ValueError):
    """Values that a model does not hold."""

    def __init__(self, faults: "_Faults"):
        super().__init__(f"{len(faults)} faults, the first: {faults[0]['msg']}")
        self._faults = faults

    def errors(self) -> list[dict[str, Any]]:
        """`type`, `loc`, `msg` and `input` of each fault."""
        return self._faults


class _Faults(list[dict[str, Any]]):
    def tell(self, kind: str, place: tuple, said: str, value: Any) -> None:
        self.append({"type": kind, "loc": place, "msg": said, "input": value})


@dataclass(frozen=True)
class FieldInfo:
    """A member's default, and the limits of its values."""

    default: Any = _NONE
    default_factory: Callable[[], Any] | None = None
    exclude: bool = False
    limits: tuple[tuple[str, Any], ...] = ()


def Field(  # noqa: N802
    default: Any = _NONE, *, default_factory: Callable[[], Any] | None = None, exclude: bool = False, **limits: Any
) -> Any:
    """A member's default, whether it is no part of what is dumped, and limits as pydantic names them."""
    held = tuple((name, limit) for name, limit in limits.items() if name not in _IDLE)
    return FieldInfo(default, default_factory, exclude, held)


@dataclass(frozen=True)
class AfterValidator:
    """A check of a model that is made by nobody here."""

    check: Callable[[Any], Any]
    limits: ClassVar[tuple[tuple[str, Any], ...]] = (("a check of its own", None),)


BeforeValidator = AfterValidator


class BaseModel:
    """Values by the names that a class annotates."""

    model_config: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **config: Any):
        super().__init_subclass__()
        cls.model_config = {**super(cls, cls).model_config, **cls.__dict__.get("model_config", {}), **config}

    def __init__(self, **given: Any):
        faults = _Faults()
        self.__dict__.update(_members(type(self), given, faults))
        if faults:
            raise ValidationError(faults)

    @classmethod
    def model_validate_json(cls, text: str, strict: bool = True) -> Self:
        """The model of a JSON object."""
        return cls(**json.loads(text))

    def model_copy(self, update: Mapping[str, Any]) -> Self:
        """The same but for some values, which are not checked."""
        made = object.__new__(type(self))
        made.__dict__.update({**dict(self), **update})
        return made

    def model_dump(self) -> dict[str, Any]:
        """Its values by name, of which models stay as they are."""
        fields = _fields(type(self))
        return {name: value for name, value in self if name not in fields or not fields[name][1].exclude}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        more = self.__dict__ if self.model_config.get("extra") == "allow" else ()
        return ((name, self.__dict__[name]) for name in dict.fromkeys([*_fields(type(self)), *more]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseModel) and type(self) is type(other) and dict(self) == dict(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"

    __hash__ = None  # type: ignore[assignment]


@cache
def _fields(model: type) -> dict[str, tuple[Any, FieldInfo]]:
    """Types, and defaults, by name."""
    hints = get_type_hints(model, include_extras=True)
    known = {name: (hint, getattr(model, name, _NONE)) for name, hint in hints.items() if get_origin(hint) != ClassVar}
    return {name: (hint, is_ if isinstance(is_, FieldInfo) else FieldInfo(is_)) for name, (hint, is_) in known.items()}


def _members(model: type[BaseModel], given: Mapping[str, Any], faults: _Faults) -> dict[str, Any]:
    made, fields, extra = {}, _fields(model), model.model_config.get("extra")
    for name, (hint, info) in fields.items():
        if name in given:
            made[name] = _annotated((hint, info), given[name], (name,), faults)
        elif info.default_factory is not None:
            made[name] = info.default_factory()
        elif info.default is not _NONE:
            made[name] = info.default
        else:
            faults.tell("missing", (name,), "Field required", given)
    for name in (name for name in given if name not in fields):
        if extra == "forbid":
            faults.tell("extra_forbidden", (name,), "Extra inputs are not permitted", given[name])
        made[name] = given[name]
    return made


_PLAIN = {
    int: ("int_type", "Input should be a valid integer"), str: ("string_type", "Input should be a valid string"),
    bool: ("bool_type", "Input should be a valid boolean"), float: ("float_type", "Input should be a valid number"),
    NoneType: ("none_required", "Input should be None"),
    list: ("list_type", "Input should be a valid list"),
}  # fmt: skip


def _valid(hint: Any, value: Any, place: tuple, faults: _Faults) -> Any:
    """The value as a type holds it; where it does not, that is told."""
    origin, inner = get_origin(hint), get_args(hint)
    plain = origin if origin is list else hint
    if origin is Annotated:
        return _annotated(inner, value, place, faults)
    if origin in (Union, UnionType):
        return _one_of(inner, value, place, faults)
    if hint is float and type(value) is int:
        value = float(value)
    if plain in _PLAIN and type(value) is not plain:
        kind, said = _PLAIN[plain]
        faults.tell(kind, place, said, value)
    elif origin is list and isinstance(value, list):
        return [_valid(inner[0], one, (*place, index), faults) for index, one in enumerate(value)]
    elif origin is Literal and value not in inner:
        faults.tell("literal_error", place, f"Input should be {' or '.join(map(repr, inner))}", value)
    elif isinstance(hint, type) and issubclass(hint, BaseModel) and isinstance(value, BaseModel):
        if not isinstance(value, hint):
            faults.tell("model_type", place, f"Input should be an instance of {hint.__name__}", value)
    elif plain not in _PLAIN and origin not in (Literal, dict):  # a dict is of names, which no file gives
        raise NotImplementedError(f"{place}: {hint} in a browser")
    return value


def _one_of(hints: tuple, value: Any, place: tuple, faults: _Faults) -> Any:
    """As the first type that takes it, else as the first that is not None's."""
    told = []
    for hint in sorted(hints, key=lambda hint: hint is NoneType):
        found = _Faults()
        made = _valid(hint, value, place, found)
        if not found:
            return made
        told.append(found)
    faults += told[0]
    return value


_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str, str]] = {
    "le": (lambda value, limit: value <= limit, "less_than_equal", "Input should be less than or equal to {0}"),
    "lt": (lambda value, limit: value < limit, "less_than", "Input should be less than {0}"),
    "ge": (lambda value, limit: value >= limit, "greater_than_equal", "Input should be greater than or equal to {0}"),
    "min_length": (lambda value, limit: len(value) >= limit, "too_short", "List should have at least {0} item{1}"),
    "max_length": (lambda value, limit: len(value) <= limit, "too_long", "List should have at most {0} item{1}"),
}


def _annotated(hints: tuple, value: Any, place: tuple, faults: _Faults) -> Any:
    """A value of a type, within its limits: the first that it is beyond is told."""
    before = len(faults)
    made = _valid(hints[0], value, place, faults)
    for name, limit in (pair for info in hints[1:] for pair in info.limits):
        if name not in _LIMITS:
            raise NotImplementedError(f"{place}: {name} in a browser")
        holds, kind, said = _LIMITS[name]
        if len(faults) == before and made is not None and not holds(made, limit):
            length = f" after validation, not {len(made)}" if isinstance(made, list) else ""
            faults.tell(kind, place, said.format(limit, "" if limit == 1 else "s") + length, value)
    return made
