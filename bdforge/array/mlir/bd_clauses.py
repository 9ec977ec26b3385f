"""What stands in the parentheses of an `aie.dma_bd`, in both forms of the dialect.

Up to mlir-aie 1.3.4: `, offset, len, [<size = s, stride = t>, ...], [<const_pad_before = p, ...>], pad_value = v`.
From 1.4 on (#3306): ` offset = o len = n sizes = [..] strides = [..] pad [<..>]`, where each number may be an SSA
value; 1.4.0 still takes `pad_value = v` behind the pads, later versions on the channel (#3512).
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from bdforge.array.mlir.attributes import Dimension, DimensionsAttr, PaddingsAttr, number
from bdforge.array.mlir.operation import RuntimeNumber, constant_of

SEGMENTS = "operandSegmentSizes"
_SCALARS = {"offset": "static_offset", "len": "static_len"}
_LISTS = {"sizes": "static_sizes", "strides": "static_strides"}
STATIC = (*_SCALARS.values(), *_LISTS.values())
MARCH_NAMES = ("offset", "len", "dimensions")
POSITIONAL = (*MARCH_NAMES, "pad_dimensions", "pad_value")
BD_ID = "bd_id"

Entry = int | SSAValue


def parse_march(parser: Parser, properties: dict[str, Attribute]) -> bool:
    """Read `, offset, len, [dims], [pads], pad_value = v`; whether there is any of it."""
    before = len(properties)
    while parser.parse_optional_punctuation(","):
        _parse_part(parser, properties)
    return len(properties) > before


def _parse_part(parser: Parser, properties: dict[str, Attribute]) -> None:
    start = parser.pos
    if (integer := parser.parse_optional_integer(allow_boolean=False)) is not None:
        name = "offset" if "offset" not in properties else "len"
        value: Attribute = number(integer)
    elif parser.parse_optional_keyword("pad_value"):
        name, value = "pad_value", _parse_pad_value(parser)
    elif "dimensions" not in properties:
        name, value = "dimensions", DimensionsAttr.new(DimensionsAttr.parse_parameter(parser))
    else:
        name, value = "pad_dimensions", PaddingsAttr.new(PaddingsAttr.parse_parameter(parser))
    if name in properties or POSITIONAL.index(name) != len(properties):
        parser.raise_error(
            "expected (buffer : type, offset, len, [dimensions], [padding], pad_value = v): a part needs all before it",
            start,
        )
    properties[name] = value


def _parse_pad_value(parser: Parser) -> Attribute:
    parser.parse_punctuation("=")
    return number(parser.parse_integer(allow_boolean=False))


def parse_modern(parser: Parser, properties: dict[str, Attribute]) -> list[SSAValue]:
    """Read ` offset = o len = n sizes = [..] strides = [..] pad [..]`; the SSA values among them, in order."""
    given = {name: _parse_clause(parser, name) for name in (*_SCALARS, *_LISTS)}
    dynamic = [[entry for entry in entries or () if isinstance(entry, SSAValue)] for entries in given.values()]
    for name, attribute in _SCALARS.items():
        for entry in given[name] or ():
            if isinstance(entry, int):
                properties[attribute] = number(entry)
    for name, attribute in _LISTS.items():
        if (entries := given[name]) is not None:
            static = [entry if isinstance(entry, int) else DYNAMIC_INDEX for entry in entries]
            properties[attribute] = DenseArrayBase.from_list(i64, static)
    if parser.parse_optional_keyword("pad"):
        properties["pad_dimensions"] = PaddingsAttr.new(PaddingsAttr.parse_parameter(parser))
    if parser.parse_optional_keyword("pad_value"):
        properties["pad_value"] = _parse_pad_value(parser)
    if any(entries is not None for entries in given.values()) or properties:
        properties[SEGMENTS] = DenseArrayBase.from_list(i32, [1, *map(len, dynamic), 0])
    return [value for values in dynamic for value in values]


def _parse_clause(parser: Parser, name: str) -> list[Entry] | None:
    if not parser.parse_optional_keyword(name):
        return None
    parser.parse_punctuation("=")
    if name in _SCALARS:
        return [_parse_entry(parser, i32)]
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_entry(parser, i64))


def _parse_entry(parser: Parser, usual: Attribute) -> Entry:
    """A literal, or a value whose type may follow, be known from its definition, or be the usual one."""
    if (operand := parser.parse_optional_unresolved_operand()) is None:
        return parser.parse_integer(allow_boolean=False)
    if parser.parse_optional_punctuation(":"):
        return parser.resolve_operand(operand, parser.parse_type())
    known = parser.ssa_values.get(operand.operand_name)
    kind = known[operand.index].type if known is not None and operand.index < len(known) else usual
    return parser.resolve_operand(operand, kind)


def folded(properties: dict[str, Attribute], dynamic: Sequence[SSAValue]) -> dict[str, Attribute]:
    """The attributes of the March form that a BD's clauses stand for.

    RuntimeNumber for an entry that is no constant; ValueError when the parts do not fit each other.
    """
    if misplaced := [name for name in MARCH_NAMES if name in properties]:
        raise ValueError(
            f"'{misplaced[0]}' as an attribute means nothing from mlir-aie 1.4 on, which would move other data; "
            "write offset = .. len = .. sizes = [..] strides = [..] behind the type"
        )
    values = _by_clause(properties, dynamic)
    found: dict[str, Attribute] = {}
    for name, attribute in (*_SCALARS.items(), (BD_ID, "")):
        for value in values[name]:
            found[name] = number(_constant(value, name))
        if (static := properties.get(attribute)) is not None:
            if name in found:
                raise ValueError(f"'{name}' is given twice")
            found[name] = static
    sizes, strides = (_listed(properties, attribute, values[name], name) for name, attribute in _LISTS.items())
    if len(sizes or ()) != len(strides or ()):
        raise ValueError(f"has {len(sizes or ())} sizes but {len(strides or ())} strides; give as many of both")
    if sizes is not None and strides is not None:
        found["dimensions"] = DimensionsAttr.new(tuple(map(Dimension, sizes, strides)))
    return found


def _by_clause(properties: dict[str, Attribute], dynamic: Sequence[SSAValue]) -> dict[str, list[SSAValue]]:
    """The operands behind the buffer, by the clause that they stand in."""
    names = (*_SCALARS, *_LISTS, BD_ID)
    segments = properties.get(SEGMENTS)
    counts = [int(n) for n in segments.get_values()][1:] if isinstance(segments, DenseArrayBase) else []
    if sum(counts) != len(dynamic) or len(counts) > len(names) or min(counts, default=0) < 0:
        raise ValueError(
            f"{SEGMENTS} does not fit its {len(dynamic) + 1} operands: one buffer, then {', '.join(names)}"
        )
    rest, missing = iter(dynamic), [0] * (len(names) - len(counts))
    return {name: [next(rest) for _ in range(count)] for name, count in zip(names, [*counts, *missing], strict=True)}


def _listed(
    properties: dict[str, Attribute], attribute: str, dynamic: Sequence[SSAValue], name: str
) -> list[int] | None:
    static = properties.get(attribute)
    if not isinstance(static, DenseArrayBase):
        return [_constant(value, name) for value in dynamic] or None
    entries = [int(entry) for entry in static.get_values()]
    if entries.count(DYNAMIC_INDEX) != len(dynamic):
        raise ValueError(f"'{name}' has {entries.count(DYNAMIC_INDEX)} open entries, but {len(dynamic)} operands")
    rest = iter(dynamic)
    return [_constant(next(rest), name) if entry == DYNAMIC_INDEX else entry for entry in entries]


def _constant(value: SSAValue, name: str) -> int:
    constant = constant_of(value)
    if constant is None:
        raise RuntimeNumber(name, value)
    return constant


def unfold(properties: dict[str, Attribute]) -> None:
    """Let a BD's attributes of the March form be clauses instead, as `folded` makes those of them."""
    for name, attribute in _SCALARS.items():
        if (scalar := properties.pop(name, None)) is not None:
            properties[attribute] = scalar
    if isinstance(dims := properties.pop("dimensions", None), DimensionsAttr):
        for place, attribute in enumerate(_LISTS.values()):
            properties[attribute] = DenseArrayBase.from_list(i64, [dim[place] for dim in dims.data])


def print_modern(printer: Printer, properties: Mapping[str, Attribute]) -> None:
    """Write ` offset = o len = n sizes = [..] strides = [..] pad [..]`, what there is of it, all in numbers."""
    for name, attribute in (_SCALARS | _LISTS).items():
        found = properties.get(attribute)
        if isinstance(found, IntegerAttr):
            printer.print_string(f" {name} = {found.value.data}")
        elif isinstance(found, DenseArrayBase):
            printer.print_string(f" {name} = [{', '.join(map(str, found.get_values()))}]")
    if isinstance(pads := properties.get("pad_dimensions"), PaddingsAttr) and pads.data:
        printer.print_string(" pad ")
        pads.print_parameter(printer)
