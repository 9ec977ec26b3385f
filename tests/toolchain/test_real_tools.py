"""Peano, mlir-aie and XRT on every design: verified, lowered to the same words as ours, compiled, and small enough.

Runs where the tools are installed; skips with what is missing elsewhere.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from bdforge.array.images.read import read_image
from bdforge.array.lower.array_state import ArrayState, TileState
from bdforge.array.mlir import Era, convert
from bdforge.devices.limits import PROGRAM_MEMORY_BYTES
from bdforge.devices.registers import CONTROLLER_ID_MASK
from bdforge.devices.txn_format.codec import decode
from bdforge.devices.txn_format.operations import MaskWrite, Operation
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem, sequence
from bdforge.runtime.toolchain import find_aiebu, find_aiecc, find_peano, find_xrt, missing_report
from bdforge.runtime.toolchain.aiecc import form_of
from bdforge.runtime.toolchain.assembled import built_image
from bdforge.runtime.toolchain.read_back import differences, read_back
from support.built_designs import PlannedDesign, each_named, named_designs
from support.differences import same
from support.image_contents import program_bytes, xclbin_contents

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).resolve().parents[2]
ERA = form_of(find_aiecc()).era or Era.MARCH  # what the found aiecc reads
BUILD_SECONDS = 3600  # 32 cores are compiled one by one

# What aiecc runs on a design (mlir-aie 5ff2ab97, tools/aiecc): ids and addresses, then runtime sequences to operations.
# Buffers go where aiecc puts them by default, bank-aware: the text has to hold against that.
PLACE = ("aie-assign-lock-ids", "aie-assign-bd-ids", "aie-assign-buffer-addresses")
LOWER = (
    "aie-materialize-bd-chains", "aie-substitute-shim-dma-allocations", "aie-assign-runtime-sequence-bd-ids",
    "aie-dma-tasks-to-npu", "aie-dma-to-npu", "aie-lower-set-lock",
)  # fmt: skip
WHOLE_BUILDS = ("gemm_i8_i2_bitnet", "gemm_i8_i2_tuned", "gemm_i8_i8_i32_96x64x96", "gemm_bf16_bf16_f32_64x64x32")
"""One design for each kind of core program: aiecc takes minutes for each."""


Tool = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    if report := missing_report([find_peano(), find_aiecc(), find_xrt()]):
        pytest.skip(f"not installed: {' '.join(report.split())}")


@pytest.fixture
def mlir_aie(tools: None, tmp_path: Path) -> Tool:
    """Runs a program that lies beside aiecc, in the test's folder."""
    aiecc = find_aiecc().path
    assert aiecc is not None

    def call(program: str, *arguments: str) -> str:
        return run([str(aiecc.with_name(program)), *arguments], tmp_path, 600)

    return call


def run(words: Sequence[str], folder: Path, seconds: int) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def text_of(plan: GemmPlan, problems: Sequence[GemmProblem]) -> str:
    """The design's text as the found aiecc reads it."""
    text = render(plan, problems)
    return text if ERA is Era.MARCH else convert(text, ERA, plan.spec.name)


def problem_of(plan: GemmPlan) -> GemmProblem:
    """The first of the design's problems, or one with ragged edges."""
    tile = plan.spec.tile
    return plan.spec.problems[0] if plan.spec.problems else GemmProblem(tile.m + 1, 2 * tile.k, tile.n + 4)


@each_named
def test_the_dialects_verifier_accepts_the_design(plan: GemmPlan, mlir_aie: Tool, tmp_path: Path):
    (tmp_path / "design.mlir").write_text(text_of(plan, plan.spec.problems or [problem_of(plan)]))
    assert "aie.runtime_sequence" in mlir_aie("aie-opt", "design.mlir")


@each_named
def test_the_routes_exist(plan: GemmPlan, mlir_aie: Tool, tmp_path: Path):
    (tmp_path / "design.mlir").write_text(text_of(plan, []))
    routed = mlir_aie("aie-opt", "--aie-create-pathfinder-flows", "design.mlir")
    assert "aie.flow(" not in routed
    assert "aie.connect<" in routed


@each_named
def test_mlir_aie_lowers_to_our_words(plan: GemmPlan, mlir_aie: Tool, tmp_path: Path):
    problem = problem_of(plan)
    (tmp_path / "design.mlir").write_text(text_of(plan, [problem]))
    pipeline = f"builtin.module(aie.device({','.join(PLACE + LOWER)}))"
    mlir_aie("aie-opt", f"--pass-pipeline={pipeline}", "design.mlir", "-o", "lowered.mlir")
    mlir_aie("aie-translate", "--aie-npu-to-binary", "--aie-output-binary=true", "lowered.mlir", "-o", "insts.bin")
    theirs = np.fromfile(tmp_path / "insts.bin", "<u4")
    same(theirs, sequence(plan, problem.M, problem.K, problem.N).words())


