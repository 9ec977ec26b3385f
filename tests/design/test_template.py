"""Designs of a user's own: a spec's values in a template of the user's, with every fault in one sentence."""

import importlib
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bd_patterns import Pattern, PatternError
from bdforge.array.emulator.verification import verify_design
from bdforge.design import render, sandbox
from bdforge.design.document import Surrounding
from bdforge.design.template import Bds, TemplateError, is_template, load_template_spec, named_in, render_template
from bdforge.devices import DEVICES, MLIR_DEVICES
from bdforge.operators import operator_of, plan, spec_from
from support.differences import same
from support.examples import EXAMPLES, example

PROJECT = EXAMPLES / "project"
SPEC = """
kind = "template"
array = "npu2_1col"
template = "transpose.mlir.j2"
kernels = ["add.cc"]

[values]
rows = 64
columns = 32
tile = 16
added = 3
"""


@pytest.fixture
def spec(tmp_path: Path):
    def write(text: str, template: str = ""):
        (tmp_path / "mine.toml").write_text(text)
        (tmp_path / "transpose.mlir.j2").write_text(template)
        return load_template_spec(tmp_path / "mine.toml")

    return write


@pytest.mark.parametrize(("rows", "columns", "tile"), [(64, 32, 16), (16, 16, 16), (8, 24, 4), (48, 16, 8)])
def test_the_project_s_template_transposes_matrices_of_any_size(spec, rows, columns, tile):
    text = (PROJECT / "designs" / "transpose.toml").read_text().replace("tile = 16", f"tile = {tile}")
    planned = plan(spec_from(tomllib.loads(text), "transpose"), DEVICES["strix_halo"])
    mlir = render_template(spec(text), PROJECT / "templates")
    assert verify_design(mlir, "transpose").faults == ()
    x, y = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns), np.zeros((columns, rows), np.int32)
    words = planned.sequence(operator_of(planned.spec).problem([rows, columns])).words()
    kernels = {"add": lambda a, b: np.add(a, 3, out=b)}
    bdforge.emulate(mlir, [x, y], kernels, instructions=words, schedule="random", poison=True)
    same(y, x.T + 3)


TEXT = """%shim = aie.tile(3, 0)  // %shim = aie.tile(0, 0)
%core = aie.tile( 1 , 2 )
aie.shim_dma_allocation @in (%shim, MM2S, 1)
aie.shim_dma_allocation @lost (%other, MM2S, 1)
%rtp = aie.buffer(%core) {address = 1024 : i32, sym_name = "told"} : memref<16xi32>
%free = aie.buffer(%core) {sym_name = "without_address"} : memref<16xi32>
%go = aie.lock(%core, 6) {init = 0 : i32, sym_name = "go"}
%lock = aie.lock(%core) {init = 0 : i32, sym_name = "without_number"}
"""


def test_names_for_sequences_are_those_with_a_place_in_the_text():
    """A tile is 2^25 bytes from the next column's, 2^20 from the next row's; core locks lie from 0x1F000 on (AM025)."""
    core = (1 << 25) + (2 << 20)
    assert named_in(TEXT, "npu2") == Surrounding({"in": ("MM2S", 1, 3)}, {"told": core + 1024}, {"go": core + 0x1F060})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("npu2_1col", "npu9", "mine.toml: array: npu9 is no aie.device; there is npu1,"),
        ("rows = 64", "Rows = 64", "mine.toml: values.Rows.[key]: string should match"),
        ("rows = 64", "rows = 1.5", "mine.toml: values.rows: input should be a valid integer"),
        ("kernels =", "kernel =", "mine.toml: kernel: unexpected key"),
        ("kernels =", "kernels", "mine.toml: is no TOML to use: "),
    ],
)
def test_a_faulty_spec_is_refused_by_the_key(spec, old, new, message):
    assert SPEC.count(old) == 1
    with pytest.raises(TemplateError, match=r"mine\.toml") as refused:
        spec(SPEC.replace(old, new))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{{ depth }}", r"transpose.mlir.j2:2: 'depth' is undefined"),
        ("a\n\n{% if %}", r"transpose.mlir.j2:3: Expected an expression"),
        ("{{ rows // (rows - rows) }}", r"transpose.mlir.j2:1: integer division or modulo by zero"),
        ("\n{{ bd('shim', 32, [2, 1048577], [1, 1]) }}", r"transpose.mlir.j2:2: pattern .* is no runtime shim BD:"),
        ("{{ bd('core', 32, [2, 2, 2, 2], [8, 4, 2, 1]) }}", r"j2:1: pattern .*4 dimensions exceed the 3 of a core BD"),
        ("{{ bd('moon', 32, [2], [1]) }}", r"j2:1: moon is no kind of tile; there is shim, memtile, core"),
        ("{{ bd('core', 32, [2], [-1]) }}", r"j2:1: pattern .*stride -1 in dimension 0 is negative"),
        ("{% include 'nobody.j2' %}", r"nobody.j2: no template of the project or of bdforge has this name"),
    ],
)
def test_a_faulty_template_is_refused_by_its_line(spec, tmp_path, template, message):
    with pytest.raises(TemplateError, match=f"(?s){message}"):
        render_template(spec(SPEC, template), tmp_path)


