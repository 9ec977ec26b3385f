"""`--json` of `verify`, `doctor`, `estimate` and `show`: what the lines say, in the objects of docs/json.md."""

from pathlib import Path

import pytest

from bdforge.cli.json_design import ShownDesign
from bdforge.cli.json_object import Refusal
from bdforge.cli.json_output import Examination, ModelledDesign, ModelledProblem, VerifiedDesign
from support.built_designs import ROOT
from support.small_designs import loopback

TUNED = str(ROOT / "designs/gemm_i8_i2_tuned.toml")
ROPE = str(ROOT / "designs/rope_bf16.toml")


@pytest.mark.parametrize(
    "parts", [{}, {"fill": "1 << 20, 32"}, {"fill_acquire": ""}], ids=["good", "beyond", "no lock"]
)
def test_verify_tells_the_same_faults_and_warnings(run, parts):
    Path("design.mlir").write_text(loopback(**parts).replace("1 << 20", str(1 << 20)))
    code, out, err = run("verify", "design.mlir", "--json")
    plain_code, plain_out, plain_err = run("verify", "design.mlir")
    found = VerifiedDesign.model_validate_json(out)
    assert (code, err) == (plain_code, "")
    assert bool(found.faults) == (code != 0) == (not plain_out)
    assert all(text.splitlines()[0] in plain_err for text in (*found.faults, *found.warnings))
    assert found.faults or found.summary in plain_out


def test_doctor_tells_each_part(run):
    code, out, _ = run("doctor", "--json", "--for", "npu")
    plain_code, plain, _ = run("doctor", "--for", "npu")
    parts = Examination.model_validate_json(out).parts
    assert code == plain_code == int(any(part.fails for part in parts))
    assert all(f"{part.name}: {part.detail}" in plain for part in parts)
    assert {part.name for part in parts if part.fails} == set(plain.splitlines()[-1].rpartition(": ")[2].split(", "))


@pytest.mark.parametrize(
    ("design", "shape", "sizes"),
    [(TUNED, "1024x2560x13824", {"M": 1024, "K": 2560, "N": 13824}), (ROPE, "64", {"tokens": 64})],
    ids=["GEMM", "rope"],
)  # fmt: skip
def test_an_estimate_is_the_printed_one(run, design, shape, sizes):
    code, out, _ = run("estimate", design, "--shape", shape, "--json")
    (problem,) = ModelledDesign.model_validate_json(out).problems
    plain = run("estimate", design, "--shape", shape)[1]
    assert code == 0
    assert isinstance(problem, ModelledProblem)
    assert problem.sizes == sizes
    assert f"{problem.time_us:.0f} us (modelled)" in " ".join(plain.split())
    assert f"bound: {problem.bound}" in " ".join(plain.split())
    assert problem.range_us[0] <= problem.time_us <= problem.range_us[1]


def test_json_goes_with_a_design_alone(run):
    code, _, err = run("estimate", TUNED, "--model", "bitnet", "--tokens", "8", "--json")
    assert code == 2
    assert "--json" in err


def test_show_tells_what_lies_where_and_how_it_moves(run):
    """By hand from the text of the example: a copy through 16 words of a core, in six pieces."""
    code, out, err = run("show", str(ROOT / "examples/add_one/add_one.mlir"), "--json")
    (device,) = ShownDesign.model_validate_json(out).devices
    shim, core = device.tiles
    assert (code, err, device.array, device.cascades) == (0, "", "npu2_1col", [])
    assert (shim.at, shim.kind, shim.buffers, shim.memory_bytes) == ((0, 0), "shim", [], 0)
    assert (core.at, core.kind, core.memory_bytes, core.stack_bytes) == ((0, 2), "core", 65536, 1024)
    assert [(one.name, one.address, one.size_bytes, one.type) for one in core.buffers] == [
        ("in", 1024, 64, "memref<16xi32>"), ("out", 1088, 64, "memref<16xi32>"),
    ]  # fmt: skip
    assert [(lock.number, lock.name, lock.init) for lock in core.locks] == [
        (0, "in_free", 1), (1, "in_full", 0), (2, "out_free", 1), (3, "out_full", 0),
    ]  # fmt: skip
    ways = [(one.source.at, [end.at for end in one.targets], one.source.port, one.packet) for one in device.streams]
    assert ways == [((0, 0), [(0, 2)], "DMA : 0", None), ((0, 2), [(0, 0)], "DMA : 0", None)]
    assert [(bd.at, bd.channel, bd.sequence, bd.buffer, bd.length, bd.acquire) for bd in device.bds] == [
        ((0, 2), "S2MM 0", "", "in", 16, ["in_free AcquireGreaterEqual 1"]),
        ((0, 2), "MM2S 0", "", "out", 16, ["out_full AcquireGreaterEqual 1"]),
        ((0, 0), "S2MM 0", "add_one", "b", 96, []),
        ((0, 0), "MM2S 0", "add_one", "a", 96, []),
    ]
    assert device.bds[2].sizes == [1, 1, 1, 96]


