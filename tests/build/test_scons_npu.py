"""What SCons builds for the NPU: commands, manifest, formats, and what failures leave. The tools are stand-ins."""

import hashlib
import json
import shlex
from pathlib import Path

import pytest
from npu_tools import npu_tools
from scratch_tree import WRITE_OUTPUT, Run, built, program, run_scons, small_tree

from bdforge.array.mlir import parse
from bdforge.design.manifest import json_schema, manifest_fault
from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import load_spec, plan_gemm
from support.processes import ends

NAME = "gemm_i8_i2_bitnet"
DESIGN = f"strix_halo/{NAME}"
XCLBIN, ELF = f"{DESIGN}/{NAME}.xclbin", f"{DESIGN}/{NAME}.elf"
PROBLEMS = load_spec(Path(__file__).parents[2] / f"designs/{NAME}.toml").problems
SEQUENCES = [problem.sequence for problem in PROBLEMS]


@pytest.fixture
def tools(tmp_path) -> dict[str, str]:
    return npu_tools(tmp_path)


class Whole:
    """A tree with its tools, built once for an ELF; changed only by tests that build it again."""

    def __init__(self, folder: Path):
        self.folder, self.tools = folder, npu_tools(folder)
        self.cxx = f"cxx={program(folder / 'cxx', WRITE_OUTPUT)}"
        self.tree = small_tree(folder)
        self.first = self.scons("-j2", "format=elf")

    def scons(self, *arguments: str) -> Run:
        return run_scons(self.tree, *arguments, self.cxx, **self.tools)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    whole = Whole(tmp_path_factory.mktemp("whole"))
    assert whole.first.returncode == 0, whole.first.stderr
    return whole


def manifest_of(tree: Path) -> dict:
    return json.loads((tree / "build" / DESIGN / "manifest.json").read_text())


def changed(tool: Path, old: str, new: str) -> None:
    text = tool.read_text()
    assert old in text
    tool.write_text(text.replace(old, new))


@pytest.mark.slow
def test_examples_in_mlir_become_xclbins_when_asked_for(whole):
    names = ("pass_through", "pass_through_8_columns")
    made = {f"strix_halo/examples/{n}/{f}" for n in names for f in (f"{n}.mlir", f"{n}.xclbin", "insts_copy.bin")}
    assert not made & built(whole.tree)
    run = whole.scons("examples")
    assert run.returncode == 0, run.stderr
    assert made < built(whole.tree)


def test_an_xclbin_and_the_words_of_each_sequence_are_made(whole):
    words = {f"{DESIGN}/insts_{name}.bin" for name in SEQUENCES}
    assert {f"{DESIGN}/{NAME}.o", XCLBIN, *words} < built(whole.tree)
    command = (whole.tree / "build" / XCLBIN).read_text()
    folder = whole.tree / "build" / DESIGN
    assert command.startswith("-j 2 --no-xchesscc --no-xbridge --no-compile-host --peano ")
    assert (
        f"--peano {whole.tools['PEANO_INSTALL_DIR']} --tmpdir={folder}/{NAME}.mlir.prj --alloc-scheme=basic" in command
    )
    assert f"--aie-generate-xclbin --xclbin-name={folder}/.part-" in command
    assert command.rstrip().endswith(f"insts_{{1}}.bin {folder}/{NAME}.mlir")


