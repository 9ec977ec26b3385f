"""The errors that docs/papers.md prints: those of what is reproduced today."""

import pytest

from bdforge.common.files import read_csv
from bdforge.perf.reproduce import entries, entry_named
from tools.docs.papers import TABLE, errors_of, page

ROWS = [tuple(row.values()) for row in read_csv(TABLE)]


def test_every_entry_is_on_the_page_with_its_command():
    assert {row[0] for row in ROWS} == {entry.name for entry in entries() if entry.published}
    assert all(f"`bdforge reproduce {entry.name}`" in page() for entry in entries())


@pytest.mark.parametrize("name", ["taka-table2", "wang-bounds", "iron-gemm", "air-rope", "teir-table3", "casselc-int4"])
def test_an_entry_has_today_s_errors(name: str):
    assert errors_of(entry_named(name)) == [row for row in ROWS if row[0] == name]


@pytest.mark.slow
def test_all_entries_have_today_s_errors():
    assert [row for entry in entries() for row in errors_of(entry)] == ROWS
