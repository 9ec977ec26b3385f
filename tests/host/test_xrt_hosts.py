"""The C++ library against the real XRT: Debian's packages, unpacked in a cache. Skips when they cannot be fetched."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from library_builds import (
    ARCHIVE,
    SANITIZED,
    SANITIZERS,
    Done,
    built,
    c_program,
    npu_library,
    replace_kernels,
    small_design,
    small_plan,
    write_manifest,
)
from software_npu import SoftwareNpu, run_alone
from test_host_layers import SIZES as MODEL
from test_host_layers import TINY, VOCABULARY, write_files
from xrt_containers import PDI_UUID, compile_stock_program, make_elf, make_instruction_elf, make_xclbin, tool

from bdforge.array.images.read import read_image
from bdforge.array.images.xclbin import pdis
from bdforge.array.images.xclbin_write import xclbin
from bdforge.operators import render
from bdforge.runtime import BuiltDesign
from bdforge.runtime.composition import CompositionForm, compose
from bdforge.runtime.service.software_npu import BDF
from bdforge.runtime.toolchain.full_elf import ElfTools
from support.built_designs import PlannedDesign, spec_content
from support.built_designs import build as build_design
from support.coded_folders import LAYER, SMALL, coded
from support.differences import same
from support.image_contents import xclbin_contents
from support.raw_problem import coded_xclbin, marked_xclbin, read_result, write_problem
from support.tiny_layers import HEAD, TOKEN
from support.xrt_packages import FetchError, Packages, fetch_packages, fetch_python
from tools.bitnet.content import config, random_content

PLAN = small_plan()
PROBLEM = PLAN.spec.problems[0]
SIZES = ["-M", "33", "-K", "40", "-N", "70"]
ONCE = ["-i", "1", "--warmup", "0"]

pytestmark = pytest.mark.slow


@cache
def pdi() -> bytes:
    (found,) = pdis(coded_xclbin(render(PLAN, PLAN.spec.problems), PLAN))
    return found


@pytest.fixture(scope="module")
def xrt() -> Packages:
    try:
        return fetch_packages()
    except FetchError as error:
        pytest.skip(f"XRT's packages: {error}")


@pytest.fixture(scope="module")
def build(xrt: Packages) -> Path:
    """The library, bdforge-run and the C program, linked with XRT."""
    host = SANITIZED / "host" / "xrt"
    wanted = (host / "bin" / "bdforge-run", host / "tests" / "c_program")
    built(SANITIZED, *map(str, wanted), f"xrt={xrt.prefix}", f"sanitize={SANITIZERS}")
    return host


@pytest.fixture(scope="module")
def program(build: Path) -> Path:
    return build / "bin" / "bdforge-run"


@pytest.fixture(scope="module")
def design(xrt: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small design's manifest, an xclbin for kernels of the host, and a full ELF of machine code beside it."""
    folder = tmp_path_factory.mktemp("small")
    xclbin = small_design(folder, PLAN)
    xclbin.write_bytes(marked_xclbin(render(PLAN, PLAN.spec.problems)))
    coded = folder / "code" / xclbin.name
    coded.parent.mkdir()
    shutil.copy(make_elf(xrt, make_xclbin(xrt, coded, pdi(), PLAN.spec.columns), PLAN), folder)
    write_manifest(folder, PLAN)
    return xclbin


@pytest.fixture
def new_npu(xrt: Packages, build: Path, device_server: str, tmp_path: Path) -> Callable[[str], SoftwareNpu]:
    """Makes a device of a product."""
    return lambda device: SoftwareNpu(xrt, device_server, npu_library(), tmp_path, device)


@pytest.fixture
def npu(new_npu: Callable[[str], SoftwareNpu]) -> SoftwareNpu:
    return new_npu("strix_halo")


