"""Operations of upstream's dialects that xDSL lacks, or whose text it does not read."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.dialects import memref, scf
from xdsl.dialects.affine import IfOp as AffineIfOp
from xdsl.dialects.builtin import (
    AffineSetAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Data, Dialect, Operation, Region
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import SingleBlockImplicitTerminator, SymbolOpInterface, ensure_terminator

from bdforge.array.mlir import elementwise_ops as elementwise
from bdforge.array.mlir.operation import AieOperation

if TYPE_CHECKING:
    from bdforge.array.mlir.parser import TextParser

OperationT = TypeVar("OperationT", bound=Operation)
_ELEMENT = VarConstraint("_ELEMENT", AnyAttr())


@irdl_op_definition
class GlobalOp(AieOperation):
    """A named constant or buffer; data for aiex.npu.blockwrite."""

    name = "memref.global"
    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = opt_prop_def(AnyAttr())
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr)
    traits = traits_def(SymbolOpInterface())
    assembly_format = (
        "custom<OptionalName>($sym_visibility) (`constant` $constant^)? $sym_name `:` "
        "custom<TypeAndValue>($type, $initial_value) attr-dict"
    )

    @property
    def symbol(self) -> str:
        """Its name."""
        return self.sym_name.data


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """The elements of a vector in another shape."""

    name = "vector.shape_cast"
    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A vector whose elements are all one scalar."""

    name = "vector.splat"
    input = operand_def(_ELEMENT)
    result = result_def(VectorType.constr(_ELEMENT))
    assembly_format = "$input attr-dict `:` type($result)"


@irdl_op_definition
class FunctionOp(IRDLOperation):
    """A function as a value; nothing here calls one."""

    name = "func.constant"
    value = prop_def(SymbolRefAttr)
    result = result_def(FunctionType)
    assembly_format = "$value attr-dict `:` type($result)"


class LayoutAttr(Data[str]):
    """A data layout of a module (dlti), which concerns the cores' compiler alone: kept as it stands."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read `<...>`, whatever stands there."""
        text = cast("TextParser", parser)
        start = text.pos + 1
        return text.source.text[start : text.skip_brackets()]

    def print_parameter(self, printer: Printer) -> None:
        """Write it."""
        printer.print_string(f"<{self.data}>")


LAYOUTS = tuple(
    irdl_attr_definition(type("LayoutAttr", (LayoutAttr,), {"name": f"dlti.{name}"}))
    for name in ("dl_spec", "dl_entry", "map", "target_system_spec", "target_device_spec")
)


def _in_form(op: type[IRDLOperation], form: str) -> type[IRDLOperation]:
    """An operation that xDSL has without its custom form."""
    program = FormatProgram.from_str(form, op.get_irdl_definition())
    methods = {
        "parse": classmethod(lambda cls, parser: program.parse(parser, cast("type[IRDLOperation]", cls))),
        "print": lambda self, printer: program.print(printer, self),
    }
    return type(op.__name__, (op,), {**methods, "__doc__": op.__doc__})


_CAST = "$source attr-dict `:` type($source) `to` type($dest)"
_COPY = "$source `,` $destination attr-dict `:` type($source) `to` type($destination)"


def _parse_while(cls: type[scf.WhileOp], parser: Parser) -> scf.WhileOp:
    if parser.parse_optional_punctuation(":") is None:
        return cast(scf.WhileOp, super(cls, cls).parse(parser))  # pyrefly: ignore[invalid-argument]
    start = parser.pos
    kind = parser.parse_function_type()
    if kind.inputs.data:
        parser.raise_error("scf.while without arguments cannot take any", start)
    before = parser.parse_region([])
    parser.parse_keyword("do")
    after = parser.parse_region()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    op = cls([], list(kind.outputs.data), before, after)
    if attributes is not None:
        op.attributes |= attributes.data
    return op


def _parse_index_switch(cls: type[scf.IndexSwitchOp], parser: Parser) -> scf.IndexSwitchOp:
    """Regions that end without a yield, and empty ones, which MLIR itself writes so."""
    op = cast(scf.IndexSwitchOp, super(cls, cls).parse(parser))  # pyrefly: ignore[invalid-argument]
    ensure_terminator(op, SingleBlockImplicitTerminator(scf.YieldOp))
    return op


def _parse_affine_if(cls: type[AffineIfOp], parser: Parser) -> AffineIfOp:
    start = parser.pos
    condition = parser.parse_attribute()
    if not isinstance(condition, AffineSetAttr):
        parser.raise_error("the condition of affine.if is an affine_set", start)
    index = IndexType()
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(index))
    symbols = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(index))
    results: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->"):
        listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        results = [parser.parse_type()] if listed is None else listed
    then = _yielding(parser.parse_region())
    otherwise = _yielding(parser.parse_region()) if parser.parse_optional_keyword("else") else Region()
    return cls.build(
        operands=[[*operands, *(symbols or [])]],
        properties={"condition": condition},
        attributes=parser.parse_optional_attr_dict(),
        result_types=[results],
        regions=[then, otherwise],
    )


def _yielding(region: Region) -> Region:
    from xdsl.dialects.affine import YieldOp

    if not region.blocks:
        region.add_block(Block())
    if not isinstance(region.blocks[-1].last_op, YieldOp):
        region.blocks[-1].add_op(YieldOp.get())
    return region


def _print_execute_region(op: scf.ExecuteRegionOp, printer: Printer) -> None:
    if op.results:
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(op.result_types, printer.print_attribute)
    printer.print_string(" ")
    printer.print_region(op.regions[0], print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def print_module_op(printer: Printer, op: ModuleOp) -> None:
    """Write a module with its name and attributes, which xDSL would leave out."""
    printer.print_string("module")
    if op.sym_name is not None:
        printer.print_string(" ")
        printer.print_symbol_name(op.sym_name.data)
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)
    printer.print_string(" ")
    printer.print_region(op.body, print_empty_block=False)


def _changed(op: type[OperationT], **methods: Callable) -> type[OperationT]:
    """An operation that reads (`parse`) or writes (`print`) its text otherwise than xDSL's."""
    made = {name: classmethod(method) if name == "parse" else method for name, method in methods.items()}
    return cast("type[OperationT]", type(op.__name__, (op,), {**made, "__doc__": op.__doc__}))


REPLACED: Mapping[str, type[Operation]] = {
    op.name: op
    for op in (
        GlobalOp,
        ShapeCastOp,
        SplatOp,
        FunctionOp,
        *elementwise.OPERATIONS,
        _in_form(memref.CopyOp, _COPY),
        _in_form(memref.CastOp, _CAST),
        _in_form(memref.MemorySpaceCastOp, _CAST),
        _changed(scf.WhileOp, parse=_parse_while),
        _changed(scf.IndexSwitchOp, parse=_parse_index_switch),
        _changed(AffineIfOp, parse=_parse_affine_if),
        _changed(scf.ExecuteRegionOp, print=_print_execute_region),
    )
}


def with_replacements(dialect: Dialect) -> Dialect:
    """A dialect of xDSL's with this module's operations in place of, or beside, its own."""
    own = [op for name, op in REPLACED.items() if name.startswith(f"{dialect.name}.")]
    kept = [op for op in dialect.operations if op.name not in REPLACED]
    return Dialect(dialect.name, [*kept, *own], list(dialect.attributes))
