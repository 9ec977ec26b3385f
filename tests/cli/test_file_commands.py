"""Commands that read one file and write another: machine code, streams, weights, routes; and what they list."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

from bdforge.array.emulator.strictness import CAUTIONS, CHECKS, HABITS
from bdforge.array.images.cdo import cdo
from bdforge.array.images.programs import read_programs
from bdforge.array.images.read import read_image
from bdforge.cli import emulate, estimate, machine_code, models, texts, tune, weights
from bdforge.cli.options import workers_of
from bdforge.devices import device_named
from bdforge.devices.txn_format.operations import BlockWrite
from bdforge.models.weights import TernaryMatrix
from bdforge.perf import PerfError
from bdforge.perf.goals import Goal
from bdforge.perf.tune.candidate_search import Search
from bdforge.perf.tune.space import search_space
from support.built_designs import ROOT
from support.small_designs import loopback

DESIGN = str(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
BUNDLES = "main: mova r0, #1\n      nop\n      nop\n      nop\n      done\n"


def fake(**facts: Any) -> Any:
    return SimpleNamespace(**facts)


def test_code_is_assembled_and_read_back_with_what_is_asked_for(run):
    Path("k.s").write_text(BUNDLES)
    code, out, err = run("asm", "k.s", "-o", "k.elf")
    (program,) = read_programs(Path("k.elf").read_bytes())
    (told,) = re.findall(r"^wrote k\.elf: (\d+) bytes of code\n$", out)
    assert (code, err, len(program.code[0].data)) == (0, "", -(-int(told) // 4) * 4), "the ELF is filled to whole words"
    code, out, _ = run("disasm", "k.elf")
    assert (code, "main:" in out, "mova" in out, "after" in out) == (0, True, True, False)
    assert "r0 after " in run("disasm", "k.elf", "--latencies")[1]
    assert run("disasm", "k.elf", "--check")[0] == 0
    code, _, err = run("asm", "k.s", "-o", "k.elf")
    assert (code, "k.elf exists" in err) == (2, True)


def test_plain_code_is_read_from_address_0_if_said_so(run):
    Path("plain").write_bytes(bytes(16))
    code, _, err = run("disasm", "plain")
    assert (code, "say --raw for plain code" in err) == (2, True)
    assert run("disasm", "plain", "--raw", "--arch", "aie2p")[0] == 0


def test_the_program_of_one_core_is_read_and_others_are_named(run):
    """Program memories of cores (0, 2) and (1, 3)."""
    nops = (0, 0, 0, 0)
    Path("two.cdo").write_bytes(cdo([BlockWrite(0x0022_0000, nops), BlockWrite(1 << 25 | 0x0032_0000, nops)]))
    for core, wanted in (((), ["(0, 2)", "(1, 3)"]), (("--core", "1,3"), ["(1, 3)"])):
        code, out, _ = run("disasm", "two.cdo", "--arch", "aie2p", *core)
        assert (code, [place for place in ("(0, 2)", "(1, 3)") if f"tile {place}" in out]) == (0, wanted), core
    code, _, err = run("disasm", "two.cdo", "--core", "0,3")
    assert (code, "no program of tile (0, 3); there is tile (0, 2), tile (1, 3)" in err) == (2, True)


def test_distinct_programs_are_written_into_a_folder_and_assembled_again(run):
    """Cores (0, 2) and (1, 3) run one program, (2, 2) another one."""
    one, other = (1, 2, 3, 4), (0, 0)
    writes = [BlockWrite(column << 25 | row << 20 | 0x20000, code)
              for column, row, code in ((0, 2, one), (1, 3, one), (2, 2, other))]  # fmt: skip
    Path("three.cdo").write_bytes(cdo(writes))
    code, out, err = run("disasm", "three.cdo", "--arch", "aie2p", "-o", "listing")
    assert (code, err, sorted(path.name for path in Path("listing").iterdir())) == (
        0, "", ["program0.dot", "program0.s", "program1.dot", "program1.s"],
    )  # fmt: skip
    assert out.splitlines()[0] == "wrote listing/program0.s: 2 cores (0, 2) (1, 3)"
    assert run("asm", "listing/program0.s", "-o", "k.elf", "--unchecked")[0] == 0
    (program,) = read_programs(Path("k.elf").read_bytes())
    assert program.code[0].data == np.array(one, "<u4").tobytes()
    code, _, err = run("disasm", "three.cdo", "--arch", "aie2p", "-o", "listing")
    assert (code, "program0.s exists" in err) == (2, True)
    assert run("disasm", "three.cdo", "--arch", "aie2p", "-o", "listing", "--force")[0] == 0
    assert run("disasm", "three.cdo", "-o", "three.cdo")[0] == 2


HAZARD = (
    "main: lda r0, [p0], #0\n      add r1, r0, #1\n      nop\n      nop\n      nop\n      nop\n      nop\n      done\n"
)


def test_hazards_keep_an_elf_from_being_written_unless_unchecked(run):
    """r0 is read before it is loaded."""
    Path("k.s").write_text(HAZARD)
    code, out, err = run("asm", "k.s", "-o", "k.elf")
    assert (code, out, Path("k.elf").exists()) == (2, "", False)
    assert "k.s has hazards (--unchecked writes the ELF nevertheless)" in err
    assert run("asm", "k.s", "-o", "k.elf", "--unchecked")[0] == 0
    code, _, err = run("disasm", "k.elf", "--check")
    assert (code, "k.elf has hazards:" in err) == (2, True)


def test_what_is_unusual_is_told_and_stops_nothing(run):
    Path("k.s").write_text("st.s8 r0, [p0], #1\nlda r1, [p1], #4\n" + "nop\n" * 12 + "done\n")
    code, _, err = run("asm", "k.s", "-o", "k.elf")
    assert (code, Path("k.elf").exists()) == (0, True)
    code, _, again = run("disasm", "k.elf", "--check")
    assert code == 0
    for told in (err, again):
        assert "1 place is unusual, though compiled code has such: 1 store-window (as in 57 of 816 public" in told


@pytest.mark.parametrize("options", [("--design", "d.mlir"), ("--core", "0,2")])
def test_a_design_and_a_core_name_symbols_together(run, options):
    Path("k.s").write_text(BUNDLES)
    code, _, err = run("asm", "k.s", "-o", "k.elf", *options)
    assert (code, "--design and --core COLUMN,ROW go together" in " ".join(err.split())) == (2, True)
    assert machine_code.design_symbols(None, None) == {}


def test_routes_are_printed_in_physical_form_or_written(run):
    Path("d.mlir").write_text(loopback())
    code, out, _ = run("route", "d.mlir")
    assert (code, "aie.switchbox" in out, "aie.flow" in out) == (0, True, False)
    assert run("route", "d.mlir", "--out", "r.mlir")[:2] == (0, "wrote r.mlir\n")
    assert Path("r.mlir").read_text() == out


def test_checks_are_listed_by_kind(run):
    code, out, _ = run("checks")
    kinds = {"error": CHECKS, "warning": CAUTIONS, "as silicon": HABITS}
    assert code == 0
    assert out.splitlines() == [
        f"{name} ({kind}): {text}" for kind, names in kinds.items() for name, text in names.items()
    ]


@pytest.fixture
def staying(monkeypatch, run):
    """A design whose operands B and then S stay, and a file with one matrix."""
    operands = [fake(name="B", argument="b"), fake(name="S", argument="s")]
    program = fake(operands=operands)
    matrix = TernaryMatrix(np.ones((3, 2), np.int8), ("up", "gate"), (1, 1), (0.5, 2.0))
    seen: dict[str, Any] = {}
    monkeypatch.setattr(weights, "plan", lambda spec, device: fake(program=program, mlir_device="npu2"))
    monkeypatch.setattr(weights.weights, "read", lambda file, names: seen.update(names=names) or matrix)
    monkeypatch.setattr(weights.buffers, "staying", lambda program: program.operands)
    packed = {"b": np.array([0x01020304, 5], np.uint32), "s": np.array([9], np.uint32)}
    monkeypatch.setattr(
        weights.buffers, "pack", lambda program, device, given: seen.update(given=given) or ((), packed)
    )
    return operands, seen


def test_a_matrix_is_packed_as_the_first_operand_that_stays(run, staying):
    operands, seen = staying
    arguments = ("weights", "pack", "m.gguf", "--tensor", "up", "--tensor", "gate", "--design", DESIGN, "-o", "w.npy")
    assert run(*arguments) == (0, "wrote w.npy: up + gate, 3 x 2, scale 0.5, 2\n", "")
    assert (seen["names"], list(seen["given"])) == (["up", "gate"], ["B"])
    written = np.load("w.npy")
    assert (written.dtype, written.tolist()) == (np.uint8, [4, 3, 2, 1, 5, 0, 0, 0])
    assert run(*arguments)[0] == 2
    assert run(*arguments, "--force")[0] == 0
    operands.clear()
    code, _, err = run(*arguments, "--force")
    assert (code, "has no operand that stays from run to run; there is nothing to pack" in err) == (2, True)


@pytest.mark.parametrize(("stream", "wrong", "code"), [(False, "", 0), (False, "buffer 0 differs", 1), (True, "", 0)])
def test_an_npu_runs_the_words_of_the_sequence_or_those_given(run, monkeypatch, stream: bool, wrong: str, code: int):
    """On copies of the arrays as they were before the run."""
    Path("copy.mlir").write_text(loopback())
    for name, array in (("a", np.arange(96, dtype=np.int32)), ("b", np.zeros(96, np.int32))):
        np.save(name, array)
    assert run("insts", "encode", "copy.mlir", "-o", "i.bin")[0] == 0
    ran: list[Any] = []
    monkeypatch.setattr(
        emulate, "run_words", lambda xclbin, array, file, words, given: ran.append((array, words, given))
    )
    monkeypatch.setattr(emulate, "difference", lambda emulated, given, _: ran.append(emulated) or wrong)
    files = ("--arg", "a.npy", "--arg", "b.npy", "--xclbin", "x.xclbin", *(("--insts", "i.bin") if stream else ()))
    found, out, err = run("emulate", "copy.mlir", *files)
    assert (found, err.rstrip()) == (code, f"x.xclbin: {wrong}" if wrong else ""), out
    (array, words, given), emulated = ran
    assert array.startswith("npu")
    assert np.asarray(words, "<u4").tobytes() == Path("i.bin").read_bytes()
    assert [a.sum() for a in given] == [95 * 48, 0]
    assert [a.sum() for a in emulated] == [95 * 48, 95 * 48]


def test_goals_are_told_with_what_is_reached(capfd, monkeypatch):
    """A goal that is not reached is MISSED."""
    monkeypatch.setattr(estimate, "goals", lambda: [Goal("mean", 0.08, 0.0512, 2), Goal("middle", 0.2, 0.25, 2)])
    estimate._accuracy()
    assert capfd.readouterr().out.splitlines() == [
        "2 published GEMMs, each by a fit to others: 5.1% off on average, 25.0% in the median; docs/accuracy.md has "
        "them by operator and source",
        "mean: 5.1%, at most 8%", "middle: 25.0%, at most 20%: MISSED",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["add_i8", "gemv_i8_i2"])
def test_other_operators_are_estimated_for_their_own_or_given_sizes(run, name: str):
    path = ROOT / "designs" / f"{name}.toml"
    sizes = {"add_i8": "4096", "gemv_i8_i2": "1x256x64"}[name]
    code, out, _ = run("estimate", str(path), "--shape", sizes)
    assert (code, sizes.split("x")[-1] in out) == (0, True)
    bare = Path("bare.toml")
    bare.write_text(path.read_text().split("[[problems]]")[0].split("problems =")[0])
    assert run("estimate", str(bare))[0] == 2


def test_a_built_design_is_estimated_for_the_product_that_it_was_built_for(run, small):
    folder = Path(shutil.copytree(small.folder, "built"))
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"device": "krackan"}))
    halo, krackan = (run("estimate", str(one), "--shape", "32x32x64") for one in (small.folder, folder))
    assert (halo[0], krackan[0]) == (0, 0)
    assert halo[1] != krackan[1]
    code, _, err = run("estimate", str(folder), "--device", "phoenix")
    assert (code, "built was built for krackan; leave --device phoenix out" in err) == (2, True)


def test_functions_to_link_are_taken_before_our_own(monkeypatch):
    """The first file that has one is the last that counts; NAME=NUMBER goes to those that are assembled."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        texts, "linkable", lambda path, generation: {path.stem: f"{path} {generation}", "both": path.stem}
    )
    monkeypatch.setattr(texts, "assembled", lambda *given: given)

    def programs(device: Any, kernel: Any) -> Any:
        asked.update({name: kernel(name) for name in ("a", "both", "ours")})
        return fake(without={})

    monkeypatch.setattr(texts, "device_programs", programs)
    monkeypatch.setattr(texts, "programmed", lambda device, made, strictness: "done")
    device: Any = fake(device=fake(generation=fake(name="AIE2P")))
    found: Any = texts._programmed(device, [Path("a.s"), Path("b.s")], ["M=1"], fake())
    assert (found, asked) == ("done", {"a": "a.s aie2p", "both": "b", "ours": ("ours", "aie2p", ["M=1"])})


