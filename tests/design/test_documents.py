"""Descriptor documents: read and written they are the design, and what is wrong in one is told with its place."""

import json
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bd_patterns import Pattern
from bdforge.design import DesignError, render
from bdforge.design.document import DocumentError, Surrounding, design_of, document, program_of
from bdforge.design.document.meanings import meaning
from bdforge.design.document.pattern_text import pattern
from bdforge.design.document.repeats import Repeating, written
from bdforge.design.document.schema import json_schema
from bdforge.design.document.tables import Scope, Wrong, each, number, text
from bdforge.design.document.toml_places import places_of
from bdforge.design.sequences import Builder, Program, ProgramError, all_of, ceildiv, interpret, least
from bdforge.design.sequences.interpret import values_of
from bdforge.devices import DEVICES, TileKind
from bdforge.operators import Plan, design_for, load_spec, operator_of, plan
from support.examples import EXAMPLES, example
from support.family import GROUPS, SEED, SIZE, group
from support.source_tree import ROOT

NAMED = sorted((ROOT / "designs").glob("*.toml"))
DAILY = {"gemm_i8_i2_bitnet": 250, "gemm_i8_i8_i32_one_core": 200, "gemv_i8_i2": 250, "add_i8": 200}
"""Lines that these documents may have; any named design 400. With the sequence of any size twice as many."""
SAMPLE = [pytest.param(path, marks=[] if path.stem in DAILY else [pytest.mark.slow], id=path.stem) for path in NAMED]
DOCUMENTS = EXAMPLES / "documents"


def planned(path: Path) -> Plan:
    spec = load_spec(path)
    device = next(device for device in DEVICES.values() if operator_of(spec).fits(spec, device))
    return plan(spec, device)


@pytest.mark.parametrize("path", SAMPLE)
def test_a_document_is_its_design_to_the_byte(path: Path):
    found = planned(path)
    design = replace(found.whole, program=None, sequences=design_for(found, found.problems[:1]).sequences)
    content = document(design)
    again = design_of(content, path.name)
    assert render(again) == render(design)
    assert document(again) == content
    assert len(content.splitlines()) <= DAILY.get(path.stem, 400)


@pytest.mark.parametrize("path", SAMPLE)
def test_a_document_with_the_sequence_of_any_size_is_its_program(path: Path):
    design = planned(path).whole
    content = document(design)
    again = design_of(content, path.name)
    assert document(again) == content
    assert len(content.splitlines()) <= 2 * DAILY.get(path.stem, 400)
    assert design.program is not None
    assert again.program is not None
    for sizes in ((1, 37, 999), (8, 4096, 2560), (700, 768, 3000)):
        given = dict.fromkeys(design.program.parameters, 0) | dict(zip(again.program.sizes, sizes, strict=False))
        assert streamed(again.program, given) == streamed(design.program, given)


@pytest.mark.parametrize("path", SAMPLE)
def test_a_printed_document_is_rendered_as_its_spec(path: Path, tmp_path: Path):
    """To the byte but for comments, for sizes that are asked for."""
    found, copy = planned(path), tmp_path / "copy.toml"
    copy.write_text(document(found.whole))
    spec = load_spec(copy)
    sizes = [256, 2560, 2560] if len(found.program.sizes) == 3 else [100_000]
    if found.spec.kind == "gemv":
        sizes[0] = 1
    problem = operator_of(spec).problem(sizes)
    assert problem == operator_of(found.spec).problem(sizes)
    texts = (render(design_for(one, [problem])) for one in (found, plan(spec, found.device)))
    first, second = ([line for line in text.splitlines() if not line.strip().startswith("//")] for text in texts)
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("index", range(GROUPS))
def test_members_of_the_family_are_their_documents(index: int):
    for member in group(index, SIZE, SEED):
        whole, sequences = member.plan.whole, design_for(member.plan, [member.problem]).sequences
        again = design_of(document(whole), "member")
        assert again.program is not None
        sizes = dict.fromkeys(member.plan.program.parameters, 0) | dict(member.problem.sizes)
        assert streamed(again.program, sizes) == streamed(member.plan.program, sizes)
        placed_runs = replace(whole, program=None, sequences=sequences)
        assert render(design_of(document(placed_runs), "member")) == render(placed_runs)


