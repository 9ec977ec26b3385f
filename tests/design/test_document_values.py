"""What stands in documents: expressions, patterns, loops that repeat a table, places, comments."""

import tomllib
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bd_patterns import Pattern
from bdforge.design.document.document_values import Scope, Wrong, number, text
from bdforge.design.document.meanings import meaning
from bdforge.design.document.pattern_text import pattern
from bdforge.design.document.repeats import Repeating, written
from bdforge.design.document.tables import Key, Table, each
from bdforge.design.document.toml_places import places_of

MEANINGS = {
    "12 in a row": Pattern((12,), (1,)),
    "4 rows of 6, 24 apart": Pattern((4, 6), (24, 1)),
    "6 columns of 4, from rows 24 apart": Pattern((6, 4), (1, 24)),
    "64 x 128 as tiles of 8 x 4, row by row; rows are 256 apart": Pattern.of_shape((64, 256))
    .sliced(1, 0, 128)
    .tiled(8, 4),
    "96 x 32 as tiles of 6 x 8, or tiles of 4 x 8 as 64 x 48": Pattern((16, 4, 6, 8), (192, 8, 32, 1)),
    "24 x 16 as tiles of 8 x 4, column by column; rows are 16 apart": Pattern((4, 3, 8, 4), (4, 128, 16, 1)),
    "10 slabs of 64 x 256, side by side in rows 2560 apart": Pattern((10, 64, 256), (256, 2560, 1)),
    "5 times 40960 in a row, 327680 apart": Pattern((5, 16, 2560), (327680, 2560, 1)),
    "": Pattern((2, 3, 4), (7, 5, 3)),
}


@pytest.mark.parametrize("told", MEANINGS)
def test_a_comment_tells_what_dims_mean(told: str):
    assert meaning(MEANINGS[told]) == told


EXPRESSIONS = {
    "2 * i + 1": 7, "-i": -3, "ceildiv(i, 2)": 2, "i // 2": 1, "i % 2": 1, "(i + 3) / 2": 3, "min(i, 2)": 2,
    "max(i, 2) * 10": 30, "0x10": 16,
}  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_pythons_of_integers(expression: str):
    assert number(expression, Scope({"i": 3})) == EXPRESSIONS[expression]


@pytest.mark.parametrize("expression", [
    "", "i +", "i / 2", "i // 0", "1.5", "True", "open('x')", "i ** 99", "i << 70", "'a'", "min(i)", "2 * " * 120 + "1",
    "(" * 90 + "1" + ")" * 90 + "(", "9223372036854775807 + 1", "i.real", "[i][0]", "min(i, *[1])",
])  # fmt: skip
def test_nothing_else_is_an_expression(expression: str):
    with pytest.raises(Wrong):
        number(expression, Scope({"i": 3}))


PLAIN = st.fixed_dictionaries({"name": st.from_regex(r"[a-z_{}]{0,3}[0-9]{0,3}", fullmatch=True)})


def expanded(items: list[Any], names: dict[str, int]) -> list[str]:
    """What a list of tables stands for, by nested loops of Python."""
    found = []
    for item in items:
        spans = [range(*(int(end) for end in span.split(".."))) for span in item.get("for", {}).values()]
        for values in product(*spans):
            inner = names | dict(zip(item.get("for", {}), values, strict=True))
            found += expanded(item["do"], inner) if "do" in item else [text(item["name"], Scope(inner))]
    return found


@settings(deadline=None, derandomize=True, max_examples=15)
@given(st.lists(PLAIN, max_size=12), st.integers(1, 4), st.integers(0, 3), st.integers(0, 9))
def test_what_is_folded_stands_for_the_same(items: list[dict[str, str]], times: int, step: int, start: int):
    many = [{"name": f"{item['name']}x{start + step * turn}"} for turn in range(times) for item in items]
    assert expanded(written(Repeating(many)), {}) == [item["name"] for item in many]