def test_an_aiecc_of_1_4_gets_its_own_text_options_and_names(scons, tree, tmp_path, quick_cxx):
    tools = npu_tools(tmp_path, "1.4")
    result = scons("-j3", quick_cxx, **tools)
    assert result.returncode == 0, result.stderr
    folder = tree / "build" / DESIGN
    assert {f"{DESIGN}/insts_{name}.bin" for name in SEQUENCES} < built(tree)
    assert [(folder / f"insts_{name}.bin").read_text().strip() for name in SEQUENCES] == SEQUENCES
    command = (tree / "build" / XCLBIN).read_text()
    assert command.startswith(f"-j 3 --peano {tools['PEANO_INSTALL_DIR']} --tmpdir=")
    assert "--alloc-scheme=basic-sequential --get-xclbin --xclbin-name=" in command
    assert command.rstrip().endswith(f"insts_{{0}}.bin {folder}/{NAME}.mlir")
    march = render(plan_gemm(load_spec(tree / f"designs/{NAME}.toml"), device_named("strix_halo")), PROBLEMS)
    assert parse((folder / f"{NAME}.mlir").read_text()).is_structurally_equivalent(parse(march))
    assert scons("-j1", quick_cxx, **tools).stdout == "scons: `all' is up to date.\n"


def test_the_dialect_can_be_chosen(scons, tree, tmp_path, quick_cxx):
    result = scons("dialect=march", quick_cxx, **npu_tools(tmp_path, "1.4"))
    assert result.returncode == 2
    assert "expected another form" in result.stderr


def test_an_aiecc_that_reads_neither_form_is_refused_before_any_work(scons, tree, tools, tmp_path):
    changed(tmp_path / "mlir aie" / "bin" / "aiecc", "aiecc 1.3.4", "aiecc 1.3.5.dev52+g660e1a0")
    result = scons(**tools)
    assert result.returncode == 2
    assert "1.3.5.dev52+g660e1a0 reads neither form of the dialect" in result.stderr
    assert "pip install mlir_aie==" in result.stderr
    assert not (tree / "build").exists()


def test_the_manifest_lists_every_file_with_its_hash(whole):
    manifest, folder = manifest_of(whole.tree), whole.tree / "build" / DESIGN
    insts = (f"insts_{name}" for name in SEQUENCES)
    assert set(manifest["files"]) == {"mlir", "host_kernels", "xclbin", "elf", "placement", "toolchain", *insts}
    for role, entry in manifest["files"].items():
        assert hashlib.sha256((folder / entry["path"]).read_bytes()).hexdigest() == entry["sha256"], role
    assert manifest_fault(manifest) is None
    assert (folder / manifest["$schema"]).read_text() == json_schema()


def test_a_full_elf_holds_a_stream_for_each_problem(whole):
    assert f"  [ELF] build/{ELF}\n" in whole.first.stdout
    manifest = manifest_of(whole.tree)
    kernel = json.loads((whole.tree / "build" / ELF).read_text())["xrt-kernels"][0]
    assert kernel["name"] == manifest["elf_kernel"] == "main"
    assert [instance["id"] for instance in kernel["instance"]] == SEQUENCES
    assert kernel["PDIs"] == [{"id": 1, "PDI_file": "0-1.pdi"}]
    offsets = [f"{8 * i:#04x}" for i in range(len(manifest["arguments"]))]
    assert [argument["offset"] for argument in kernel["arguments"]] == offsets
    work = whole.tree / "build" / f"{ELF}.prj"
    assert all((work / f"{name}.bin").stat().st_size > 64 for name in SEQUENCES)


@pytest.mark.daily("peano/bin/clang++-clang 20-clang 21-[PEANO]", "xrt/bin/aiebu-asm-aiebu-asm 1-aiebu-asm 2-[ELF]")
@pytest.mark.parametrize(
    ("tool", "old", "new", "label"),
    [
        ("peano/bin/clang++", "clang 20", "clang 21", "[PEANO]"),
        ("mlir aie/bin/aiecc", "aiecc 1.3.4", "aiecc 1.3.2", "[AIECC]"),
        ("xrt/bin/xclbinutil", "xclbinutil 1", "xclbinutil 2", "[AIECC]"),
        ("xrt/bin/aiebu-asm", "aiebu-asm 1", "aiebu-asm 2", "[ELF]"),
    ],
)
def test_another_version_of_a_tool_builds_again(whole, tool, old, new, label):
    changed(whole.folder / tool, old, new)
    assert label in whole.scons("format=elf").stdout