@pytest.mark.parametrize(("options", "refused"), [
    ((), False), (("--shape", "1x2x3"), True), (("--manifest",), True), (("--wait", "wide"), True),
    (("--in-flight", "0"), True), (("--in-flight", "2"), True), (("--dialect", "1.4"), False),
])  # fmt: skip
def test_a_template_takes_no_options_of_operators(run, options, refused: bool):
    Path("designs").mkdir()
    Path("templates").mkdir()
    Path("templates/t.mlir.j2").write_text("aie.device({{ array }}) { %t = aie.tile(0, {{ row }}) }")
    Path("designs/t.toml").write_text('kind = "template"\narray = "npu2"\ntemplate = "t.mlir.j2"\n[values]\nrow = 2\n')
    code, out, err = run("render", "designs/t.toml", *options)
    assert (code, "aie.tile(0, 2)" in out) == ((2, False) if refused else (0, True)), err
    assert ("designs/t.toml: has no [sequence] of any size with its [[operand]]s, which hosts need" in err) == refused


def test_a_program_that_cannot_be_named_is_a_usage_error():
    with pytest.raises(typer.BadParameter, match="is no core"):
        machine_code.elfs_of(["zero,two=a.elf"], "", "d.mlir")
    text = "aie.device(npu2) {\n%a = aie.tile(0, 2)\n%b = aie.tile(1, 3)\n" + "".join(
        f"%c{t} = aie.core(%{t}) {{ aie.end }}\n" for t in "ab"
    ) + "}"  # fmt: skip
    assert machine_code.elfs_of([], "", "d.mlir") == {}
    assert machine_code.elfs_of(["0,2=x=y.elf"], "", "d.mlir") == {(0, 2): Path("x=y.elf")}
    assert machine_code.elfs_of(["all.elf", "1,3=one.elf"], text, "d.mlir") == {
        (0, 2): Path("all.elf"), (1, 3): Path("one.elf"),
    }  # fmt: skip