def test_what_show_tells_of_a_spec_adds_up(run):
    two_columns = "[array]\nrows = 3\ncolumns = 2\n\n[[problems]]"
    Path("rope.toml").write_text(Path(ROPE).read_text().replace("[[problems]]", two_columns, 1))
    (device,) = ShownDesign.model_validate_json(run("show", "rope.toml", "--shape", "64", "--json")[1]).devices
    assert len(device.tiles) == 2 * (2 + 3)
    assert {port.at for stream in device.streams for port in (stream.source, *stream.targets)} <= {
        tile.at for tile in device.tiles
    }
    held = {tile.at: {buffer.name for buffer in tile.buffers} for tile in device.tiles}
    assert all(bd.buffer in held[bd.at] for bd in device.bds if not bd.sequence)


@pytest.mark.parametrize(("words", "told"), [("--html x.html", "without --out and --html"), ("--module none", "none")])
def test_show_refuses_what_is_no_object(run, words: str, told: str):
    code, out, err = run("show", str(ROOT / "examples/add_one/add_one.mlir"), "--json", *words.split())
    assert Refusal.model_validate_json(out).exit_code == code == 2
    assert told in err


def test_an_image_is_left_to_explain(run):
    Path("design.mlir").write_text(loopback())
    assert run("lower", "design.mlir", "-o", "design.pdi")[0] == 0
    code, out, _ = run("show", "design.pdi", "--json")
    assert code == 2
    assert "explain --json" in Refusal.model_validate_json(out).refused


UNREADABLE = {
    "nothing.mlir": (None, "nothing.mlir: cannot be read: No such file or directory"),
    "folder.mlir": (..., "folder.mlir/manifest.json: there is no such file; build the design first"),
    "empty.mlir": (b"", "empty.mlir:1:1: this text holds no operation"),
    "bytes.mlir": (b"module {\n\xff\xfe}", "bytes.mlir: cannot be read: not UTF-8 text (byte 0xff in line 2)"),
    "syntax.mlir": (b"module {\n  aie.device(npu2) {\n    %t = aie.tile(0 2)\n  }\n}\n", "syntax.mlir:3:21: Expected"),
    "words.toml": (b"[kernel\n", "words.toml: is no TOML to use"),
    "raises.py": (b"1 / 0\n", "raises.py"),
}
"""Files and what is told of them first."""


def written(name: str) -> str:
    """A file of UNREADABLE where the test runs."""
    content, _ = UNREADABLE[name]
    if content is ...:
        Path(name).mkdir()
    elif content is not None:
        Path(name).write_bytes(content)
    return name


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_a_fault_at_its_place(run, name: str):
    code, out, err = run("verify", written(name), "--json")
    found = VerifiedDesign.model_validate_json(out)
    assert (code, err, found.design, found.summary) == (2, "", name, "")
    assert [fault.startswith(UNREADABLE[name][1]) for fault in found.faults] == [True]
    assert run("verify", name)[::2] == (2, f"bdforge: {found.faults[0]}\n")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("estimate", "nothing.mlir"), ("estimate", "words.toml"), ("show", "syntax.mlir"), ("show", "folder.mlir"),
        ("explain", "nothing.mlir"), ("insts decode", "folder.mlir"), ("insts decode", "bytes.mlir"),
    ],
)  # fmt: skip
def test_other_commands_refuse_it_in_an_object(run, command: str, name: str):
    code, out, err = run(*command.split(), "--json", written(name))
    found = Refusal.model_validate_json(out)
    assert (code, found.exit_code) == (2, 2)
    assert err == f"bdforge: {found.refused}\n"
    assert name in found.refused


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("verify", "Missing argument"), ("verify x.mlir --what", "No such option"), ("verity", "No such command"),
        ("reproduce none", "none"), ("doctor --for none", "none"), (f"estimate {ROPE} --shape 0", "not tokens"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_refused_in_an_object(run, words: str, told: str):
    code, out, err = run(*words.split(), "--json")
    found = Refusal.model_validate_json(out)
    assert (code, found.exit_code) == (2, 2)
    assert told in found.refused
    assert err
    assert run(*words.split())[1] == ""
    assert run(*words.split(), "--", "--json")[1] == ""