def test_a_second_build_does_nothing_and_another_format_keeps_the_elf_listed(whole):
    whole.scons("format=elf")
    assert whole.scons("format=elf").stdout == "scons: `all' is up to date.\n"
    ends(whole.scons())
    assert "elf" in manifest_of(whole.tree)["files"]


@pytest.mark.slow
def test_building_the_hosts_part_keeps_the_xclbin_listed_while_the_mlir_is_the_same(scons, tree, tools, quick_cxx):
    scons(quick_cxx, **tools)
    listed = manifest_of(tree)["files"]
    (tree / "build" / DESIGN / f"insts_{SEQUENCES[0]}.bin").unlink()
    scons("host", quick_cxx)
    del listed[f"insts_{SEQUENCES[0]}"]
    assert manifest_of(tree)["files"] == listed
    spec = tree / "designs" / f"{NAME}.toml"
    spec.write_text(spec.read_text().replace("k_mt = 256", "k_mt = 128"))
    scons("host", quick_cxx)
    assert set(manifest_of(tree)["files"]) == {"mlir", "host_kernels"}


def test_an_xclbin_never_comes_without_its_manifest(scons, tree, tools, quick_cxx):
    scons("host", quick_cxx)
    result = scons(f"build/{XCLBIN}", quick_cxx, **tools)
    assert result.returncode == 0, result.stderr
    digest = hashlib.sha256((tree / "build" / XCLBIN).read_bytes()).hexdigest()
    assert manifest_of(tree)["files"]["xclbin"]["sha256"] == digest


def test_a_dry_run_tells_all_commands_and_writes_nothing(scons, tree, tools, quick_cxx):
    told = scons("-n", "format=elf", quick_cxx, **tools).stdout
    assert all(label in told for label in ("[PEANO]", "[MERGE]", "[AIECC]", "[ELF]", "[MANIFEST]"))
    shown = scons("-n", "format=elf", "verbose=1", "kernel_opt=1", quick_cxx, **tools).stdout
    assert not any(label in shown for label in ("[PEANO]", "[MERGE]", "[AIECC]", "[ELF]"))
    assert "--target=aie2p-none-unknown-elf -O1 -std=c++20" in shown
    assert "-Wno-missing-template-arg-list-after-template-kw" in shown  # else newer clangs refuse the AIE API
    assert "-DDIM_M=64 -DDIM_K=128 -DDIM_N=64" in shown
    assert "-c kernels/aie2p/mm_i8_i2_i32.cc" in shown
    xrt = tools["XILINX_XRT"]
    assert f"{xrt}/bin/xclbinutil --input build/{XCLBIN} --dump-section AIE_PARTITION:JSON:partition.json" in shown
    assert f"{xrt}/bin/aiebu-asm -t aie2_config -j elf.json -o build/{ELF}\n" in shown
    assert not (tree / "build").exists()


def test_an_elf_without_its_tool_is_refused_before_any_work(scons, tree, tools, tmp_path):
    (tmp_path / "xrt" / "bin" / "aiebu-asm").unlink()
    result = scons("format=elf", **tools)
    assert result.returncode == 2
    assert "aiebu-asm: looked in XILINX_XRT=" in result.stderr
    assert "libxrt-utils-npu" in result.stderr
    assert not (tree / "build").exists()


def test_an_elf_without_problems_is_one_sentence(scons, tree, tools):
    spec = tree / "designs" / f"{NAME}.toml"
    spec.write_text(spec.read_text().split("[[problems]]")[0])
    result = scons("format=elf", **tools)
    assert result.returncode == 2
    assert f"format=elf: designs/{NAME}.toml names no problems" in result.stderr
    assert result.stderr.count("\n") == 1


def failure(result) -> str:
    """The only line of SCons about a command that failed."""
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("scons: ***"))
    return line


