"""Designs without an operator: documents, Python, templates and plain MLIR become what operators' designs are."""

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.common.messages import InputError
from bdforge.design.document import document
from bdforge.devices import device_named
from bdforge.operators import Plan, load_spec, manifest, operator_of, plan, plan_of, render
from bdforge.runtime import BuiltDesign
from support.built_designs import compile_kernels
from support.examples import EXAMPLES
from support.source_tree import ROOT

ANY_SIZE = """
reference = "right.py:transposed"

[sequence]
sizes = ["M", "N"]
arguments = [{ name = "a", elements = "M * N", type = "i32" }, { name = "b", elements = "M * N", type = "i32" }]
requires = [{ that = "M % 16 == 0 and N % 8 == 0", otherwise = "{M} x {N} is no multiple of 16 x 8" }]
body = [
  { loop = "M // 16", index = "i", body = [
    { loop = "N // 8", index = "j", body = [{ step = "block {i}, {j}", awaits = [{ token = "S2MM 0" }], body = [
      { task = "MM2S 0", column = 0, bds = [
        { argument = "a", offset = "16 * i * N + 8 * j", dims = [[16, "N"], [8, 1]] },
      ] },
      { task = "S2MM 0", column = 0, token = true, bds = [
        { argument = "b", offset = "8 * j * M + 16 * i", dims = [[8, "M"], [16, 1]] },
      ] },
    ] }] },
  ] },
]

[[operand]]
name = "a"
argument = "a"
direction = "in"
type = "int32"
staged = 0
axes = [{ size = "M" }, { size = "N" }]
dims = [{ axis = 0, count = "M", stride = "N" }, { axis = 1, count = "N" }]

[[operand]]
name = "b"
argument = "b"
direction = "out"
type = "int32"
staged = 0
axes = [{ size = "N" }, { size = "M" }]
dims = [{ axis = 0, count = "N", stride = "M" }, { axis = 1, count = "M" }]

[[problems]]
M = 16
N = 24
"""
RIGHT = "def transposed(a):\n    return a.T\n"


@pytest.fixture(scope="module")
def by_memtile(tmp_path_factory) -> str:
    """The example of a document, whose memtile turns blocks of 16 x 8, without its sequence of one size."""
    text = (EXAMPLES / "documents" / "transpose.toml").read_text()
    head, _, rest = text.partition("\n[let]")
    return head + ANY_SIZE.partition("[sequence]")[0] + "\n[let]" + rest.partition("[[runtime_sequence]]")[0]


def producers(folder: Path, text: str) -> dict[str, Path]:
    """The same design as a document, Python, plain MLIR, and a template."""
    sized = "[sequence]" + ANY_SIZE.partition("[sequence]")[2]
    (folder / "right.py").write_text(RIGHT)
    (folder / "written.toml").write_text(text + sized)
    spec = load_spec(folder / "written.toml")
    (folder / "python.py").write_text(
        "from dataclasses import replace\nfrom bdforge.operators import load_spec\n"
        f"DESIGN = load_spec({str(folder / 'written.toml')!r}).made\n"
    )
    mlir = render(plan(spec, device_named("strix_halo")), [])
    head = 'kind = "template"\narray = "npu2_1col"\nreference = "right.py:transposed"\ntemplate = "{}"\n'
    for name, file, content in (("plain", "text.mlir", mlir), ("template", "text.mlir.j2", "{{ '' }}" + mlir)):
        (folder / file).write_text(content)
        (folder / f"{name}.toml").write_text(head.format(file) + sized)
    return {path.stem: path for path in folder.iterdir() if path.stem in PRODUCERS}


PRODUCERS = ("written", "python", "plain", "template")


def built(folder: Path, planned: Plan) -> BuiltDesign:
    facts = manifest(planned, planned.problems)
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(facts))
    (folder / facts["files"]["mlir"]["path"]).write_text(render(planned, planned.problems))
    compile_kernels(folder / facts["files"]["host_kernels"]["path"], planned)
    return BuiltDesign.load(folder)