def test_a_number_is_left_out_where_its_own_table_means_it():
    one, two = (Table("", {"ring": Key(text), "slots": Key(number, meant)}) for meant in (1, 2))
    assert written([one.filled(ring="a", slots=1), two.filled(ring="b", slots=1)]) == [
        {"ring": "a"}, {"ring": "b", "slots": 1},
    ]  # fmt: skip
    growing = [two.filled(ring="a", slots=slots) for slots in (2, 3, 4)]
    assert written(Repeating(growing)) == [{"for": {"i": "2..5"}, "ring": "a", "slots": "i"}]


def test_loops_count_once_for_all_tables():
    names, scope = [{"for": {"i": "0..300"}, "name": "a{i}"}], Scope()
    with pytest.raises(Wrong, match="turns"):
        [list(each(names, scope)) or scope.faults.turn(0) for _ in range(300)]


TABLES = '''# comment
a = 1
"b c".d = { e = [1, "]", { f = '#' }], g = """x
]""" } # }
[t.u]
v = [
  [1, 2], # [
  "\\"",
]
[[w]]
x = 2026-11-03T07:32:00
[[w]]
[w.y]
z = [{ q = 1 }, { q = 2 }]
'''


def test_places_are_where_values_stand():
    found = places_of(TABLES)
    lines = TABLES.splitlines()
    starts = {path: lines[line - 1][column - 1 :] for path, (line, column) in found.items()}
    content = tomllib.loads(TABLES)
    for path, start in starts.items():
        value: Any = content
        for part in path:
            value = value[part]
        assert start.startswith(("[", str(path[-1]), f'"{path[-1]}"', repr(value), "{", '"')) or path[-1] == "d", path
    assert found["b c", "d", "e", 2, "f"] == (3, lines[2].index("f =") + 1)
    assert found["t", "u", "v", 0, 1] == (7, lines[6].index("2") + 1)
    assert found["w", 1, "y", "z", 1, "q"] == (14, lines[13].index("q = 2") + 1)


PATTERNS = {
    "shape(4, 6)": Pattern((4, 6), (6, 1)),
    "rows.tiled(two, 3)": Pattern((2, 2, 2, 3), (12, 3, 6, 1)),
    "turned.shifted(i * 2)": Pattern((6, 4), (1, 6), 6),
    "rows.sliced(1, i, i + 3).repeated(2)": Pattern((2, 4, 3), (0, 6, 1), 3),
    "shape(12 / 2).split(0, 3).coalesced()": Pattern((6,), (1,)),
    "turned.then(turned)": Pattern((24,), (1,)),
}
NO_PATTERNS = {
    "shape(4, 5).tiled(3, 5)": "size 4 of dimension 0 is no multiple of the inner size 3",
    "last": "there is no pattern lost before this; there is rows, turned",
    "rows.split(1)": "split takes 2 numbers, got 1",
    "rows.order()": "rows.order() is no pattern; there is shape, then, tiled",
    "rows.tiled(two, other)": "other is no number here",
    "rows +": "is no pattern; write such as shape",
    "shape(2048, 1024).then(shape(2048, 1024))": "then joins patterns of at most 1048576 elements",
}


def composed(text: str) -> Pattern:
    texts = {"rows": "shape(4, 6)", "turned": "rows.permuted(1, 0)", "last": "lost.tiled(1, 1)", "lost": "shape(1, 1)"}
    return pattern(text, Scope({"i": 3, "two": 2}, patterns=texts))


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_are_composed_as_python_composes_them(text: str):
    found, wanted = composed(text), PATTERNS[text]
    assert found.order().tolist() == wanted.order().tolist()
    assert found == wanted or "then" in text


@pytest.mark.parametrize("text", NO_PATTERNS)
def test_what_is_no_pattern_is_told(text: str):
    with pytest.raises(Wrong) as caught:
        composed(text)
    assert NO_PATTERNS[text] in str(caught.value)
