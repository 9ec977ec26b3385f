"""Designs without an operator: documents, Python, templates and plain MLIR become what operators' designs are."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.common.messages import InputError
from bdforge.design.document import document
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import load_spec, manifest, operator_of, plan, plan_of, render
from bdforge.runtime import BuiltDesign
from support.built_designs import build_plan
from support.differences import same
from support.examples import EXAMPLES
from tools.testing.source_tree import ROOT

RIGHT = "def transposed(a):\n    return a.T\n"
WRONG = """import numpy as np

def raising(a):
    return 1 // 0

def row(a):
    return a[0]

def square(a):
    return a[:, :16]

def nothing(a):
    return {}

def more(a):
    return a.T, a

def other(a):
    return {"b": a.T, "c": a}
"""
PROBLEMS = "\n[[problems]]\nM = 16\nN = 32\n"


def producers(folder: Path) -> dict[str, Path]:
    """The example whose memtile turns blocks, as a document, Python, plain MLIR, and a template."""
    text = (EXAMPLES / "documents" / "transpose.toml").read_text()
    text = text.replace("references.py:transpose", "right.py:transposed") + PROBLEMS
    (folder / "right.py").write_text(RIGHT)
    (folder / "written.toml").write_text(text)
    (folder / "python.py").write_text(
        "from pathlib import Path\nfrom bdforge.design.document import design_of\n"
        'DESIGN = design_of(Path(__file__).with_name("written.toml").read_text(), "written")\n'
    )
    operands, body = text[text.index("operand =") : text.index("allocations =")], text[text.index("[sequence]") :]
    head = 'kind = "template"\narray = "npu2_1col"\nreference = "right.py:transposed"\ntemplate = "{}"\n'
    mlir = render(plan(load_spec(folder / "written.toml"), device_named("strix_halo")), [])
    for name, file, content in (("plain", "text.mlir", mlir), ("template", "text.mlir.j2", "{{ '' }}" + mlir)):
        (folder / file).write_text(content)
        (folder / f"{name}.toml").write_text(head.format(file) + operands + "[values]\nside = 16\n\n" + body)
    return {path.stem: path for path in folder.iterdir() if path.stem in PRODUCERS}


PRODUCERS = ("written", "python", "plain", "template")


@pytest.mark.daily(every=2)
@pytest.mark.parametrize("name", PRODUCERS)
def test_every_producer_gets_a_manifest_and_runs_at_any_size(name: str, run, tmp_path: Path):
    spec = load_spec(producers(tmp_path)[name])
    design = build_plan(tmp_path / "built", plan(spec, device_named("strix_halo")))
    assert run("estimate", str(tmp_path / "built"), "--shape", "32x48")[0] == 0
    again = design.plan
    with bdforge.load(design.folder, "emulated") as transpose:
        for shape in ((16, 16), (32, 48), (48, 16)):
            inputs = again.random(operator_of(again.spec).problem(shape), seed=1)
            (expected,) = again.reference(inputs).values()
            np.testing.assert_array_equal(transpose(*inputs.values()), expected.values)
            np.testing.assert_array_equal(expected.values, inputs["a"].T)
    assert again.cost(operator_of(spec).problem([16, 48])).read_bytes == 4 * 16 * 48
    with pytest.raises(InputError, match="17 x 16 is no number of blocks"):
        again.check(operator_of(spec).problem([17, 16]))


def test_names_of_a_template_s_channels_are_those_of_its_text(tmp_path: Path):
    path = producers(tmp_path)["template"]
    path.write_text(path.read_text().replace('task = "to_host"', 'task = "S2MM 0", column = 0'))
    load_spec(path)
    path.write_text(path.read_text().replace('"from_host"', '"from_there"'))
    with pytest.raises(
        InputError, match=r"template\.toml:\d+:\d+: there is no channel from_there; .* from_host, to_host"
    ):
        load_spec(path)


def test_a_golden_file_says_what_outputs_are(tmp_path: Path):
    path = producers(tmp_path)["written"]
    path.write_text(path.read_text().replace("right.py:transposed", "golden.npz"))
    a = np.arange(16 * 32, dtype=np.int32).reshape(16, 32)
    np.savez(tmp_path / "golden.npz", a=a, b=a.T)
    planned = plan(load_spec(path), device_named("strix_halo"))
    assert np.array_equal(planned.random(planned.problems[0], 1)["a"], a)
    assert np.array_equal(planned.reference({"a": a})["b"].values, a.T)
    assert planned.reference({"a": a + 1}) == {}


@pytest.mark.parametrize("reference", ["right.py:transposed", "golden.npz"])
def test_a_built_design_that_is_moved_keeps_its_reference(tmp_path: Path, reference: str):
    path, a = producers(tmp_path)["written"], np.arange(16 * 32, dtype=np.int32).reshape(16, 32)
    path.write_text(path.read_text().replace("right.py:transposed", reference))
    np.savez(tmp_path / "golden.npz", a=a, b=a.T)
    spec = load_spec(path)
    built = build_plan(tmp_path / "built", plan(spec, device_named("strix_halo")))
    moved = tmp_path / "away" / "moved"
    shutil.copytree(built.folder, moved)
    for name in ("right.py", "golden.npz", "built"):
        (tmp_path / name).rename(tmp_path / f"old {name}")
    design = BuiltDesign.load(moved)
    again = plan_of(design.manifest, design.folder)
    assert np.array_equal(again.reference({"a": a})["b"].values, a.T)
    assert design.manifest.files["reference"].path == design.manifest.document["reference"].partition(":")[0]
    assert str(tmp_path) not in (moved / "manifest.json").read_text()


def test_golden_values_of_bfloat16_come_as_numpy_saves_them(tmp_path: Path):
    """A file made without the type's package holds raw pairs of bytes."""
    text = (EXAMPLES / "documents" / "add_one.toml").read_text()
    assert "i32" in text
    (tmp_path / "add_one.toml").write_text(
        text.replace("int32", "bf16").replace("i32", "bf16").replace("references.py:add_one", "golden.npz")
    )
    planned = plan(load_spec(tmp_path / "add_one.toml"), device_named("strix_halo"))
    ones = np.full(64, 0x3F80, np.uint16).view("V2")
    np.savez(tmp_path / "golden.npz", a=ones, b=ones)
    inputs = {"a": np.ones(64, TYPES["bf16"].dtype)}
    same(planned.reference(inputs)["b"].values, np.ones(64, TYPES["bf16"].dtype))


