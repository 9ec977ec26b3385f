"""The program bdforge-run: what it prints and how it ends."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from library_builds import Done, edit_manifest, run, sanitized_build, small_design, ternary

from support.processes import ends

ONCE = ["-d", "emulated", "-i", "1", "--warmup", "0", "--verify"]
SIZES = ["-M", "33", "-K", "40", "-N", "70", *ONCE]


@pytest.fixture(scope="module")
def program() -> Path:
    return sanitized_build() / "bin" / "bdforge-run"


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all that change nothing of it, which the device server loads once."""
    return small_design(tmp_path_factory.mktemp("built"))


@pytest.fixture
def own_design(tmp_path: Path) -> Path:
    return small_design(tmp_path / "built")


def refused(done: Done, sentence: str):
    """Exit code 2, one line on stderr with `sentence`, nothing else."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("bdforge-run: ")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


@pytest.mark.parametrize("sizes", [(1, 1, 1), (33, 40, 70)])
def test_a_gemm_is_run_verified_and_labelled(program: Path, design: Path, sizes: tuple[int, int, int]):
    M, K, N = map(str, sizes)
    done = run(
        program, "-x", design, "-M", M, "-K", K, "-N", N, "-d", "emulated", "--verify", "-i", "2", "--warmup", "0"
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "design: small for strix_halo on emulated"
    assert lines[1].startswith(f"problem: {M} x {K} x {N}, B ")
    assert lines[2] == f"verified: {sizes[0] * sizes[2]} elements"
    assert lines[3].startswith("emulated, no NPU: 2 runs, lowest ")


def test_energy_is_read_where_the_processor_shows_it(program: Path, tmp_path: Path):
    words = [program, "-d", "cpu", "-M", "8", "-K", "64", "-N", "8", "-i", "2", "--energy"]
    zone = tmp_path / "intel-rapl:0"
    none = run(*words, environ={"BDFORGE_POWERCAP": str(tmp_path)})
    zone.mkdir()
    for name, text in (("name", "package-0"), ("energy_uj", "5"), ("max_energy_range_uj", "9")):
        (zone / name).write_text(text + "\n")
    read = run(*words, environ={"BDFORGE_POWERCAP": str(tmp_path)})
    assert (none.returncode, none.stderr, read.returncode, read.stderr) == (0, "", 0, "")
    assert none.stdout.splitlines()[-1].startswith(f"energy: not read: {tmp_path} has no package's counter; ")
    assert read.stdout.splitlines()[-1] == "energy: 0.000 J of package-0, 0.0000 J a run (RAPL: all that ran)"


def test_many_sizes_are_timed_and_added_up(program: Path, design: Path):
    """Medians are of a batch's GEMMs together, the sum is of one GEMM at a time."""
    shapes, once = ["64x64x128*3", "17x5x200"], ["-d", "emulated", "-i", "1", "--warmup", "0", "--batch", "2"]
    done = run(program, "-x", design, "--shapes", ",".join(shapes), *once)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines if line.startswith("problem: ")] == [
        "problem: 64 x 64 x 128", "problem: 17 x 5 x 200",
    ]  # fmt: skip
    first, second = (float(line.split("median ")[1].split()[0]) for line in lines if "median " in line)
    assert lines[-1].startswith("emulated, no NPU: all 4, ")
    total = float(lines[-1].split()[5])
    assert total == pytest.approx((3 * first + second) / 2, abs=0.01), f"medians {first}, {second} ms of 2 GEMMs each"


@pytest.mark.slow
def test_how_sequences_wait_can_be_chosen(program: Path, design: Path):
    """Another stream, the same C: with wide waits of two columns it is shorter by 16 bytes a step."""
    ways = [[], ["--wait", "wide", "--verify"], ["--wait", "column", "--in-flight", "1"]]
    runs = [run(program, "-x", design, *SIZES[:-1], *words) for words in ways]
    assert [(done.returncode, done.stderr) for done in runs] == [(0, "")] * 3
    plain, wide, columns = (int(done.stdout.split("stream ")[1].split()[0]) for done in runs)
    assert wide < plain <= columns