def test_a_search_gets_what_its_options_say(run, monkeypatch):
    """Each to its own place; symmetric tiles are those with rho 1; as deep as the deepest problem and sums allow."""
    asked: list[Any] = []

    def searched(wanted: Any, *more: Any) -> Any:
        asked.append(wanted)
        raise PerfError("enough")

    monkeypatch.setattr(tune, "_searched", searched)

    def facts(*options: str) -> tuple[Any, ...]:
        assert run("tune", *options)[::2] == (2, "bdforge: enough\n")
        wanted = asked.pop()
        space, problems = wanted.space, [(str(problem), times) for problem, times in wanted.problems]
        layouts = (space.a_layout, space.b_layouts, space.c_layout)
        return (space.device.name, *space.types, layouts, space.residency, dict(space.fixed), wanted.basis, problems)

    assert facts("--shapes", "1x2x3*4,5x6x7") == (
        "strix_halo", "int8", "int2", "int32", ("row", ("packed",), "row"), "none", {}, "compiled",
        [("1x2x3", 4), ("5x6x7", 1)],
    )  # fmt: skip
    options = ("--symmetric", "--fix", "k=8,16", "--fix", "c_buffers=2", "--a-layout", "column", "--layouts", "row",
               "--types", "i8,i8,i8", "--kernel", "ideal", "--device", "phoenix", "--shapes", "1x2x3")  # fmt: skip
    fixed = {"rho": (1,), "k": (8, 16), "c_buffers": (2,)}
    assert facts(*options) == (
        "phoenix", "int8", "int8", "int8", ("column", ("row",), "row"), "none", fixed, "ideal", [("1x2x3", 1)],
    )  # fmt: skip
    assert facts("--stays", "--c-layout", "column")[4:6] == (("row", ("packed",), "column"), "b")
    limit = search_space(device_named("strix_halo"), "i8,i2,i32", 8).kernel.depth_limit
    assert facts("--shapes", f"8x{limit}x8,8x8x8")[-1][0] == (f"8x{limit}x8", 1)
    code, _, err = run("tune", "--shapes", f"8x8x8,8x{limit + 1}x8")
    assert (code, f"K = {limit + 1} exceeds {limit}, beyond which sums may overflow; split K" in err) == (2, True)
    Path("mine.toml").write_text("mine")
    assert run("tune", "--out", "mine.toml")[0] == 2
    assert not asked, "refused before anything is searched"


