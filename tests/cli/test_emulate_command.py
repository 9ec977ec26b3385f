"""`bdforge emulate`, `insts` and `verify`: what they print, write and refuse."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from support.built_designs import ROOT
from support.differences import same
from support.register_designs import column, push, write32, writebd
from support.small_designs import loopback
from support.two_devices import configuration
from support.txn_vectors import encode_mlir

A = np.arange(96, dtype=np.int32)


@pytest.fixture
def design(tmp_path) -> list[str]:
    """Arguments for a loopback of 96 words: its file and its arrays."""
    (tmp_path / "copy.mlir").write_text(loopback())
    np.save(tmp_path / "a.npy", A)
    np.save(tmp_path / "b.npy", np.zeros_like(A))
    return ["copy.mlir", "--arg", "a.npy", "--arg", "b.npy"]


def test_a_design_runs_and_its_arrays_are_written(run, design):
    code, out, err = run("emulate", *design, "--out", "after")
    assert (code, err) == (0, "")
    assert "copy.mlir: ended (emulated), 2 host buffers, 1 named tile buffers" in out
    same(np.load("after/b.npy"), A)


def test_a_random_schedule_and_stale_memory_give_the_same_arrays(run, design):
    adversary = ["--schedule", "random", "--dram", "stale", "--seed", "9"]
    code, _, _ = run("emulate", *design, *adversary, "--poison", "--out", "after")
    assert code == 0
    same(np.load("after/b.npy"), A)


def test_a_timeline_is_a_chrome_trace(run, design):
    code, _, err = run("emulate", *design, "--trace", "run.json")
    assert (code, err) == (0, "wrote run.json\n")
    trace = json.loads(Path("run.json").read_text())
    tracks = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"memtile (0, 1) S2MM 0", "shim (0, 0) MM2S 0", "lock free (0 of memtile (0, 1))"} <= tracks
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(spans) >= 8
    assert all(e["dur"] > 0 for e in spans)


def test_a_timeline_shows_what_led_to_a_deadlock(run, design):
    Path("stuck.mlir").write_text(loopback(send_release=""))
    code, _, err = run("emulate", "stuck.mlir", *design[1:], "--trace", "run.json", "--permissive", "bd-locks")
    assert code == 1
    assert err.startswith("wrote run.json\nbdforge: deadlock: ")
    assert len(json.loads(Path("run.json").read_text())["traceEvents"]) > 10


def test_a_page_of_a_run_is_written_with_the_given_arrays(run, design):
    code, out, err = run("emulate", *design, "--html", "run.html")
    assert (code, err) == (0, "")
    assert "wrote run.html" in out
    assert '"fault":""' in Path("run.html").read_text()
    assert "exists; choose another file" in run("emulate", *design, "--html", "run.html")[2]


def test_a_page_is_written_of_a_run_that_fails_with_zeros_where_no_arrays_are_given(run):
    code, out, err = run("emulate", str(ROOT / "examples/deadlock/deadlock.mlir"), "--html", "run.html")
    assert (code, "wrote run.html" in out) == (1, True)
    assert "2 host buffers of zeros" in err
    assert '"fault":"deadlock' in Path("run.html").read_text()


def test_a_page_is_written_of_what_cannot_be_read_and_none_of_an_image(run, design):
    Path("bad.mlir").write_text(loopback().replace("aie.flow", "aie.fl0w"))
    for command in ("show", "emulate"):
        code, out, err = run(command, "bad.mlir", "--html", f"{command}.html")
        assert (code, "wrote" in out, "bdforge: bad.mlir:9:5" in err) == (2, True, True)
        assert '"kind":"error"' in Path(f"{command}.html").read_text()
    assert run("lower", "copy.mlir", "-o", "copy.xclbin")[0] == 0
    code, _, err = run("emulate", "copy.xclbin", "--html", "x.html")
    assert (code, "is an image" in err, Path("x.html").exists()) == (2, True, False)


@pytest.mark.parametrize("design", ["examples/documents/transpose.toml", "designs/add_i8.toml"])
def test_documents_and_specs_have_pages(run, design: str):
    one_core = "[array]\nrows = 1\ncolumns = 1\n\n[[problems]]"
    Path("x.toml").write_text((ROOT / design).read_text().replace("[[problems]]", one_core, 1))
    code, out, err = run("show", "x.toml", "--html", "x.html")
    assert (code, out, err) == (0, "wrote x.html\n", "")
    assert '"design":{' in Path("x.html").read_text()
    assert "--html writes a page" in run("show", "x.toml", "--html", "y.html", "-o", "y.svg")[2]


def test_instruction_words_replace_the_sequence(run, design):
    Path("insts.bin").write_bytes(encode_mlir(loopback()).tobytes())
    code, _, err = run("emulate", *design, "--insts", "insts.bin", "--out", "after")
    assert (code, err) == (0, "")
    same(np.load("after/b.npy"), A)


def test_a_permission_turns_an_error_into_a_warning(run, design):
    Path("late.mlir").write_text(column("aiex.npu.dma_wait {symbol = @in}"))
    for name in "ab":
        np.save(f"{name}.npy", np.zeros(64, np.int32))
    code, _, err = run("emulate", "late.mlir", *design[1:])
    assert code == 1
    assert err.startswith("bdforge: deadlock: nothing can move")
    assert err.endswith(" [missing-token]\n")
    permissions = ["--permissive", "routing", "--permissive", "missing-token"]
    code, out, err = run("emulate", "late.mlir", *design[1:], *permissions)
    assert code == 0
    assert err.startswith("warning: missing-token (permitted): deadlock")
    assert "ended" in out


def test_poison_is_off_unless_asked_for(run, design):
    lines = [writebd((0, 1), 24, 2, 0x20000), writebd((0, 2), 0, 2, 0), push((0, 2), "S2MM : 0", 0),
             write32((1 << 20) + 0xA063C, 24)]  # fmt: skip
    Path("fresh.mlir").write_text(column(*lines))
    for name in "ab":
        np.save(f"{name}.npy", np.zeros(64, np.int32))
    assert run("emulate", "fresh.mlir", *design[1:])[0] == 0
    code, _, err = run("emulate", "fresh.mlir", *design[1:], "--poison")
    assert code == 1
    assert "reads 2 words that nobody wrote" in err


def test_a_device_is_chosen_by_name(run):
    Path("two.mlir").write_text(configuration("one", "addi", 1) + configuration("two", "muli", 3))
    np.save("a.npy", A[:8])
    np.save("b.npy", np.zeros_like(A[:8]))
    arrays = ["--arg", "a.npy", "--arg", "b.npy"]
    assert run("emulate", "two.mlir", *arrays, "--module", "two", "--out", "after")[0] == 0
    same(np.load("after/b.npy"), A[:8] * 3)
    code, _, err = run("emulate", "two.mlir", *arrays)
    assert code == 2
    assert err == "bdforge: two.mlir: choose one of the runtime sequences one::go, two::go (sequence= or --sequence)\n"


def test_words_are_encoded_printed_and_compared(run, design):
    code, out, _ = run("insts", "encode", "copy.mlir", "-o", "insts.bin")
    words = encode_mlir(loopback())
    assert (code, out) == (0, f"wrote insts.bin: {len(words)} words\n")
    assert Path("insts.bin").read_bytes() == words.tobytes()
    code, out, _ = run("insts", "decode", "insts.bin")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "version 0.1, generation 4, 8 columns x 6 rows, 8 operations"
    assert len(lines) == 9
    assert "token of shim (0, 0) S2MM 0" in lines[-1]
    code, out, _ = run("insts", "decode", "insts.bin", "--json")
    assert [op["operation"] for op in json.loads(out)["operations"]][-1] == "Sync"
    assert run("insts", "diff", "insts.bin", "insts.bin") == (0, "", "")
    changed = words.copy()
    changed[8] += 1
    Path("other.bin").write_bytes(changed.tobytes())
    code, out, _ = run("insts", "diff", "insts.bin", "other.bin")
    assert code == 1
    assert out.startswith("--- insts.bin")
    assert "+BlockWrite shim (0, 0) BD 1" in out


def test_controller_ids_are_aieccs_unless_the_texts_are_asked_for(run, design):
    assert run("insts", "encode", "copy.mlir", "-o", "text.bin", "--controller-ids", "text")[0] == 0
    assert run("insts", "encode", "copy.mlir", "-o", "aiecc.bin")[0] == 0
    _, out, _ = run("insts", "diff", "text.bin", "aiecc.bin")
    assert "+MaskWrite shim (0, 0) S2MM 0 control = controller_id 15 (mask 0x00001f00)" in out


def test_words_in_text_run_and_are_extracted(run, design):
    words = encode_mlir(loopback())
    words[:2] = 0xDEADBEEF, 0
    Path("insts.txt").write_text("".join(f"0x{word:08x}\n" for word in words))
    code, out, err = run("insts", "extract", "insts.txt", "-o", "insts.bin")
    assert (code, out, err) == (0, f"wrote insts.bin: {len(words)} words\n", "")
    assert Path("insts.bin").read_bytes() == words.tobytes()
    code, _, err = run("emulate", *design, "--insts", "insts.txt", "--out", "after")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("warning: instruction stream: words 0 and 1 (deadbeef 00000000) are no header")
    same(np.load("after/b.npy"), A)
    _, out, err = run("insts", "decode", "insts.txt")
    assert out.startswith("version 0.1, unknown device, 8 operations")
    assert err.startswith("warning: insts.txt: words 0 and 1 ")


def test_insts_encode_tells_what_mlir_aie_reads_otherwise(run, tmp_path):
    bd = "aie.dma_bd(%a : memref<64xi32>, 0, 32, [<size = 32, stride = 2>])"
    task = f"%t = aiex.dma_configure_task_for @in {{\n{bd}\naie.end\n}}"
    (tmp_path / "trap.mlir").write_text(loopback(32, 2, sequence=task))
    code, _, err = run("insts", "encode", "trap.mlir", "-o", "a.bin")
    assert code == 0
    assert err.startswith("warning: trap.mlir:32:1: aie.dma_bd: the stride 2 ")
    assert run("insts", "encode", "trap.mlir", "-o", "b.bin", "--permissive", "dropped-stride")[2] == ""
    assert run("verify", "trap.mlir")[2] == err
    assert run("verify", "trap.mlir", "--permissive", "dropped-stride")[2] == ""


def test_a_good_design_verifies_in_one_line(run, design):
    code, out, err = run("verify", "copy.mlir")
    expected = (
        "copy.mlir: 1 device, 2 tiles, 1 buffer, 2 locks, 2 flows, 1 runtime sequence, 2 static BDs, 8 operations\n"
    )
    assert (code, out, err) == (0, expected, "")


def test_all_faults_of_a_design_are_listed(run):
    """A lock, two BDs, a sequence and a route are wrong."""
    text = loopback(
        send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>], "
        "[<const_pad_before = 0, const_pad_after = 0>, <const_pad_before = 0, const_pad_after = 0>]",
        fill_acquire="aie.use_lock(%free, AcquireGreaterEqual, 0)",
        send_release="aie.use_lock(%free, Release, 100)",
        sequence="aiex.npu.dma_wait {symbol = @nothing}",
    ).replace("init = 1 : i32", "init = 64 : i32").replace(
        "aie.shim_dma_allocation @in", "aie.flow(%shim, DMA : 1, %mem, DMA : 0)\n    aie.shim_dma_allocation @in"
    )  # fmt: skip
    Path("wrong.mlir").write_text(text)
    code, out, err = run("verify", "wrong.mlir")
    assert (code, out) == (2, "")
    faults = [line for line in err.splitlines() if line.startswith("bdforge: wrong.mlir:")]
    wanted = ["lock value = 64", "AcquireGreaterEqual of 0", "release_value = 100", "@nothing", "end in"]
    assert len(faults) == len(wanted)
    for part in wanted:
        assert any(part in line for line in faults), part


READERS = {
    "verify": (), "show": (), "route": (), "lower": (), "convert": ("--dialect", "1.4"),
    "insts encode": ("-o", "words"), "emulate": ("--arg", "x.npy", "--arg", "y.npy", "--out", "after"),
}  # fmt: skip
"""Commands that read MLIR, and what else they need."""


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("design", ["documents/transpose.toml", "python/transpose.py", "templates/transpose.toml"])
def test_a_command_takes_every_producers_file_as_its_mlir(run, tmp_path, command: str, design: str):
    """The same output, and the same files, as by way of a text that `render` wrote."""
    words, path, shape = command.split(), str(ROOT / "examples" / design), ["--shape", "64x32"]
    np.save("x.npy", np.arange(64 * 32, dtype=np.int32))
    np.save("y.npy", np.zeros(64 * 32, np.int32))
    run("render", path, *shape, "--out", "t.mlir")
    expected = run(*words, "t.mlir", *READERS[command])
    made = {file.name: file.read_bytes() for file in tmp_path.rglob("[wy]*")}
    sizes, again = [] if command == "lower" else shape, ["--force"] if "wrote" in expected[1] else []
    code, *said = run(*words, path, *sizes, *READERS[command], *again)
    assert (code, *(text.replace(f"{path}'s MLIR", "t.mlir").replace(path, "t.mlir") for text in said)) == expected
    assert made == {file.name: file.read_bytes() for file in tmp_path.rglob("[wy]*")}


@pytest.mark.parametrize("words", [("emulate",), ("insts", "encode", "-o", "x.bin")])
def test_a_run_needs_sizes_of_a_design_of_any_size(run, words):
    shutil.copy(ROOT / "examples/documents/transpose.toml", "any.toml")
    code, out, err = run(*words, "any.toml")
    assert (code, out) == (2, "")
    assert "has no sequence of fixed sizes" in err


def test_mlir_has_its_sizes_already(run, small):
    code, _, err = run("verify", small.mlir, "--shape", "8x8x8")
    assert (code, "is MLIR" in err) == (2, True)


@pytest.mark.slow
def test_how_sequences_wait_is_chosen_on_the_command_line(run, small):
    design = str(ROOT / "designs/gemm_i8_i2_bitnet.toml")
    for words, waits in (((), 8), (("--wait", "wide"), 1)):
        code, out, _ = run("render", design, "--shape", "256,2560,640", *words)
        assert (code, out.count("aiex.npu.sync")) == (0, waits)
    code, out, _ = run("run", str(small.folder), "--shape", "33,40,70", "--wait", "wide")
    assert (code, "exact" in out) == (0, True)


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["--budget", "1e12", "--capacity", "known"], 0, ""), (["--budget", "2E+3"], 0, ""),
        (["--capacity", "0"], 0, ""), (["--budget", "10"], 1, "no end after 10 steps"),
    ],
)  # fmt: skip
def test_a_run_has_the_steps_and_words_that_it_is_given(run, design, options, code, named):
    found, _, err = run("emulate", *design, *options)
    assert found == code
    assert named in err