@each_named
def test_the_default_placement_moves_nothing(plan: GemmPlan, mlir_aie: Tool, tmp_path: Path):
    work = tmp_path / "design.mlir.prj"
    work.mkdir()
    (tmp_path / "design.mlir").write_text(text_of(plan, []))
    passes = f"--pass-pipeline=builtin.module(aie.device({','.join(PLACE)}))"
    mlir_aie("aie-opt", passes, "design.mlir", "-o", str(work / "input_with_addresses.mlir"))
    found = read_back(work, plan.design)
    assert found is not None
    assert differences(found, plan.design) == ""


@pytest.fixture(scope="module", params=[name for name in named_designs() if name.rpartition("-")[0] in WHOLE_BUILDS])
def built(request: pytest.FixtureRequest, tools: None, tmp_path_factory: pytest.TempPathFactory) -> PlannedDesign:
    """A design as `scons device=... format=...` leaves it; the full ELF too where aiebu-asm is."""
    plan = named_designs()[request.param]()
    build = tmp_path_factory.mktemp("build")
    words = [f"device={plan.device.name}", f"design={plan.spec.name}", f"build={build}", "xrt=none"]
    kind = "elf" if find_aiebu() and plan.spec.problems else "xclbin"
    run([sys.executable, "-m", "SCons", "-Q", f"format={kind}", *words], ROOT, BUILD_SECONDS)
    return PlannedDesign.load(build / plan.device.name / plan.spec.name)


def test_the_xclbin_holds_the_manifests_kernel(built: PlannedDesign, tmp_path: Path):
    contents = xclbin_contents([str(find_xrt().path)], built.image("xclbin"), tmp_path)
    assert contents.columns == built.plan.spec.columns
    arguments = contents.kernels[built.manifest.kernel]
    assert arguments[:3] == ["opcode", "instr", "ninstr"]
    assert len(arguments) >= 3 + len(built.manifest.arguments)


def test_the_full_elf_is_whole_and_listed(built: PlannedDesign):
    if not find_aiebu() or not built.manifest.problems:
        pytest.skip("aiebu-asm is not installed, or the design names no problems")
    content = built.image("elf").read_bytes()
    assert content.startswith(b"\x7fELF")
    assert all(f"{problem.sequence}\0".encode() in content for problem in built.manifest.problems)


def test_the_build_read_its_placement_back(built: PlannedDesign):
    told = json.loads((built.folder / "placement.json").read_text())
    assert told["read_back"], "neither the text with addresses nor the programs' symbols were found"
    assert told["buffers"].items() <= built.plan.design.buffer_addresses.items()


def test_every_core_fits_its_program_memory(built: PlannedDesign, record_property: Callable[[str, object], None]):
    programs = sorted(Path(f"{built.mlir_file}.prj").rglob("*core_*_*.elf"))
    spec = built.plan.spec
    assert len(programs) == spec.rows * spec.columns, [path.name for path in programs]
    sizes = {path.name: program_bytes(path) for path in programs}
    record_property("program_bytes", sizes)
    assert max(sizes.values()) <= PROGRAM_MEMORY_BYTES, sizes
    assert min(sizes.values()) > 0


def test_both_ways_configure_the_same_array(built: PlannedDesign):
    """Locks, BDs and queues of all tiles; switches are routed by each in its own way, and programs are other code."""
    own = built_image(built.mlir_file.read_text(), str(built.mlir_file), built.plan.kernels.defines, [])
    images = built.image("xclbin").read_bytes(), own.xclbin
    states = [ArrayState(read_image(data).configurations[0]).tiles for data in images]
    theirs, ours = ({place: what for place, tile in tiles.items() if any(what := summary(tile))} for tiles in states)
    assert ours == theirs


def summary(tile: TileState) -> tuple:
    """What of a tile both ways must agree on."""
    bds = {number: tile.fields(number) for number in sorted(tile.bds)}
    return dict(tile.locks), bds, tile.tasks


def streams(built: PlannedDesign) -> Iterator[tuple[tuple[Operation, ...], tuple[Operation, ...]]]:
    """Aiecc's operations and ours for each problem."""
    for problem in built.plan.spec.problems:
        file = built.folder / built.manifest.files[f"insts_{problem.sequence}"].path
        ours = built.plan.sequence(problem).words()
        yield decode(np.fromfile(file, "<u4")).operations, decode(ours).operations


def test_aieccs_words_are_those_that_our_hosts_make(built: PlannedDesign):
    for theirs, ours in streams(built):
        assert without_controller_ids(theirs) == without_controller_ids(ours)


def test_tokens_carry_the_ids_that_aiecc_routes(built: PlannedDesign):
    """Aiecc routes tokens as packets by their tile's controller id, and writes it into their channel."""
    for theirs, ours in streams(built):
        assert controller_ids(ours) == controller_ids(theirs)


def without_controller_ids(operations: Sequence[Operation]) -> list[Operation]:
    return [op for op in operations if not (isinstance(op, MaskWrite) and op.mask == CONTROLLER_ID_MASK)]


def controller_ids(operations: Sequence[Operation]) -> set[tuple[int, int]]:
    """Control registers of channels and what is written into them."""
    writes = (op for op in operations if isinstance(op, MaskWrite) and op.mask == CONTROLLER_ID_MASK)
    return {(op.address, op.value) for op in writes}