ESCAPES = [
    "{{ cycler.__init__.__globals__.os.popen(CALL).read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] ~ '' }}",
    "{{ ''|attr('__class__') ~ '' }}",
    "{{ ['']|map(attribute='__class__')|join }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{% set f = '{0.__class__}'.format %}{{ f('') }}",
    "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "{{ self.__init__.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
    "{% for i in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{{ bd.__call__.__globals__.sys }}",
    "{{ bd('core', 32, [2], [1]).offset_of.__func__.__code__ }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ ([1]|map('string')).gi_frame.f_globals }}",
    "{% include '../mine.toml' %}",
    "{% include '/etc/hostname' %}",
    "{% set n = [1] %}{{ n.append(2) }}",
]


@pytest.mark.parametrize("template", ESCAPES)
def test_a_template_reaches_nothing_but_what_it_is_given(spec, tmp_path, template: str):
    call = f"'touch {tmp_path / 'ran'}'"
    with pytest.raises(TemplateError, match=r"unsafe|undefined|has no attribute|no template"):
        render_template(spec(SPEC, template.replace("CALL", call)), tmp_path)
    assert not (tmp_path / "ran").exists()


FOR = "{% for i in range(9999) %}"
ENDLESS = [
    FOR * 2 + "{% endfor %}" * 2,
    "{% for i in range(9) recursive %}{% if loop.depth < 3 %}{{ loop(range(9999)) }}{% endif %}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% include 'transpose.mlir.j2' %}",
    "{{ range(10**9)|list }}",
    "{{ 'x' * 10**10 }}",
    "{{ [0] * 10**10 }}",
    "{{ 10**(10**10) }}",
    "{{ (rows ** 99999) ** 99999 }}",
    "{{ 'x'|center(10**10) }}",
    "{{ 'x'.ljust(10**10) }}",
    "{{ '%9999999999d' % 1 }}",
    "{{ '%9999999999d'|format(1) }}",
    "{{ '{:9999999999}'.format(1) }}",
    "{{ '%*d' % (10**10, 1) }}",
    "{{ '{:{}}'.format(1, 10**10) }}",
    "{{ [1]|batch(10**10, 0)|list }}",
    FOR + "{{ 'x' * 999999 }}{% endfor %}",
    "{{ (5).to_bytes(10**10, 'little') }}",
    "{{ lipsum(10**9) }}",
]


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("template", ENDLESS)
def test_a_template_ends(spec, tmp_path, monkeypatch, template: str):
    monkeypatch.setattr(sandbox, "STEPS_MAX", 20_000)
    with pytest.raises(TemplateError, match=r"\.j2"):
        render_template(spec(SPEC, template), tmp_path)


MADE = """{{ '{:08x}'.format(4294967295) }} {{ '%5d'|format(rows) }} {{ 'ab' * 3 }} {{ 2 ** 40 * 3 }}
{{ 'x'|indent(2, true) }} {{ 'x'.center(3) }} {% for i in range(2) %}{{ loop.index0 }}/{{ loop.length }} {% endfor %}"""


def test_what_templates_compute_is_theirs(spec, tmp_path):
    """The bounds leave alone what designs need, numbers of 32 bits and more among it."""
    made = render_template(spec(SPEC, MADE), tmp_path)
    assert made == "ffffffff    64 ababab 3298534883328\n  x  x  0/2 1/2 \n"


@pytest.mark.parametrize("name", ["a pipe", "no text"])
def test_a_template_is_a_plain_file(spec, tmp_path, name: str):
    made = spec(SPEC.replace("transpose.mlir.j2", "odd.j2"))
    if name == "a pipe":
        os.mkfifo(tmp_path / "odd.j2")
    else:
        (tmp_path / "odd.j2").write_bytes(b"\xff")
    with pytest.raises(TemplateError, match=r"odd\.j2: (no template|cannot be read)"):
        render_template(made, tmp_path)


def test_a_spec_says_which_products_it_is_for(spec):
    assert [name for name, device in DEVICES.items() if spec(SPEC).fits(device)] == ["strix_halo", "strix", "krackan"]
    assert spec(SPEC).defines == ["ROWS=64", "COLUMNS=32", "TILE=16", "ADDED=3"]


def test_only_files_of_this_kind_are_specs_for_templates(tmp_path):
    (tmp_path / "broken.toml").write_text("kind =")
    (tmp_path / "mine.toml").write_text(SPEC)
    ours = [PROJECT / "designs" / "transpose.toml", PROJECT / "designs" / "gemm.toml"]
    theirs = [tmp_path / name for name in ("mine.toml", "broken.toml", "none.toml")]
    assert [is_template(path) for path in (*ours, *theirs)] == [False, False, True, False, False]


def test_templates_of_a_project_come_before_ours(tmp_path, monkeypatch):
    stencil = example("stencil/stencil.py")
    templates = importlib.import_module("bdforge.design.render")
    monkeypatch.setattr(templates, "_OF_PROJECT", [])
    templates.search_first(tmp_path)
    (tmp_path / "design.mlir.j2").write_text("of the project: {{ design.name }}")
    try:
        assert render(stencil.stencil(16)) == "of the project: stencil\n"
    finally:
        templates.environment.cache_clear()


LARGE, LONG = 1 << 31, "n" * 64


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        (f"n = {LARGE - 1}", True), (f"n = {LARGE}", False), (f"n = {-LARGE}", True), (f"n = {-LARGE - 1}", False),
        (f"{LONG} = 1", True), (f"{LONG}n = 1", False), ("n_0 = 1", True), ("_n = 1", False), ("0n = 1", False),
        ("n = true", False), ('n = "1"', False),
    ],
)  # fmt: skip
def test_values_are_32_bit_numbers_with_names_of_64_letters(spec, line: str, taken: bool):
    text = f'kind = "template"\narray = "npu2"\ntemplate = "t.j2"\n[values]\n{line}\n'
    if taken:
        ((name, value),) = spec(text).values.items()
        assert f"{name} = {value}" == line
        assert spec(text).defines == [f"{name.upper()}={value}"]
        return
    with pytest.raises(TemplateError, match=r"mine\.toml: values\."):
        spec(text)