@pytest.mark.parametrize("name", PRODUCERS)
def test_every_producer_gets_a_manifest_and_runs_at_any_size(name: str, by_memtile: str, tmp_path: Path):
    spec = load_spec(producers(tmp_path, by_memtile)[name])
    design = built(tmp_path / "built", plan(spec, device_named("strix_halo")))
    again = plan_of(design.manifest)
    with bdforge.load(design.folder, "emulated") as transpose:
        for shape in ((16, 8), (32, 24), (48, 16)):
            inputs = again.random(operator_of(again.spec).problem(shape), seed=1)
            (expected,) = again.reference(inputs).values()
            np.testing.assert_array_equal(transpose(*inputs.values()), expected.values)
            np.testing.assert_array_equal(expected.values, inputs["a"].T)
    assert again.cost(operator_of(spec).problem([16, 24])).read_bytes == 4 * 16 * 24
    with pytest.raises(InputError, match="17 x 8 is no multiple of 16 x 8"):
        again.check(operator_of(spec).problem([17, 8]))


def test_a_golden_file_says_what_outputs_are(by_memtile: str, tmp_path: Path):
    path = producers(tmp_path, by_memtile)["written"]
    path.write_text(path.read_text().replace("right.py:transposed", "golden.npz"))
    a = np.arange(16 * 8, dtype=np.int32).reshape(16, 8)
    np.savez(tmp_path / "golden.npz", a=a, b=a.T)
    planned = plan(load_spec(path), device_named("strix_halo"))
    assert np.array_equal(planned.random(planned.problems[0], 1)["a"], a)
    assert np.array_equal(planned.reference({"a": a})["b"].values, a.T)
    assert planned.reference({"a": a + 1}) == {}


def test_an_edited_document_of_an_operator_keeps_its_reference(tmp_path: Path):
    """What `bdforge plan` prints, with the spec that it was made from."""
    origin = plan(load_spec(ROOT / "designs" / "add_i8.toml"), device_named("strix_halo"))
    tables = origin.document
    assert tables["made_from"] == origin.spec.content
    assert tables["kernels"] == [source.removeprefix("kernels/") for source in origin.kernels.sources]
    (problem, *_) = origin.problems
    inputs = origin.random(problem, 1)
    design = manifest(origin, [])
    assert design["document"] == tables
    shutil.rmtree(tmp_path)
    assert tomllib.loads(document(origin.design))["tile"] == tables["tile"]
    assert {name: found.values.shape for name, found in origin.reference(inputs).items()}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[sequence]", "[[old]]", r"unexpected key|has no \[sequence\]"),
        ("M = 16\n", "", r"problems: .* should give M, N, each from 1 on"),
        ("right.py:transposed", "right.py:other", "reference right.py:other: KeyError"),
        ("right.py:transposed", "nowhere:other", "reference nowhere:other: ModuleNotFoundError"),
        ("right.py:transposed", "golden.npz", "golden.npz"),
    ],
)
def test_what_a_design_lacks_is_one_sentence(by_memtile: str, tmp_path: Path, old: str, new: str, reason: str):
    path = producers(tmp_path, by_memtile)["written"]
    path.write_text(path.read_text().replace(old, new))

    def outputs() -> object:
        planned = plan(load_spec(path), device_named("strix_halo"))
        return planned.reference(planned.random(planned.problems[0], 1))

    with pytest.raises(InputError, match=reason):
        outputs()


def test_a_design_for_another_array_is_refused(by_memtile: str, tmp_path: Path):
    spec = load_spec(producers(tmp_path, by_memtile)["written"])
    assert not operator_of(spec).fits(spec, device_named("phoenix"))
    with pytest.raises(InputError, match="written: is for npu2_1col, but phoenix is an npu1"):
        plan(spec, device_named("phoenix"))
