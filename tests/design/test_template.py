"""Designs of a user's own: a spec's values in a template of the user's, with every fault in one sentence."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bd_patterns import Pattern, PatternError
from bdforge.design import render
from bdforge.design.template import Bds, TemplateError, is_template, load_template_spec, render_template
from bdforge.devices import DEVICES, MLIR_DEVICES
from bdforge.emulator.verify import verify_design
from support.differences import same
from support.examples import EXAMPLES, example

PROJECT = EXAMPLES / "project"
SPEC = (PROJECT / "designs" / "transpose.toml").read_text()


@pytest.fixture
def spec(tmp_path: Path):
    def write(text: str, template: str = ""):
        (tmp_path / "mine.toml").write_text(text)
        (tmp_path / "transpose.mlir.j2").write_text(template)
        return load_template_spec(tmp_path / "mine.toml")

    return write


@pytest.mark.parametrize(("rows", "columns", "tile"), [(64, 32, 16), (16, 16, 16), (8, 24, 4), (48, 16, 8)])
def test_the_project_s_template_transposes_matrices_of_any_size(spec, rows, columns, tile):
    text = SPEC
    for name, value in (("rows = 64", rows), ("columns = 32", columns), ("tile = 16", tile)):
        text = text.replace(name, f"{name.split()[0]} = {value}")
    mlir = render_template(spec(text), PROJECT / "templates")
    assert verify_design(mlir, "transpose").faults == ()
    x, y = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns), np.zeros((columns, rows), np.int32)
    bdforge.emulate(mlir, [x, y], {"add": lambda a, b: np.add(a, 3, out=b)}, schedule="random", poison=True)
    same(y, x.T + 3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("npu2_1col", "npu9", "mine.toml: array: npu9 is no aie.device; there is npu1,"),
        ("rows = 64", "Rows = 64", "mine.toml: values.Rows.[key]: String should match"),
        ("rows = 64", "rows = 1.5", "mine.toml: values.rows: Input should be a valid integer"),
        ("kernels =", "kernel =", "mine.toml: kernel: Extra inputs are not permitted"),
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


def test_a_spec_says_which_products_it_is_for(spec):
    assert [name for name, device in DEVICES.items() if spec(SPEC).fits(device)] == ["strix_halo", "strix", "krackan"]
    assert spec(SPEC).defines == ["ROWS=64", "COLUMNS=32", "TILE=16", "ADDED=3"]


def test_only_files_of_this_kind_are_specs_for_templates(tmp_path):
    (tmp_path / "broken.toml").write_text("kind =")
    files = [PROJECT / "designs" / "transpose.toml", PROJECT / "designs" / "gemm.toml", tmp_path / "broken.toml"]
    assert [is_template(path) for path in (*files, tmp_path / "none.toml")] == [True, False, False, False]


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
    ("golden", "t" * 256, True), ("golden", "t" * 257, False),
])  # fmt: skip
def test_files_of_a_spec_have_256_plain_characters_at_most(spec, key: str, name: str, taken: bool):
    facts = {"template": "t.j2", key: name}
    text = 'kind = "template"\narray = "npu2"\n' + "".join(f'{k} = "{v}"\n' for k, v in facts.items())
    if taken:
        assert getattr(spec(text), key) == name
        return
    with pytest.raises(TemplateError, match=rf"mine\.toml: {key}: String should"):
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