def test_a_document_of_an_operator_keeps_its_reference(tmp_path: Path):
    """What `bdforge plan` prints says kernels and the spec that it was made from, and is planned as the spec is."""
    origin = plan(load_spec(ROOT / "designs" / "add_i8.toml"), device_named("strix_halo"))
    (tmp_path / "printed.toml").write_text(document(origin.whole))
    printed = plan(load_spec(tmp_path / "printed.toml"), device_named("strix_halo"))
    assert (printed.kernels.sources, printed.kernels.defines) == (origin.kernels.sources, origin.kernels.defines)
    assert manifest(origin, [])["document"]["made_from"] == origin.spec.content
    problem = operator_of(printed.spec).problem([5000])
    inputs = printed.random(problem, 1)
    same(printed.reference(inputs)["Y"].values, origin.reference(inputs)["Y"].values)
    assert printed.cost(problem) == origin.cost(problem)
    assert printed.sequence(problem).words().tolist() == origin.sequence(problem).words().tolist()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[sequence]", "[old]", "unexpected key"),
        ("M = 16\n", "", r"problems: .* should give M, N, each from 1 on"),
        ("right.py:transposed", "right.py:other", "reference right.py:other: right.py has no function 'other'"),
        ("right.py:transposed", "nowhere:other", "reference nowhere:other: ModuleNotFoundError"),
        ("right.py:transposed", "wrong.py:raising", r"wrong.py:raising: ZeroDivisionError: .*wrong.py:4"),
        ("right.py:transposed", "wrong.py:row", "reference wrong.py:row: operand b must be an int32 matrix"),
        ("right.py:transposed", "wrong.py:square", "reference wrong.py:square: operand b has the shape 16x16"),
        ("right.py:transposed", "wrong.py:nothing", "reference wrong.py:nothing: gives no b"),
        ("right.py:transposed", "wrong.py:more", "reference wrong.py:more: gives 2 arrays; there is b"),
        ("right.py:transposed", "wrong.py:other", "its reference gives c; there is b"),
        ("right.py:transposed", "broken.py:any", r"reference broken.py:any: SyntaxError"),
        (
            "right.py:transposed",
            "lost.py:any",
            r"reference lost.py:any: there is no such file; looked for .*lost.py, /",
        ),
        ("right.py:transposed", "golden.npz", "golden.npz"),
        ("right.py:transposed", "damaged.npz", "damaged.npz: is no .npz of arrays"),
        ("right.py:transposed", "wide.npz", "wide.npz: operand a must be an int32 matrix, got int64"),
    ],
)
def test_what_a_design_lacks_is_one_sentence(tmp_path: Path, old: str, new: str, reason: str):
    path = producers(tmp_path)["written"]
    path.write_text(path.read_text().replace(old, new))
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "damaged.npz").write_bytes(b"PK\3\4 and no more")
    np.savez(tmp_path / "wide.npz", a=np.zeros((16, 32), np.int64), b=np.zeros((32, 16), np.int64))

    def outputs() -> object:
        planned = plan(load_spec(path), device_named("strix_halo"))
        return planned.expected(planned.random(planned.problems[0], 1))

    with pytest.raises(InputError, match=reason):
        outputs()


def test_kernels_of_the_tree_are_named_within_it_and_others_by_their_whole_path(tmp_path: Path):
    path = producers(tmp_path)["written"]
    path.write_text(f'kernels = ["aie2p/passthrough.cc", "{tmp_path}/own.cc"]\n' + path.read_text())
    sources = plan(load_spec(path), device_named("strix_halo")).kernels.sources
    assert sources == ("kernels/aie2p/passthrough.cc", f"{tmp_path}/own.cc")


def test_a_design_for_another_array_is_refused(tmp_path: Path):
    spec = load_spec(producers(tmp_path)["written"])
    assert not operator_of(spec).fits(spec, device_named("phoenix"))
    with pytest.raises(InputError, match="written: is for npu2_1col, but phoenix is an npu1"):
        plan(spec, device_named("phoenix"))


def test_a_task_on_a_channel_without_an_allocation_is_refused(tmp_path: Path):
    text = (EXAMPLES / "documents" / "add_one.toml").read_text()
    for old, new in (
        ('{ name = "from_host", channel = "shim MM2S 0" }, ', ""), ('task = "from_host"', 'task = "MM2S 0", column = 0')
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "add_one.toml").write_text(text)
    made = plan(load_spec(tmp_path / "add_one.toml"), device_named("strix_halo"))
    with pytest.raises(InputError, match="MM2S 0 of column 0"):
        render(made, [operator_of(made.spec).problem((32,))])