@pytest.mark.slow
def test_a_batch_is_verified_gemm_by_gemm(program: Path, design: Path):
    sizes = ["-M", "5", "-K", "40", "-N", "70"]
    done = run(program, "-x", design, *sizes, *ONCE, "--batch", "40")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 14000 elements" in done.stdout
    assert "1 runs of 40 GEMMs" in done.stdout


def test_weights_come_from_a_file(program: Path, design: Path, tmp_path: Path):
    np.save(tmp_path / "w.npy", ternary(1, 50, 40))
    once = ["--verify", "--device", "emulated", "--iters", "1", "--warmup", "0"]
    done = run(program, "-x", design, "-M", "20", "-w", tmp_path / "w.npy", *once)
    assert (done.returncode, done.stderr) == (0, "")
    assert "problem: 20 x 50 x 40" in done.stdout


def test_weights_that_do_not_fit_are_refused(program: Path, design: Path, tmp_path: Path):
    weights = tmp_path / "w.npy"
    words = [program, "-x", design, "-M", "20", "-d", "emulated", "-w", weights]
    refused(run(*words), f"{weights}: No such file or directory")
    np.save(weights, ternary(1, 50, 40))
    refused(run(*words, "-K", "51"), f"-K is 51, but {weights} has 50")
    np.save(weights, np.full((50, 40), 2, np.int8))
    refused(run(*words), "operand B: the value at row 0, column 0 is 2, expected -1 to 1")
    np.save(weights, np.zeros((50, 40), np.float32))
    refused(run(*words), "convert with .astype(numpy.int8)")
    np.save(weights, ternary(1, 50, 40))
    weights.write_bytes(weights.read_bytes()[:-1])
    refused(run(*words), "holds 1999 of 50 x 40 elements; the file is truncated")


LISTS = ("64x64", "64x64x64*2*2", "0x1x1", "1x1x1*0", "1x1x1,", "axbxc")
DESIGNS_OWN = (["--verify"], ["--batch", "2"], ["-w", "w.npy"], ["-x", "d.xclbin"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "-x is missing"),
        (["-x", "a.xclbin"], "-M is missing"),
        (["-x", "a.xclbin", "-M", "1"], "-K and -N are missing"),
        (["-M"], "-M needs a value"),
        (["-M", "0"], "-M takes a number from 1 to"),
        (["-M", "-5"], "-M takes a number from 1 to"),
        (["-K", "1e3"], "got '1e3'"),
        (["-N", "99999999999999999999"], "got '99999999999999999999'"),
        (["-s", "M"], "-s takes NAME=VALUE, got 'M'"),
        (["--in", "=a.npy"], "--in takes NAME=VALUE, got '=a.npy'"),
        (["--out", "C="], "--out takes NAME=VALUE, got 'C='"),
        (["--size", "M=0"], "--size takes a number from 1 to"),
        (["--shapes", "1x1x1", "--in", "A=a.npy", "-x", "d.xclbin"], "leave out -M, -K, -N, -s, -w, --in and --out"),
        (["--shapes", "1x1x1", "-M", "3", "-x", "d.xclbin"], "--shapes says all sizes; leave out -M"),
        (["--in-flight", "2", "-x", "d.xclbin"], "--in-flight needs --wait"),
        *((["-x", "d.xclbin", "--shapes", text], "--shapes takes ") for text in LISTS),
        *((["-d", "cpu", "-M", "3", *more], "takes sizes, --iters and --warmup only") for more in DESIGNS_OWN),
        (["--colour"], "unknown option '--colour'"),
        (["stray"], "unknown option 'stray'"),
    ],
)
def test_bad_arguments_are_one_sentence(program: Path, words: list[str], sentence: str):
    refused(run(program, *words), sentence)