def refused(done: Done, code: int, sentence: str):
    """One line on stderr that holds `sentence`."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("bdforge-run: ")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


def test_the_program_needs_the_real_library(program: Path):
    assert b"libxrt_coreutil.so.2\0" in program.read_bytes()


NO_DEVICE = [("0", "No such device with index '0'"), (BDF, f"No such device '{BDF}'")]


@pytest.mark.parametrize(("device", "reason"), NO_DEVICE)
def test_without_a_device_it_says_so_and_leaves_nothing(
    xrt: Packages, program: Path, design: Path, tmp_path: Path, device: str, reason: str
):
    home = tmp_path / "home"
    home.mkdir()
    words = xrt.command(program, "-x", design, *SIZES, "-d", device)
    done = run_alone(words, {"HOME": str(home), "TMPDIR": str(home)}, cwd=home)
    refused(done, 2, reason)
    loaded = Path("/sys/module/amdxdna").exists()
    first = f"device {device}: " + ("" if loaded else "the kernel driver amdxdna is not loaded; Linux 6.14 or newer")
    assert done.stderr.startswith(f"bdforge-run: {first}")
    assert done.stdout == ""
    assert not list(home.iterdir())


def test_the_emulated_array_needs_no_npu_beside_xrt(xrt: Packages, program: Path, design: Path):
    done = run_alone(xrt.command(program, "-x", design, *SIZES, "-d", "emulated", "--verify", *ONCE), {}, None)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_xclbin_is_read_back_as_the_manifest_describes_it(xrt: Packages, design: Path, tmp_path: Path):
    manifest = json.loads((design.parent / "manifest.json").read_text())
    contents = xclbin_contents(xrt.command("xclbinutil"), design, tmp_path)
    assert contents.columns == manifest["document"]["made_from"]["array"]["columns"]
    arguments = ["opcode", "instr", "ninstr", "bo0", "bo1", "bo2", "bo3", "bo4"]
    assert contents.kernels == {manifest["kernel"]: arguments}


def test_xclbinutil_writes_the_same_bytes(xrt: Packages, tmp_path: Path):
    theirs = make_xclbin(xrt, tmp_path / "theirs.xclbin", pdi(), PLAN.spec.columns).read_bytes()
    container = read_image(theirs).container
    assert container is not None
    uuid = bytes.fromhex(container.uuid)
    ours = xclbin(pdi(), PLAN.spec.columns, container.seconds, buffers=3, pdi_uuid=PDI_UUID.bytes, uuid=uuid)
    assert ours == theirs


@pytest.mark.parametrize("sizes", [(33, 40, 70), (70, 5, 33)])
def test_xrt_runs_an_xclbin_at_any_size(npu: SoftwareNpu, program: Path, design: Path, sizes: tuple[int, int, int]):
    M, K, N = map(str, sizes)
    done = npu.run(program, "-x", design, "-M", M, "-K", K, "-N", N, "--verify", "-i", "2", "--warmup", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"verified: {sizes[0] * sizes[2]} elements" in done.stdout
    assert "emulated, no NPU: 2 runs" in done.stdout
    assert npu.log[-3:] == [
        "context 1, command 1: an instruction stream",
        "context 1, command 2: an instruction stream",
        "context 1: destroyed",
    ]


def test_xrt_runs_a_full_elf(npu: SoftwareNpu, program: Path, design: Path):
    elf = design.with_suffix(".elf")
    done = npu.run(program, "-x", elf, *SIZES, "--verify", *ONCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 2310 elements" in done.stdout
    assert "context 1, command 1: control code" in npu.log
    without_xrt = npu.run(program, "-x", elf, *SIZES, "--verify", *ONCE, "-d", "emulated")
    assert (without_xrt.returncode, without_xrt.stderr) == (0, "")
    assert "verified: 2310 elements" in without_xrt.stdout
    other = npu.run(program, "-x", elf, "-M", "34", "-K", "40", "-N", "70")
    refused(other, 2, "its ELF holds no sequence for 34x40x70")


@pytest.mark.slow  # daily a design's full ELF, and a token's runlist of compositions
def test_xrt_runs_a_compositions_full_elf(xrt: Packages, npu: SoftwareNpu, program: Path, tmp_path: Path):
    """Changes of the array's configuration included."""
    for name in SMALL:
        coded(tmp_path, name)
    form = CompositionForm.model_validate(LAYER)
    made = compose(form, "layer", lambda design: BuiltDesign.load(tmp_path / design))
    made.write(tmp_path / "layer", ElfTools(xrt.command("xclbinutil"), xrt.command("aiebu-asm")))
    done = npu.run(program, "-x", tmp_path / "layer" / "layer.elf", "-s", "tokens=21", "--verify", *ONCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout
    assert "context 1, command 1: control code" in npu.log
    other = npu.run(program, "-x", tmp_path / "layer" / "layer.elf", "-s", "tokens=22")
    refused(other, 2, "its ELF holds no sequence for 22")


@pytest.mark.parametrize(
    ("device", "line"),
    [
        ("strix_halo", "|NPU Strix Halo  |aie2p         |6x8       |"),
        ("phoenix", "|NPU Phoenix  |aie2          |6x4       |"),
    ],
)
def test_xrts_own_tool_finds_the_device(xrt: Packages, new_npu: Callable[[str], SoftwareNpu], device: str, line: str):
    done = new_npu(device).run(xrt.prefix / "bin" / "xrt-smi", "examine")
    assert done.returncode == 0
    assert f"|[{BDF}]  {line}" in done.stdout


OWN_SIZES = (20, 40, 60)


def problem_of_its_own(folder: Path) -> tuple[PlannedDesign, Path, np.ndarray]:
    """A design with its problem's files, an xclbin of machine code, which is all that programs need of it, and C."""
    made, alone = build_design(folder / "own", spec_content(16, 16, 32)), folder / "alone.xclbin"
    alone.write_bytes(coded_xclbin(made.mlir, made.plan))
    return made, alone, write_problem(made, OWN_SIZES)


def test_a_program_that_knows_only_xrt_runs_words_and_instruction_elfs(npu: SoftwareNpu, tmp_path: Path):
    stock = compile_stock_program(npu.xrt, tmp_path / "stock_xrt")
    made, alone, expected = problem_of_its_own(tmp_path)
    tool(npu.xrt, made.folder, "aiebu-asm", "-t", "aie2txn", "-c", "words.bin", "-o", "insts.elf")
    empty = (made.folder / "2.bin").read_bytes()
    for instructions in ("words.bin", "insts.elf"):
        (made.folder / "2.bin").write_bytes(empty)
        done = npu.run(stock, alone, made.folder / instructions, made.folder)
        assert (done.returncode, done.stderr) == (0, "")
        same(read_result(made, OWN_SIZES), expected)
    own = "context 1, command 1: "
    assert [line for line in npu.log if line.startswith(own)] == [f"{own}an instruction stream", f"{own}control code"]


def test_a_program_that_knows_only_pyxrt_runs(new_npu: Callable[[str], SoftwareNpu], xrt: Packages, tmp_path: Path):
    try:
        python = fetch_python(xrt)
    except FetchError as error:
        pytest.skip(f"a Python for pyxrt: {error}")
    made, alone, expected = problem_of_its_own(tmp_path)
    npu = replace(new_npu("strix_halo"), xrt=python.packages)
    script = Path(__file__).parent / "stock_pyxrt.py"
    done = npu.run(python.program, script, alone, made.folder, environ=python.variables)
    assert done.returncode == 0, done.stderr
    same(read_result(made, OWN_SIZES), expected)
    assert "context 1, command 2: an instruction stream" in npu.log
    chains = [line.split(": ")[1] for line in npu.log if "a chain of" in line]
    assert chains == ["a chain of 3 runs"] * 2
    ends = " ".join(f"ERT_CMD_STATE_{state}" for state in ("COMPLETED", "ERROR", "ABORT"))
    assert done.stdout == f"runlist failed execution (ERT_CMD_STATE_ERROR) {ends}\n", (
        "bdforge.runtime.npu_runlist reads it"
    )


def test_every_call_of_the_c_api_works_with_xrt(npu: SoftwareNpu, build: Path, design: Path):
    done = npu.run(build / "tests" / "c_program", design, BDF)
    assert (done.returncode, done.stderr) == (0, "")
    assert any("a chain of" in line for line in npu.log), "batches are runlists"
    assert any(line.startswith("memory of the program's own, ") for line in npu.log), "XRT copies nothing"


def test_batches_are_runlists_of_24_at_most(npu: SoftwareNpu, program: Path, design: Path):
    words = [program, "-x", design, "-M", "1", "-K", "32", "-N", "32", "--batch", "70", *ONCE]
    done = npu.run(*words, "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: 2240 elements" in done.stdout
    chains = [line.split(": ")[1] for line in npu.log if "a chain of" in line]
    assert chains == [f"a chain of {runs} runs" for runs in (24, 24, 22)]


def test_a_token_is_one_runlist(xrt: Packages, build: Path, npu: SoftwareNpu, tmp_path_factory: pytest.TempPathFactory):
    """Layers and head, two designs in one context: 3 commands, between which no host moves anything. The bits of the
    emulated array without XRT."""
    folder, source = tmp_path_factory.mktemp("text"), Path(__file__).parent / "c_text.c"
    libraries = [f"-L{xrt.libraries}", "-lxrt_coreutil", "-luuid", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    program = c_program(folder, source, archive=build / ARCHIVE, libraries=libraries)
    write_files(folder, content := random_content(config(*MODEL, VOCABULARY, 64), 5))
    rng, tokens, made = np.random.default_rng(3), 22, {}
    (folder / "x").write_bytes(rng.normal(size=(tokens, TINY.hidden)).astype(np.float32).tobytes())
    for name in (f"{layer}.{one}_before" for layer in range(len(content.norms)) for one in "kv"):
        kept = rng.normal(size=(tokens, TINY.kv, TINY.dim)).astype(ml_dtypes.bfloat16)
        (folder / name).write_bytes(kept.astype(np.float32).tobytes())
    designs = ",".join(str(TINY.composed_once(tmp_path_factory, name)) for name in (TOKEN, HEAD))
    for device in ("emulated", BDF):
        done = npu.run(program, device, folder, designs, "64", "+20", "1", "1")
        assert (done.returncode, done.stderr) == (0, ""), device
        made[device] = {name: (folder / name).read_bytes() for name in ("y", "logits", "1.keys", "0.values")}
    assert made[BDF] == made["emulated"]
    assert [line.split(": ")[1] for line in npu.log if "a chain of" in line] == ["a chain of 3 runs"] * 2
    assert not any("context 2" in line for line in npu.log)


HANGS = "for (;;) pause();"
FAILS_FIRST = """
size_t hostapi_state_bytes(void) { return 8; }
int hostapi_call(void (*kernel)(uint64_t, uint64_t, uint64_t), void* state, uint64_t* words, int count, char* message) {
    static int calls;
    if (calls++ == 0) strcpy(message, "made to fail");
    else kernel(words[0], words[1], words[2]);
    return calls == 1;
}
"""


@pytest.fixture
def broken(design: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes a copy of the design whose kernels do something else."""

    def make(do: str, more: str = "") -> Path:
        folder = shutil.copytree(design.parent, tmp_path / "broken")
        replace_kernels(folder, PLAN, do, more)
        return folder / design.name

    return make


def test_gemms_of_a_lost_runlist_run_one_by_one(npu: SoftwareNpu, program: Path, broken: Callable[..., Path]):
    design = broken("", FAILS_FIRST)
    words = [program, "-x", design, "-M", "1", "-K", "32", "-N", "32", "--batch", "40", *ONCE]
    done = npu.run(*words)
    assert done.returncode == 0, done.stderr
    assert "context 1, command 1, run 0 of a chain: ERROR: " in done.stderr
    assert "made to fail" in done.stderr
    assert "bdforge-run: note: commands 1 to 24 of 40 ran one by one, since their chain failed: " in done.stderr
    asked = [line.partition(": ")[2] for line in npu.log if "command" in line and "ERROR" not in line]
    single = asked.index("an instruction stream")
    assert asked[single:] == [*["an instruction stream"] * 24, "a chain of 16 runs"], "in order, and then a list again"


def test_a_hanging_device_is_reported_in_time(npu: SoftwareNpu, program: Path, broken: Callable[..., Path]):
    done = npu.run(program, "-x", broken(HANGS), *SIZES, "--timeout", "100")
    refused(done, 3, "small 33x40x70 on NPU Strix Halo: no result after 100 ms; wait again, or end the process")


def test_a_hanging_run_may_be_dropped_without_ending_the_process(
    npu: SoftwareNpu, build: Path, broken: Callable[..., Path]
):
    done = npu.run(build / "tests" / "c_program", broken(HANGS), "0", "hangs")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failing_run_is_an_error_and_its_reason_is_told(npu: SoftwareNpu, program: Path, broken: Callable[..., Path]):
    done = npu.run(program, "-x", broken("", FAILS_FIRST), *SIZES)
    assert done.returncode == 3
    reason, error = done.stderr.splitlines()
    assert reason.startswith("bdforge device: context 1, command 1: ERROR: ")
    assert reason.endswith(f"made to fail [all of it: {npu.folder}/device.log]")
    assert "the device ended the run with ERROR; load the design again" in error
    assert any("made to fail" in line for line in npu.log)


def test_a_run_whose_executor_is_killed_is_aborted(npu: SoftwareNpu, program: Path, broken: Callable[..., Path]):
    done = npu.run(program, "-x", broken("_exit(3);"), *SIZES)
    assert done.returncode == 3
    assert "context 1, command 1: ABORT: " in done.stderr
    assert "the device ended the run with ABORT" in done.stderr


def test_a_design_for_another_npu_is_refused(new_npu: Callable[[str], SoftwareNpu], program: Path, design: Path):
    npu = new_npu("phoenix")
    done = npu.run(program, "-x", design, *SIZES)
    refused(done, 2, 'design small is for device strix_halo (npu2_2col), this one is "NPU Phoenix"')
    assert not npu.log


@pytest.fixture
def copy(design: Path, tmp_path: Path) -> Path:
    """A folder for a changed design."""
    folder = tmp_path / "copy"
    folder.mkdir()
    return folder


def test_files_that_are_no_designs_are_refused(npu: SoftwareNpu, xrt: Packages, program: Path, copy: Path):
    xclbin, elf = copy / "small.xclbin", copy / "small.elf"
    xclbin.write_bytes(b"xclbin2 no more")
    elf.write_bytes(b"\x7fELF no more")
    write_manifest(copy, PLAN)
    refused(npu.run(program, "-x", xclbin, *SIZES), 2, f"{xclbin}: ")
    refused(npu.run(program, "-x", elf, *SIZES), 2, "is not a valid ELF file; build the design again")
    make_instruction_elf(xrt, elf, PLAN, PROBLEM)
    write_manifest(copy, PLAN)
    refused(npu.run(program, "-x", elf, *SIZES), 2, "small.elf: holds instructions only, no array configuration")


def test_a_kernel_that_is_not_the_manifests_is_refused(npu: SoftwareNpu, xrt: Packages, program: Path, copy: Path):
    path = make_xclbin(xrt, copy / "small.xclbin", pdi(), PLAN.spec.columns, kernel="OTHER")
    write_manifest(copy, PLAN)
    refused(npu.run(program, "-x", path, *SIZES), 2, "the manifest names kernel MLIR_AIE, the xclbin has OTHER")
    make_xclbin(xrt, path, pdi(), PLAN.spec.columns, operands=2)
    write_manifest(copy, PLAN)
    refused(npu.run(program, "-x", path, *SIZES), 2, "kernel MLIR_AIE takes 5 arguments, the design needs 6")