def test_an_interrupted_search_says_that_what_is_done_is_kept(run, monkeypatch):
    monkeypatch.setattr(
        tune, "_wanted", lambda *given: Search(search_space(device_named("strix_halo"), "i8,i2,i32", 8), "fitted", ())
    )

    def interrupted(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "tune", interrupted)
    assert run("tune") == (130, "", "interrupted; what is done is kept, the same command goes on from there\n")
    monkeypatch.setattr(tune, "workers_of", lambda jobs, scheduler, own: workers_of(jobs, scheduler, own=False))
    assert run("tune") == (130, "", "interrupted; nothing is kept\n")


@pytest.mark.parametrize("rule", ["estimate", "array", "cpu"])
@pytest.mark.parametrize("device", ["emulated", "xrt"])
def test_a_design_has_to_be_ready_where_all_layers_run_on_it(monkeypatch, rule: str, device: str):
    """`array` alone: the others may do without it."""
    done: list[Any] = []
    products = fake(ledger=None, loaded=fake(ready=lambda: done.append("ready")))
    monkeypatch.setattr(models, "part", lambda: done.append("part"))
    monkeypatch.setattr(models.Products, "of", lambda *given: done.append(given) or products)
    monkeypatch.setattr(models.BitNet, "load", lambda path, products, told, *_: done.append(path) or told(1, 2))
    models.opened(Path("m"), [Path("d")], device, rule, None)
    assert done == ["part", (Path("d"), device, rule), *(["ready"] if rule == "array" else []), Path("m")]


