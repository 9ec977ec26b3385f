"""The documented features are those of the tests."""

from support.feature_table import TABLE, table


def test_the_feature_table_is_current():
    assert TABLE.read_text(encoding="utf-8") == table(), "run python tests/support/feature_table.py"
