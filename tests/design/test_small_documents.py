"""Small documents: what they say is the design, and what is wrong in one is told with its place."""

import tomllib

import pytest

from bd_patterns import Pattern
from bdforge.design import DesignError, render
from bdforge.design.document import DocumentError, Surrounding, design_of, document, program_of
from bdforge.design.sequences import Builder, Program, ProgramError, all_of, ceildiv, interpret, least
from bdforge.devices import DEVICES, TileKind

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
    'name = "small"': ('name = "small"\nproblems = [{ n = true }]', "problems", "should give numbers, got True"),
    'kind = "design"': ('kind = "design"\nfor = ["i in 2"]', "for", "for: unexpected key"),
    "two = 2 }": ("two = 2 }\noperands = 1", "operands", "operands: unexpected key; did you mean operand?"),
    '{ fill = "r" }': ('{ for = { i = "2..0" }, fill = "r" }', "{ for", "for: i = '2..0' is empty"),
    "tile = [": (
        'tile = [\n  { name = "mem", at = [0, 2] },',
        "kind",
        "two tiles are called mem; rename one",
    ),
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
    return program_of(tomllib.loads(text), text, "d.toml", around=lambda: BESIDE)


@pytest.mark.parametrize(
    "never", ["{ if = 0, body = [STEP] }", "{ if = 1, body = [], else = [STEP] }", '{ if = "2 < 1", body = [STEP] }']
)
def test_what_a_number_decides_never_runs(never: str):
    step = '{ step = "never", body = [{ lock = "go_0", value = 1 }] }'
    more = COPY.replace("sequence.body = [", f"sequence.body = [\n  {never.replace('STEP', step)},")
    assert copying(more).do == copying(COPY).do


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
    { switch = "%n", cases = [{ case = 1, body = [] }], default = [{ store = 2, to = "x", index = 7 }] },
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
    "index = 7": ("index = 9", "{ store", "core (0, 2): element 9 of core_x, which has 8"),
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
    "token = true, ": ("", "awaits", "no task of S2MM 0 in column 0 has `token = true`"),
    'awaits = [{ token = "S2MM 0"': ('awaits = [{ column = 1, token = "S2MM 0"', "awaits", "S2MM 0 in column 1 has"),
    'direction = "in"': ('direction = "out"', "[[operand]]", "no S2MM task writes argument X"),
    'axis = 0, count = "n" }]\n': (
        'axis = 0, count = "n" }]\n[[operand]]\nname="X"\ndirection = "in"\ntype = "int32"\naxes = [{ size = "n" }]\n',
        '[[operand]]\nname="X"',
        "there is an operand X already",
    ),
    "{ size = ": ("{ sizes = ", 'sizes = "n" }', "unexpected key"),
}


@pytest.mark.parametrize(("text", "right"), [(SMALL, r) for r in WRONG] + [(COPY, r) for r in WRONG_SEQUENCES])
def test_faults_name_line_and_column(text: str, right: str):
    wrong, where, reason = (WRONG if text is SMALL else WRONG_SEQUENCES)[right]
    content = text.replace(right, wrong, 1)
    with pytest.raises(DocumentError) as caught:
        design_of(content, "d.toml") if text is SMALL else copying(content)
    line, column = content.count("\n", 0, at := content.index(where)) + 1, at - content.rfind("\n", 0, at)
    assert f"d.toml:{line}:{column}: " in str(caught.value)
    assert reason in str(caught.value)