def test_help_tells_every_option(program: Path):
    done = run(program, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("-x", "-M -K -N", "-w", "--verify", "--iters", "--warmup", "--timeout", "--device", "--any-device"):
        assert option in done.stdout


def test_sizes_beyond_the_design_are_refused_before_memory_is_taken(program: Path, design: Path):
    words = [program, "-x", design, "-d", "emulated"]
    refused(run(*words, "-M", "1000000000", "-K", "8", "-N", "8"), "M = 1000000000 is outside 1 to 1048576")
    refused(run(*words, "-M", "8", "-K", "1000000", "-N", "1000000"), "K = 1000000 could overflow the sums")


def test_a_missing_or_damaged_design_is_refused(program: Path, own_design: Path):
    words = ["-M", "8", "-K", "8", "-N", "8", "-d", "emulated"]
    refused(run(program, "-x", "no/such.xclbin", *words), "no/manifest.json: No such file or directory")
    elf = own_design.with_suffix(".elf")
    refused(run(program, "-x", elf, *words), "its ELF holds no sequence for 8x8x8 without strides")
    refused(run(program, "-x", elf, "-M", "33", "-K", "40", "-N", "70", "-d", "emulated"), "but this is no ELF")
    manifest = own_design.parent / "manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    refused(run(program, "-x", own_design, *words), f"{manifest}:1:101: not JSON")


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"device": "phoenix"}, "build the design again"),
        ({"spec_hash": "0123456789abcdef"}, "another spec"),
        ({"mlir_device": "npu2"}, "is for strix_halo (npu2), but"),
    ],
)
def test_manifests_that_are_not_the_designs_are_refused(program: Path, own_design: Path, member: dict, sentence: str):
    edit_manifest(own_design.parent, **member)
    refused(run(program, "-x", own_design, *SIZES), sentence)


def writes(steps: list[dict]) -> list[dict]:
    """The register writes of a sequence program, in order."""
    found = [[step] if step["kind"] == "write" else writes(step.get("do", [])) for step in steps]
    return [write for part in found for write in part]


@pytest.mark.slow
def test_the_answer_comes_from_the_array_and_not_from_the_manifest(program: Path, own_design: Path):
    """Cores that are told to sum over no tile give zeros, whatever the rest of the manifest says."""
    path = own_design.parent / "manifest.json"
    facts = json.loads(path.read_text())
    facts["arguments"][0]["layout"] = "any"
    path.write_text(json.dumps(facts))
    ends(run(program, "-x", own_design, *SIZES))
    values = facts["sequence"]["program"]["values"]
    for write in writes(facts["sequence"]["program"]["do"])[::3]:  # K / k of each core
        write["values"] = [values.index(0)]
    path.write_text(json.dumps(facts))
    done = run(program, "-x", own_design, *SIZES)
    assert done.returncode == 1, done.stderr
    assert "C[0, 0] is 0, expected" in done.stdout + done.stderr


def test_a_python_that_fails_is_no_wrong_result(program: Path, design: Path, tmp_path: Path):
    """It ends with 1, as a check does that finds a difference."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho No module named bdforge\nexit 1\n")
    python.chmod(0o755)
    done = run(program, "-x", design, *SIZES, environ={"BDFORGE_PYTHON": str(python)})
    assert done.returncode == 2, done.stderr
    assert f"--verify: '{python} ... check-run' failed: No module named bdforge; see BDFORGE_PYTHON" in done.stderr


def test_nothing_is_written(program: Path, own_design: Path, tmp_path: Path):
    before = sorted(tmp_path.rglob("*"))
    run(program, "-x", own_design, "-M", "8", "-K", "8", "-N", "8", "-d", "emulated", cwd=tmp_path)
    run(program, "-x", own_design, "-M", "8", "-K", "8", "-N", "8", cwd=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_processor_is_timed_without_a_design(program: Path):
    """Without options ten runs; the rate is two operations for each of M * K * N products, in 10^12 a second."""
    M, K, N = 60, 700, 50
    done = run(program, "-d", "cpu", "-M", str(M), "-K", str(K), "-N", str(N), "--in-flight", "0")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == f"processor: int8, {M} x {K} x {N}"
    assert second.startswith("measured: 10 runs, lowest ")
    told = re.search(r"lowest ([\d.]+) ms, median ([\d.]+) ms, ([\d.]+) TOPS at the median$", second)
    assert told is not None, second
    lowest, median, rate = map(float, told.groups())
    assert lowest <= median
    fastest, slowest = (2 * M * K * N / (max(median + off, 1e-9) / 1000) / 1e12 for off in (-0.0006, 0.0006))
    assert slowest - 0.0006 <= rate <= fastest + 0.0006