@pytest.mark.parametrize(("key", "name", "taken"), [
    ("template", "t" * 256, True), ("template", "t" * 257, False), ("template", ".hidden/a-b c_1.j2", True),
    ("template", "", False), ("template", "/etc/passwd", False), ("template", " t", False), ("template", "a;b", False),
    ("golden", "t" * 256, True), ("golden", "t" * 257, False), ("golden", "../t", False),
    ("golden", "a..b", True), ("golden", "a/../../t", False),
])  # fmt: skip
def test_files_of_a_spec_have_256_plain_characters_at_most(spec, key: str, name: str, taken: bool):
    facts = {"template": "t.j2", key: name}
    text = 'kind = "template"\narray = "npu2"\n' + "".join(f'{k} = "{v}"\n' for k, v in facts.items())
    if taken:
        assert getattr(spec(text), key) == name
        return
    with pytest.raises(TemplateError, match=rf"mine\.toml: {key}: "):
        spec(text)


@pytest.mark.parametrize(("kind", "sizes", "strides", "taken"), [
    ("core", [255, 2], [3, 1], True), ("core", [256, 2], [3, 1], False), ("memtile", [256, 2], [3, 1], True),
    ("memtile", [512, 2], [3, 1], True), ("memtile", [513, 2], [3, 1], False), ("shim", [513, 2], [3, 1], True),
    ("shim", [3, 4], [0, 1], True), ("core", [3, 4], [0, 1], False), ("memtile", [3, 4], [0, 1], False),
    ("dram", [4], [1], None),
])  # fmt: skip
def test_patterns_of_templates_obey_the_bds_of_their_kind_of_tile(kind, sizes, strides, taken: bool | None):
    """A shim's are of a runtime sequence, where a stride of 0 is a repetition; the others stand in the text."""
    made = Bds(MLIR_DEVICES["npu2"])
    if taken:
        assert made(kind, 32, sizes, strides, 4) == Pattern(tuple(sizes), tuple(strides), 4)
        return
    with pytest.raises(PatternError, match="is no kind of tile" if taken is None else f"is no static {kind} BD"):
        made(kind, 32, sizes, strides)
