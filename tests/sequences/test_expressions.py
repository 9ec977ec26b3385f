"""What expressions of sequence programs mean, and what is computed at once."""

from typing import Any

import pytest

from bdforge.design.sequences import (
    Builder,
    Expr,
    ProgramError,
    all_of,
    any_of,
    ceildiv,
    divisor,
    evaluate,
    largest,
    least,
    select,
)
from bdforge.design.sequences.expressions import OPERATIONS, ExpressionError, apply, expression, operate

N = Expr("parameter", ("n",))

MEANINGS = [
    ("add", (3, -5), -2),
    ("sub", (3, 5), -2),
    ("mul", (-3, 5), -15),
    ("floordiv", (7, 2), 3),
    ("floordiv", (-7, 2), -4),
    ("ceildiv", (7, 2), 4),
    ("ceildiv", (-7, 2), -3),
    ("ceildiv", (8, 2), 4),
    ("mod", (7, 4), 3),
    ("mod", (-7, 4), 1),
    ("min", (3, -5), -5),
    ("min", (-5, 3), -5),
    ("max", (3, -5), 3),
    ("max", (-5, 3), 3),
    ("lt", (3, 3), 0),
    ("lt", (2, 3), 1),
    ("lt", (4, 3), 0),
    ("le", (2, 3), 1),
    ("le", (3, 3), 1),
    ("le", (4, 3), 0),
    ("eq", (3, 3), 1),
    ("eq", (3, 4), 0),
    ("eq", (4, 3), 0),
    ("select", (1, 10, 20), 10),
    ("select", (0, 10, 20), 20),
    ("select", (-1, 10, 20), 10),
    ("divisor", (2062, 1023), 2),  # 2 x 1031
    ("divisor", (4096, 1023), 512),
    ("divisor", (12, 12), 12),
    ("divisor", (12, 11), 6),
    ("divisor", (7, 6), 1),
    ("divisor", (1, 5), 1),
    ("divisor", (-6, 3), 0),
    ("divisor", (6, -1), 0),
    ("divisor", (12, 0), 0),
    ("divisor", (0, 5), 0),
]


@pytest.mark.parametrize(("operation", "operands", "value"), MEANINGS)
def test_operations_mean(operation, operands, value):
    assert apply(operation, *operands) == value


def test_every_operation_is_in_the_table_of_meanings():
    assert {operation for operation, _, _ in MEANINGS} == set(OPERATIONS)


@pytest.mark.parametrize("operation", ["floordiv", "ceildiv", "mod"])
@pytest.mark.parametrize("by", [0, -1])
def test_divisors_are_positive(operation, by):
    with pytest.raises(ExpressionError, match=f"a divisor is {by}; it must be at least 1"):
        apply(operation, 5, by)


def test_values_are_of_64_bits():
    assert apply("sub", -(1 << 62), 1 << 62) == -(1 << 63)
    assert apply("add", (1 << 63) - 2, 1) == (1 << 63) - 1
    with pytest.raises(ExpressionError, match="add of 9223372036854775807, 1 needs more than 64 bits"):
        apply("add", (1 << 63) - 1, 1)
    with pytest.raises(ExpressionError, match="needs more than 64 bits"):
        apply("sub", -(1 << 63), 1)


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (N + 0, N),
        (0 + N, N),
        (N - 0, N),
        (N * 1, N),
        (1 * N, N),
        (N // 1, N),
        (ceildiv(N, 1), N),
        (N * 0, expression(0)),
        (0 * N, expression(0)),
        (N % 1, expression(0)),
        (select(1, N, 3), N),
        (select(0, N, 3), expression(3)),
        (select(-1, N, 3), N),
        (select(2, N, 3), N),
        (select(N, 7, 7), expression(7)),
        (ceildiv(expression(9), 4) * 2, expression(6)),
        (least(expression(4), 9, 3), expression(3)),
        (largest(expression(4), 9, 3), expression(9)),
        (all_of(1, N), N),
        (divisor(expression(30), 7), expression(6)),
        (~expression(1), expression(0)),
    ],
)
def test_what_is_known_is_computed_at_once(found, same):
    assert found == same


def outcome(compute, *given):
    try:
        return compute(*given)
    except ExpressionError as error:
        return str(error)


@pytest.mark.parametrize("known", [-1, 0, 1, 2])
@pytest.mark.parametrize("operation", [name for name, (count, _) in OPERATIONS.items() if count == 2])
def test_what_is_known_of_one_side_changes_no_value(operation, known):
    """Computed at once or later, on the left or on the right: the same number, and division by 0 stays refused."""
    for n in range(-3, 4):
        found = [
            outcome(lambda sides, n=n: evaluate(operate(operation, *sides), {"n": n}), sides)
            for sides in ((N, known), (known, N))
        ]
        wanted = [outcome(apply, operation, *sides) for sides in ((n, known), (known, n))]
        assert found == wanted, f"{operation} of n = {n} and {known}, and the other way round"


def test_equal_expressions_are_one_and_others_are_not():
    assert hash(N * 4 + 1) == hash(N * 4 + 1)
    assert N * 4 + 1 == N * 4 + 1
    assert N + 1 != N + 2


def test_an_expression_has_no_truth():
    with pytest.raises(TypeError, match="no truth before it is run"):
        bool(N < 3)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (7, 7), (N, 5), (2 * N + 1, 11), (9 - N, 4), (N.equals(5), 1), (~N.equals(5), 0), (N > 4, 1), (N > 5, 0),
        (N >= 5, 1), (N >= 6, 0), (N <= 5, 1), (N <= 4, 0), (N < 6, 1), (N < 5, 0), (N.equals(6), 0), (N - 2, 3),
        (3 + N, 8), (least(N), 5), (largest(N), 5), (least(N, 6, 4), 4), (largest(N, 6, 4), 6), (all_of(), 1),
        (any_of(), 0), (select(N - 5, 1, 2), 2), (select(N - 4, 1, 2), 1),
        (all_of(N > 4, N < 6), 1), (all_of(N > 4, N < 5), 0), (any_of(N > 5, N < 6), 1), (any_of(N > 4, N < 6), 1),
        (any_of(N > 5, N < 5), 0), (ceildiv(N, 2), 3), (N // 2, 2), (N % 3, 2), (divisor(N * 2, 9), 5),
    ],
)  # fmt: skip
def test_an_expression_without_counters_has_a_value(value, found):
    assert evaluate(value, {"n": 5, "m": 8}) == found


@pytest.mark.parametrize("value", [1.5, "2", None])
def test_what_is_no_integer_is_no_expression(value: Any):
    with pytest.raises(ProgramError, match="is no integer"):
        operate("mul", N, value)


def test_expressions_that_are_compared_as_objects_require_nothing():
    with pytest.raises(ProgramError, match=r"compared by .equals\(\)"):
        Builder(("n",)).require(N % 4 == 0, "n = {} is no multiple of 4", N)