@pytest.mark.parametrize("columns", [None, 1, 4])
def test_a_lowered_image_has_the_columns_that_were_asked_for(run, columns: int | None):
    Path("d.mlir").write_text("aie.device(npu2) { %t = aie.tile(0, 1) %l = aie.lock(%t, 3) {init = 2 : i32} }")
    assert run("lower", "d.mlir", "-o", "d.xclbin", *([] if columns is None else ["--columns", str(columns)]))[0] == 0
    container = read_image(Path("d.xclbin").read_bytes()).container
    assert container is not None
    assert container.columns == (columns or 8,)


def test_an_image_is_explained_in_lines_and_in_json(run):
    """The core of column 1, row 3, runs NOPs."""
    Path("one.cdo").write_bytes(cdo([BlockWrite(1 << 25 | 0x0032_0000, (0, 0, 0, 0))]))
    code, out, err = run("explain", "one.cdo")
    assert (code, err) == (0, "")
    assert "1 core (1, 3), one program" in out
    assert "give them with --insts" in out
    values = json.loads(run("explain", "one.cdo", "--json")[1])
    assert values["configurations"][0]["programs"][0]["cores"] == [[1, 3]]
    Path("none.cdo").write_text("nothing")
    code, out, err = run("explain", "none.cdo")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert run("explain", "one.cdo", "--insts", "none.cdo")[0] == 2
