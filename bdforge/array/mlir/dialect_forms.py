"""The two forms of the aie dialect's text, and from either to what every reader behind the parser sees.

Up to mlir-aie 1.3.4 (the March form) numbers of locks, BDs and registers stand in the text as literals; from 1.4 on as
i32 constants. No version reads both. Builds 1.3.5.devN between them mix the two and are refused by name.
Source: mlir-aie's history from #3225 (2026-07-06) over #3308 (07-13) to #3306 (07-14).
"""

from collections.abc import Iterator
from enum import StrEnum

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from bdforge.array.mlir.errors import MlirError
from bdforge.array.mlir.locations import error_at, location, place, source_of, span_of
from bdforge.array.mlir.operation import AieOperation, RuntimeNumber
from bdforge.array.mlir.stream_ops import PacketFlowOp, PacketSourceOp


class Era(StrEnum):
    """Which form a text has."""

    MARCH = "march"
    MODERN = "1.4"


_NAMES = {Era.MARCH: "up to mlir-aie 1.3.4 (march)", Era.MODERN: "from mlir-aie 1.4 on"}


def era_of(op: Operation) -> Era | None:
    """The form of the text that an operation was read from; None where nothing in it tells."""
    found = next((found for inner in op.walk() if (found := source_of(inner)) is not None), None)
    return None if found is None or found[0].era is None else Era(found[0].era)


def fold(module: ModuleOp) -> None:
    """Turn constant operands back into integers, so that both forms become the same module.

    MlirError for a text that mixes the forms, and for a number that is known only when the design runs.
    """
    first: dict[Era, AieOperation] = {}
    operations = list(_aie_operations(module))  # splitting flows adds some
    for op in operations:
        if (modern := op.is_modern) is not None:
            first.setdefault(Era.MODERN if modern else Era.MARCH, op)
    if len(first) == len(Era):
        raise _mixed(first)
    for era, op in first.items():
        if (found := source_of(op)) is not None:
            found[0].era = era
    for op in operations:
        _fold_one(op)
        if isinstance(op, PacketFlowOp) and Era.MODERN in first:
            _split(op)


def _split(flow: PacketFlowOp) -> None:
    """One flow for each source, as the March form has it (several in one: #2963)."""
    sources = [op for op in flow.ports.block.ops if isinstance(op, PacketSourceOp)]
    for kept in range(len(sources) - 1, 0, -1):  # each lands right behind the flow: the last one first
        part = flow.clone()
        copies = [op for op in part.ports.block.ops if isinstance(op, PacketSourceOp)]
        for index, source in enumerate(copies):
            if index != kept:
                source.detach()
        for copy, original in zip((part, copies[kept]), (flow, sources[kept]), strict=True):
            if (found := source_of(original)) is not None:
                place(copy, *found)
        block = flow.parent_block()
        assert block is not None
        block.insert_ops_after([part], flow)
    for source in sources[1:]:
        source.detach()


def require_march(module: ModuleOp) -> None:
    """MlirError at an operation of a folded module that the March form cannot say."""
    for op in _aie_operations(module):
        if op.is_modern:
            raise error_at(op, f"{op.name} has no form {_NAMES[Era.MARCH]} that says this")


def _aie_operations(module: ModuleOp) -> Iterator[AieOperation]:
    return (op for op in module.walk() if isinstance(op, AieOperation))


def _fold_one(op: AieOperation) -> None:
    before = list(op.operands)
    try:
        op.fold()
    except RuntimeNumber as error:
        raise error_at(op, f"{op.name}: {error}{_origin(error.value)}") from None
    except ValueError as error:
        raise error_at(op, f"{op.name}: {error}") from None
    for value in before:
        if isinstance(value.owner, ConstantOp) and value.owner.parent is not None and not any(True for _ in value.uses):
            if (found := source_of(value.owner)) is not None and (span := span_of(value.owner)) is not None:
                found[0].folded.append(span)
            value.owner.detach()  # it stood there for this number alone


def _origin(value: SSAValue) -> str:
    owner = value.owner
    origin = f"{owner.name} at {location(owner)}" if isinstance(owner, Operation) else "an argument"
    return f"; {origin} gives it, but it must be known here: write arith.constant N : i32"


def _mixed(first: dict[Era, AieOperation]) -> MlirError:
    *_, late = sorted(first.values(), key=lambda op: location(op)[1:])
    places = ", ".join(f"{op.name} at {location(op)} has the form {_NAMES[era]}" for era, op in sorted(first.items()))
    return error_at(
        late, f"the text mixes two forms of the dialect, which no release reads (only builds 1.3.5.devN do): {places}; "
        "write all of it in one form ('bdforge convert' turns a text of one form into the other)",
    )  # fmt: skip