def test_the_placement_is_read_back_and_listed(whole):
    folder = whole.tree / "build" / DESIGN
    manifest = manifest_of(whole.tree)
    told = json.loads((folder / "placement.json").read_text())
    assert told["read_back"] == manifest["placement"]["read_back"] == "input_with_addresses.mlir"
    assert told["buffers"] == manifest["placement"]["buffers"]
    assert manifest["placement"]["buffers"]["core_0_2_rtp"] == 4096
    assert f"  [PLACEMENT] build/{DESIGN}/placement.json\n" in whole.first.stdout


def test_an_aiecc_that_moves_a_buffer_is_an_error_and_leaves_no_manifest(scons, tree, tools, tmp_path, quick_cxx):
    """An address is kept where its tile says so; this one moves the parameters of one core all the same."""
    moved = (
        'sed \'s/address = 4096 : i32, sym_name = "core_0_2_rtp"/address = 57344 : i32, sym_name = "core_0_2_rtp"/\''
    )
    changed(tmp_path / "mlir aie" / "bin" / "aiecc", 'cp "$mlir"', f'{moved} "$mlir" >')
    result = scons(quick_cxx, **tools)
    assert "core (0, 2): core_0_2_rtp lies at 0xe000, the text says 0x1000\n" in result.stderr
    assert result.stderr.count(" lies at ") == 1
    assert "aiecc moved buffers, so that hosts would write parameters elsewhere" in failure(result)
    assert {f"{DESIGN}/placement.json", f"{DESIGN}/manifest.json"}.isdisjoint(built(tree))


@pytest.mark.slow
def test_a_placement_that_cannot_be_read_back_is_said_once(scons, tree, tools, tmp_path, quick_cxx):
    changed(tmp_path / "mlir aie" / "bin" / "aiecc", ' && cp "$mlir" "${word#*=}/input_with_addresses.mlir"', "")
    result = scons(quick_cxx, **tools)
    assert result.returncode == 0
    assert "where aiecc put the buffers cannot be read back" in result.stderr
    assert manifest_of(tree)["placement"]["read_back"] == ""


def test_a_failing_aiecc_leaves_no_half_xclbin(scons, tree, tools, tmp_path, quick_cxx):
    aiecc = tmp_path / "mlir aie" / "bin" / "aiecc"
    aiecc.write_text(aiecc.read_text() + "\necho 'error: routing failed'; exit 1\n")
    result = scons(quick_cxx, **tools)
    assert "error: routing failed" in result.stderr
    line = failure(result)
    assert "aiecc failed with exit code 1; to repeat: cd " in line
    assert f"--xclbin-name={tree}/build/{XCLBIN}" in shlex.split(line.split("to repeat: ")[1])
    assert {f"{DESIGN}/{NAME}.xclbin", f"{DESIGN}/manifest.json"}.isdisjoint(built(tree))
    assert not list((tree / "build" / DESIGN).glob("insts_*"))
    assert not list((tree / "build").rglob(".part-*"))


def test_a_failing_aiebu_leaves_no_half_elf_and_a_command_that_can_be_repeated(scons, tree, tools, tmp_path, quick_cxx):
    aiebu = tmp_path / "xrt" / "bin" / "aiebu-asm"
    aiebu.write_text(aiebu.read_text() + "\necho 'bad control code'; exit 4\n")
    result = scons("format=elf", quick_cxx, **tools)
    assert "bad control code" in result.stderr
    line = failure(result)
    assert f"aiebu-asm failed with exit code 4; to repeat: cd '{tree}/build/{ELF}.prj' && " in line
    assert ELF not in built(tree)
    assert {"elf.json", "partition.json", "0-1.pdi"} < {path.name for path in (tree / "build" / f"{ELF}.prj").iterdir()}


@pytest.mark.slow
def test_an_xclbin_without_one_configuration_makes_no_elf(scons, tree, tools, tmp_path, quick_cxx):
    changed(tmp_path / "xrt" / "bin" / "xclbinutil", '{"file_name": "0-1.pdi"}', "")
    assert "expected one PDI beside it, it names none" in failure(scons("format=elf", quick_cxx, **tools))
    assert ELF not in built(tree)
