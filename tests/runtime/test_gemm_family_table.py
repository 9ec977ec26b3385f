"""What the table of the GEMM family says works is tested, and its choices combine."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from bdforge.devices import DEVICES
from bdforge.operators.gemm import GemmProblem
from bdforge.operators.gemm.kernels import Kernel
from support.family import PRODUCTS, Member
from support.family_cells import row_key, small, untested
from support.family_runs import fault
from tools.docs.family import COLUMNS, rows_of_all, works

ROWS = rows_of_all()
each_row = pytest.mark.parametrize(("kernel", "c"), ROWS, ids=[row_key(*row) for row in ROWS])
LAYOUTS, BUFFERS = COLUMNS[1:5], COLUMNS[5:10]


@pytest.mark.slow
@each_row
def test_what_no_random_member_has_is_right(kernel, c):
    device = DEVICES[PRODUCTS[kernel.generation.name]]
    for seed, content in enumerate(untested(kernel, c)):
        tile = content["tile"]
        problem = GemmProblem(tile["m"] + 5, 2 * tile["k"] + 3, 2 * tile["n"] + 7)
        member = Member(content, device, problem)
        assert [fault(member, seed, booted) for booted in (False, True)] == ["", ""]


def combinations(kernel: Kernel, c: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Designs with any of the choices of layouts and buffers, and whether each of their choices works alone."""
    alone = {column.title: works(kernel, changed(kernel, c, [column])) for column in (*LAYOUTS, *BUFFERS)}
    for chosen in product((False, True), repeat=len(LAYOUTS) + len(BUFFERS)):
        columns = [column for column, taken in zip((*LAYOUTS, *BUFFERS), chosen, strict=True) if taken]
        if {"B row-major", "B column-major"} <= {column.title for column in columns}:
            continue
        yield changed(kernel, c, columns), all(alone[column.title] for column in columns)


def changed(kernel: Kernel, c: str, columns: list) -> dict[str, Any]:
    content = small(kernel, c)
    for column in columns:
        column.change(content)
    return content


@pytest.mark.daily(every=3)
@each_row
def test_some_choices_combine_as_they_work_alone(kernel, c):
    for content, expected in list(combinations(kernel, c))[-1::-61]:
        assert works(kernel, content) == expected, content


@pytest.mark.slow
@each_row
def test_all_choices_combine_as_they_work_alone(kernel, c):
    for content, expected in combinations(kernel, c):
        assert works(kernel, content) == expected, content
