"""Which casts, comparisons and selections there are: every operation with every pair of types."""

import itertools

import pytest
from xdsl.dialects.builtin import Float32Type, IndexType, IntegerAttr, IntegerType, VectorType, bf16, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from bdforge.array.mlir.elementwise_ops import OPERATIONS

KINDS = {f"i{width}": IntegerType(width) for width in (1, 8, 16, 17, 32, 64)} | {
    "bf16": bf16, "f32": Float32Type(), "index": IndexType(),
}  # fmt: skip


def wider(source: str, target: str) -> bool:
    return source[0] == target[0] == "i" and "index" not in (source, target) and int(source[1:]) < int(target[1:])


def family(name: str) -> str:
    return "index" if name == "index" else "integer" if name[0] == "i" else "float"


def between(source: str, target: str):
    return lambda a, b: (family(a), family(b)) == (source, target)


CASTS = {
    "extsi": wider, "extui": wider, "trunci": lambda a, b: wider(b, a),
    **dict.fromkeys(("sitofp", "uitofp"), between("integer", "float")),
    **dict.fromkeys(("fptosi", "fptoui"), between("float", "integer")),
    **dict.fromkeys(("index_cast", "index_castui"), lambda a, b: {family(a), family(b)} == {"index", "integer"}),
}  # fmt: skip


BY_NAME = {op.name: op for op in OPERATIONS if issubclass(op, IRDLOperation)}


def refusal(name: str, result: Attribute, *operands: Attribute, **properties: Attribute) -> str | None:
    """Why an operation on these types is refused; None if it is not."""
    op = BY_NAME[f"arith.{name}"].build(
        operands=[create_ssa_value(kind) for kind in operands], result_types=[result], properties=properties
    )
    try:
        op.verify_()
    except VerifyException as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", CASTS)
def test_casts_join_the_types_that_they_are_for(name: str):
    for (a, source), (b, target) in itertools.product(KINDS.items(), repeat=2):
        told = refusal(name, target, source)
        assert (told is None) == CASTS[name](a, b), f"{name} from {a} to {b}: {told or 'accepted'}"


@pytest.mark.parametrize("name", CASTS)
def test_casts_keep_the_shape(name: str):
    a, b = next(pair for pair in itertools.product(KINDS, repeat=2) if CASTS[name](*pair))
    shapes = (None, (8,), (16,), (4, 4))
    for first, second in itertools.product(shapes, repeat=2):
        source, target = (
            kind if shape is None else VectorType(kind, shape)
            for kind, shape in ((KINDS[a], first), (KINDS[b], second))
        )
        told = refusal(name, target, source)
        assert (told is None) == (first == second), f"{name} from {source} to {target}: {told or 'accepted'}"


COMPARED = {"cmpi": ("integer", "index"), "cmpf": ("float",)}
LAST = {"cmpi": 9, "cmpf": 15}  # uge; true (arith's ArithBase.td)


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_take_equal_types_of_their_kind(name: str):
    for (a, left), (b, right) in itertools.product(KINDS.items(), repeat=2):
        told = refusal(name, i1, left, right, predicate=IntegerAttr(0, i64))
        fits = a == b and family(a) in COMPARED[name]
        assert (told is None) == fits, f"{name} of {a} and {b}: {told or 'accepted'}"


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_have_their_predicates_and_a_bit_for_each_lane(name: str):
    kind = IntegerType(8) if name == "cmpi" else bf16
    for predicate in (-1, 0, LAST[name], LAST[name] + 1):
        told = refusal(name, i1, kind, kind, predicate=IntegerAttr(predicate, i64))
        assert (told is None) == (0 <= predicate <= LAST[name]), f"{name} {predicate}: {told or 'accepted'}"
    vector = VectorType(kind, (16,))
    for result in (i1, VectorType(i1, (16,)), VectorType(i1, (8,)), VectorType(IntegerType(8), (16,))):
        told = refusal(name, result, vector, vector, predicate=IntegerAttr(0, i64))
        assert (told is None) == (result == VectorType(i1, (16,))), f"{name} to {result}: {told or 'accepted'}"


def test_selections_take_one_bit_or_one_for_each_lane():
    scalar, vector, wide = bf16, VectorType(bf16, (16,)), VectorType(bf16, (32,))
    lanes = VectorType(i1, (16,))
    fitting = {(i1, scalar), (i1, vector), (lanes, vector), (i1, wide)}
    for bit, kind in itertools.product((i1, IntegerType(8), lanes), (scalar, vector, wide)):
        told = refusal("select", kind, bit, kind, kind)
        assert (told is None) == ((bit, kind) in fitting), f"{kind} by {bit}: {told or 'accepted'}"
    for left, right in ((vector, wide), (wide, vector)):
        assert refusal("select", vector, i1, left, right) is not None, f"{vector} from {left} and {right}"


def test_every_cast_and_comparison_is_tried():
    assert {f"arith.{name}" for name in (*CASTS, *COMPARED, "select")} == set(BY_NAME)