def streamed(program: Program, sizes: dict[str, int]) -> list[object]:
    """The events of a run, operands with their values, or why there is none."""
    limits = DEVICES["strix_halo"].generation.limits(TileKind.SHIM)
    try:
        events = list(interpret(program, sizes, limits))
    except ProgramError as error:
        return [str(error)]
    values = values_of(program, sizes)
    dims = [[values[p] for p in (d.count, d.step, d.stride)] for operand in program.operands for d in operand.dims]
    return [*events, dims, [values[argument.elements] for argument in program.arguments]]


def test_a_design_of_other_peoples_is_its_document():
    stencil = example("stencil/stencil.py")
    design = stencil.smoothing(stencil.stencil(32, 4), 9, 2)
    assert render(design_of(document(design), "stencil")) == render(design)


KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def allowed(found: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Whether a JSON Schema of the words that ours uses allows a value."""
    if "$ref" in schema:
        return allowed(found, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return any(allowed(found, one, definitions) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(found, KINDS[kind]) for kind in kinds):
        return False
    if found not in schema.get("enum", [found]):
        return False
    if isinstance(found, list):
        return all(allowed(one, schema.get("items", {}), definitions) for one in found)
    if not isinstance(found, dict):
        return True
    known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
    if not set(schema.get("required", ())) <= found.keys() or (other is False and not found.keys() <= known.keys()):
        return False
    return all(allowed(one, known.get(key, other or {}), definitions) for key, one in found.items())


@pytest.mark.parametrize("name", ["add_one", "transpose", "gemm_i8", "gemm_i8_i2_bitnet", "add_i8"])
def test_the_schema_allows_documents_and_no_other_keys(name: str):
    schema = json.loads(json_schema())
    path = DOCUMENTS / f"{name}.toml"
    content = path.read_text() if path.exists() else document(planned(ROOT / "designs" / f"{name}.toml").whole)
    tables = tomllib.loads(content)
    assert allowed(tables, schema, schema["$defs"])
    for key in ("kind", "tile"):
        assert not allowed({other: tables[other] for other in tables.keys() - {key}}, schema, schema["$defs"])
    assert not allowed(tables | {"tiles": []}, schema, schema["$defs"])
    assert not allowed(tables | {"tile": [tables["tile"][0] | {"place": [0, 1]}]}, schema, schema["$defs"])
    assert not allowed(tables | {"sequence": tables["sequence"] | {"body": [{"lop": 1}]}}, schema, schema["$defs"])


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


SMALL = """kind = "design"
name = "small"
device = "npu2_1col"
let = { two = 2 }
tile = [
  { name = "mem", at = [0, 1], holds = [{ ring = "r", elements = 8, type = "i32" }], channels = [
    { dma = "S2MM 0", bds = [{ fill = "r" }] },
  ] },
]
[[flow]]
from = "mem DMA 0"
to = "mem DMA 0"
"""
WRONG = {
    'ring = "r"': ('rong = "r"', "{ rong", "begins with none of"),
    "elements = 8": ("elements = 8.5", "elements", "elements: should be an integer"),
    'type = "i32"': ("type = 32", "type = 32", "type: "),
    'fill = "r"': ('fill = "q"', "{ fill", "no ring q; there is r"),
    '"S2MM 0"': ('"S2M 0"', "dma", "'S2M 0' is no channel"),
    'from = "mem DMA 0"': ('from = "mem DMA"', "from", "'mem DMA' is no port"),
    'to = "mem DMA 0"': ('too = "mem DMA 0"', "too", "too: unexpected key"),
    'kind = "design"': ('kind = "design"\nfor = ["i in 2"]', "for", "for: unexpected key"),
    "two = 2": ('two = "3 / 2"', "kind", "leaves 1 over"),
    "at = [0, 1]": ('at = [0, "one"]', "at = [", "one is no number here; there is two"),
    '"npu2_1col"': ('"npu9"', "kind", "npu9"),
}
"""A wrong text for a right one, where the table or key begins that a message names, what it says."""


SILENT = {
    'fill = "r"': 'move = "r_ping", release = { lock = "r_full", equal = 2 }, acquire = "r_free"',
    "bds = [{ fill": "bds = [{ packet_type = 1, fill",
    'fill = "r" ': 'move = "r_ping", acquire = { lock = "r_free", count = 2, equal = 2 }, release = "r_full"',
}
"""What would have no effect."""


@pytest.mark.parametrize("right", SILENT)
def test_what_would_have_no_effect_is_refused(right: str):
    with pytest.raises(DocumentError):
        design_of(SMALL.replace(right, SILENT[right], 1), "small.toml")


@pytest.mark.parametrize("beside", ['argument = "a"', "offset = 4", "id = 1"])
def test_a_task_of_a_chain_says_nothing_of_one_bd(beside: str):
    task = '{ task = "t", on = "x", BESIDE bds = [{ argument = "a", id = 0 }] }'
    arguments = '[{ name = "a", elements = 4, type = "i32" }]'
    text = f'{SMALL}[[runtime_sequence]]\nname = "s"\narguments = {arguments}\nevents = [{{ tasks = [{task}] }}]\n'
    design_of(text.replace("BESIDE", ""), "small.toml")
    with pytest.raises(DocumentError, match="beside bds"):
        design_of(text.replace("BESIDE", f"{beside},"), "small.toml")


@pytest.mark.parametrize("right", WRONG)
def test_faults_name_line_and_column(right: str):
    wrong, where, reason = WRONG[right]
    content = SMALL.replace(right, wrong, 1)
    with pytest.raises(DocumentError) as caught:
        design_of(content, "small.toml")
    line, column = content.count("\n", 0, at := content.index(where)) + 1, at - content.rfind("\n", 0, at)
    assert f"small.toml:{line}:{column}: " in str(caught.value)
    assert reason in str(caught.value)


def test_every_fault_is_told_at_once():
    with pytest.raises(DocumentError) as caught:
        design_of(SMALL.replace('fill = "r"', 'fill = "q"').replace("mem DMA 0", "mem"), "small.toml")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["7", "11", "12"]


@pytest.mark.parametrize(
    "ranges",
    ['i = "0..100000"', 'i = "0..9223372036854775807"', 'i = "0..400", j = "0..400"', 'i = "4"', '"a b" = "0..1"'],
)
def test_loops_are_bounded(ranges: str):
    with pytest.raises(DocumentError):
        design_of(SMALL.replace('{ fill = "r" }', f'{{ for = {{ {ranges} }}, fill = "r" }}'), "small.toml")


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


@given(st.lists(PLAIN, max_size=12), st.integers(1, 4), st.integers(0, 3), st.integers(0, 9))
def test_what_is_folded_stands_for_the_same(items: list[dict[str, str]], times: int, step: int, start: int):
    many = [{"name": f"{item['name']}x{start + step * turn}"} for turn in range(times) for item in items]
    assert expanded(written(Repeating(many)), {}) == [item["name"] for item in many]


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


COPY = """sequence.sizes = ["n"]
sequence.let = ["piece = 1024", "pieces = ceildiv(n, piece)"]
sequence.arguments = [{ name = "X", type = "i32", elements = "n" }, { name = "Y", type = "i32", elements = "n" }]
sequence.requires = [{ that = "n >= 1 and n < 999999", otherwise = "n = {n} is outside 1 to 999998" }]
sequence.body = [
  { loop = "pieces", index = "i", body = [
    "size = min(piece, n - piece * i)",
    { step = "piece {i} of {pieces}", awaits = [{ token = "S2MM 0" }], body = [
      { task = "from_host", bds = [{ argument = "X", offset = "piece * i", dims = [["size", 1]] }] },
      { task = "S2MM 0", column = 0, token = true, bds = [
        { argument = "Y", offset = "piece * i", dims = [["size", 1]] },
      ] },
      { if = "i == 0", body = [{ for = { c = "0..2" }, lock = "go_{c}", value = "n // 2 + c" }] },
    ] },
  ] },
]
[[operand]]
name = "X"
argument = "X"
direction = "in"
type = "int32"
axes = [{ size = "n" }]
dims = [{ axis = 0, count = "n" }]
"""
BESIDE = Surrounding({"from_host": ("MM2S", 0, 0)}, {}, {"go_0": 64, "go_1": 128})


def copying(text: str) -> Program:
    return program_of(tomllib.loads(text), text, "copy.toml", around=lambda: BESIDE)


def test_a_sequence_of_any_size_is_the_program_that_python_writes():
    build = Builder(["n"], in_flight=4)
    n = build.parameter("n")
    x, y = build.argument("X", "i32", 32, n), build.argument("Y", "i32", 32, n)
    build.operand("X", x, "in", "int32", 32, [(n, n, None, False)], [(0, n, 1, 1)])
    build.require(all_of(n >= 1, n < 999999), "n = {} is outside 1 to 999998", n)
    pieces = ceildiv(n, 1024)
    with build.loop(pieces) as i, build.step([("S2MM", 0, 0, 1)], "piece {} of {}", (i, pieces)):
        size = least(1024, n - 1024 * i)
        build.task("MM2S", 0, 0, build.bd(x, 1024 * i, (size,), (1,)))
        build.task("S2MM", 0, 0, build.bd(y, 1024 * i, (size,), (1,)), token=True)
        with build.when(i.equals(0)):
            build.write(64, n // 2)
            build.write(128, n // 2 + 1)
    sizes, limits = {"n": 5000}, DEVICES["strix_halo"].generation.limits(TileKind.SHIM)
    assert list(interpret(copying(COPY), sizes, limits)) == list(interpret(build.program, sizes, limits))
    with pytest.raises(ProgramError, match="n = 0 is outside 1 to 999998"):
        list(interpret(copying(COPY), {"n": 0}, limits))


HELD = """kind = "design"
name = "held"
device = "npu2_1col"
tile = [
  { name = "shim", at = [0, 0] },
  { name = "mem", at = [0, 1], holds = [
    { ring = "r", elements = 8, type = "i32" },
    { buffer = "b", elements = 8, type = "i32" },
    { lock = "l" },
  ], channels = [
    { dma = "S2MM 0", bds = [{ fill = "r" }, { fill = "r" }] },
    { dma = "MM2S 0", bds = [
      { send = "r" },
      { move = "b", dims = [[8, 1]] },
    ] },
  ] },
  { name = "core", at = [0, 2], core = "p", holds = [{ buffer = "x", elements = 8, type = "i32" }] },
]
flow = [
  { for = { i = "0..2" }, from = "shim DMA {i}", to = "mem DMA {i}" },
  { from = "mem DMA 0", to = "shim DMA 1" },
]
allocations = [
  { name = "into", channel = "shim MM2S 0" },
]
[program.p]
body = [
  { loop = 3, body = [
    { call = "work", with = ["x"] },
    { load = "n", from = "x" },
  ] },
]
"""
UNHELD = {
    "[[8, 1]]": (
        "[[9, 1]]",
        "{ move",
        "memtile (0, 1), MM2S 0, BD 2: last index 8 is outside",
    ),
    'fill = "r" }, {': (
        'fill = "r", acquire = 64 }, {',
        "{ fill",
        "memtile (0, 1), S2MM 0, BD 0: it takes",
    ),
    '"MM2S 0"': ('"MM2S 6"', '{ dma = "MM2S', "memtile (0, 1), MM2S 6: there is no such channel"),
    '"b", elements = 8': ('"b", address = 2, elements = 8', "{ buffer", "memtile (0, 1): mem_b: 0x2 is not at a word"),
    '"r", elements = 8': (
        '"r", addresses = [2, 64], elements = 8',
        "{ ring",
        "mem_r_ping: 0x2 is not at a word",
    ),
    'lock = "l"': ('lock = "l", init = 64', "{ lock", "memtile (0, 1): a first lock value = 64 is outside"),
    'name = "core", at = [0, 2]': ('name = "core", at = [0, 0]', '{ name = "core"', "2 tiles stand at (0, 0)"),
    "mem DMA {i}": ("mem DMA {i + 5}", "{ for", "mem's DMA : 6 does not receive: a memtile has 6 of DMA"),
    "shim DMA 1": ("shim DMA 7", '{ from = "mem', "shim's DMA : 7 does not receive"),
    "shim MM2S 0": ("shim MM2S 2", '{ name = "into"', "shim's DMA : 2 does not send: a shim has 2 of DMA"),
    '"into"': ('"in to"', '{ name = "in to"', "'in to' is no name in MLIR"),
    'from = "x"': ('from = "x", index = 8', "{ load", "core (0, 2): element 8 of core_x, which has 8"),
    '"x"] }': ('"x", "%m"] }', "[program.p]", "core (0, 2): m is no name here"),
}
"""Of what no array holds: a wrong text for a right one, where that is told, what is told."""


@pytest.mark.parametrize("right", UNHELD)
def test_what_no_array_holds_is_told_with_its_place(right: str):
    render(design_of(HELD, "held.toml"))
    wrong, where, reason = UNHELD[right]
    content = HELD.replace(right, wrong, 1)
    with pytest.raises(DesignError) as caught:
        render(design_of(content, "held.toml"))
    line = content.count("\n", 0, content.index(where)) + 1
    told = [one for one in str(caught.value).splitlines() if reason in one]
    assert [one.split(": ", 1)[0].rsplit(":", 1)[0] for one in told] == [f"held.toml:{line}"], str(caught.value)


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


def test_a_bd_walks_a_pattern_from_its_offset_on_and_prints_its_numbers():
    by_name = SMALL.replace("let =", 'patterns = { turned = "shape(two, 3).permuted(1, 0)" }\nlet =')
    by_name = by_name.replace('fill = "r"', 'fill = "r", offset = 1, pattern = "turned"')
    design = design_of(by_name, "small.toml")
    assert design.tiles[0].channels[0].bds[0].pattern == Pattern((3, 2), (1, 3), 1)
    assert "offset = 1, dims = [[3, 1], [2, 3]]" in document(design)
    with pytest.raises(DocumentError, match=r"small\.toml:\d+:\d+: dims beside pattern"):
        design_of(by_name.replace("offset = 1", "dims = [[8, 1]]"), "small.toml")


def parameters(write: str = '{ rtp = "core_rtp.tiles", value = "n" }', **texts: str) -> str:
    """A document with words that have names, which a core loads and two sequences write."""
    words, load = texts.get("words", '["steps", "tiles"]'), texts.get("load", 'from = "rtp.tiles"')
    return f"""kind = "design"
name = "told"
device = "npu2_1col"
tile = [{{ name = "core", at = [0, 2], core = "p", holds = [
  {{ buffer = "rtp", elements = 16, type = "i32", words = {words} }},
] }}]
program.p.body = [{{ load = "tiles", {load} }}]
[[runtime_sequence]]
name = "once"
arguments = []
events = [{{ writes = [{texts.get("once", write.replace('"n"', "3"))}] }}]
[sequence]
sizes = ["n"]
body = [{write}]
"""


def test_words_are_written_and_loaded_by_their_names():
    named = design_of(parameters(), "d.toml")
    by_index = parameters('{ rtp = "core_rtp", slot = 1, value = "n" }', load='from = "rtp", index = 1')
    same = design_of(by_index, "d.toml")
    assert render(named) == render(same)
    assert "rtp_write(@core_rtp, 1, 3)" in render(named)
    assert (named.program, document(named)) == (same.program, document(same))
    assert document(named).count('rtp.tiles"') == 3
    assert "core_rtp" not in document(design_of(by_index.replace('"tiles"]', "]"), "d.toml")).replace(
        'core_rtp", slot', ""
    )


@pytest.mark.parametrize(
    ("texts", "line", "reason"),
    [
        ({"words": '["a", "a"]'}, 5, "words: a, a are no names of different words of 16 x i32"),
        ({"words": '["a b"]'}, 5, "'a b' is no name"),
        ({"load": 'from = "rtp.steep"'}, 7, "from: rtp has no word steep; there is steps, tiles"),
        ({"load": 'from = "rtp.tiles", index = 1'}, 7, "1 beside the name of a word; leave it"),
        ({"once": '{ rtp = "core_rtp.t", value = 3 }'}, 11, "core_rtp has no word t; there is steps, tiles"),
        ({"write": '{ rtp = "core_rtp.t", value = "n" }'}, 14, "core_rtp has no word t; there is steps, tiles"),
        ({"write": '{ rtp = "core_rtp.tiles", slot = 1, value = "n" }'}, 14, "slot beside the name of a word"),
    ],
)
def test_what_is_wrong_with_words_is_told(texts: dict[str, str], line: int, reason: str):
    with pytest.raises(DocumentError) as caught:
        design_of(parameters(**({"once": ""} | texts)), "d.toml")
    (told,) = (one for one in str(caught.value).splitlines() if reason in one)
    assert told.startswith(f"d.toml:{line}:")


WRONG_SEQUENCES = {
    "size = min(": ("size = least(", '"size = least', "is no integer expression"),
    '"size = min(piece, n - piece * i)"': ('"size = 2", "i = 1"', '"i = 1"', "i stands for a value already"),
    "from_host": ("from_there", "{ task", "there is no channel from_there"),
    '"S2MM 0", column = 0': ('"S2MM 0"', '{ task = "S2MM 0"', "column: missing"),
    'argument = "Y", offset': ('argument = "Z", offset', '{ task = "S2MM 0"', "there is no Z; there is X, Y"),
    '["size", 1]': ('["size"]', '["size"]', "should be a list of 2 numbers"),
    'lock = "go_{c}"': ('lock = "og_{c}"', "{ for", "no tile has a lock og_0"),
    'type = "int32"': ('type = "int33"', "[[operand]]", "unknown element type int33"),
    'name = "X", type = "i32", ': ('name = "X", ', '{ name = "X"', "type: missing"),
    "if = ": ("when = ", "{ when", "begins with none of"),
    'sequence.sizes = ["n"]': (
        'sequence.sizes = ["n"]\nsequence.for = { i = "0..2" }',
        "sequence.for",
        "unexpected key",
    ),
    "{ size = ": ("{ sizes = ", 'sizes = "n" }', "unexpected key"),
}


@pytest.mark.parametrize("right", WRONG_SEQUENCES)
def test_faults_of_sequences_name_line_and_column(right: str):
    wrong, where, reason = WRONG_SEQUENCES[right]
    text = COPY.replace(right, wrong, 1)
    with pytest.raises(DocumentError) as caught:
        copying(text)
    line, column = text.count("\n", 0, at := text.index(where)) + 1, at - text.rfind("\n", 0, at)
    assert f"copy.toml:{line}:{column}: " in str(caught.value)
    assert reason in str(caught.value)
