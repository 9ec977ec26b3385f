"""What SCons builds, when it builds again, and what failures leave."""

import os

import pytest
from scratch_tree import built, program

DESIGN = "strix_halo/gemm_i8_i2_bitnet"
MLIR, MANIFEST = f"{DESIGN}/gemm_i8_i2_bitnet.mlir", f"{DESIGN}/manifest.json"
LIBRARY = f"{DESIGN}/kernels/libgemm_i8_i2_bitnet.so"
WRITE_OUTPUT = 'while [ $# -gt 1 ]; do [ "$1" = -o ] && echo made >"$2"; shift; done'


@pytest.fixture
def quick_cxx(tmp_path):
    """A compiler that only writes its output."""
    return f"cxx={program(tmp_path / 'tools of mine' / 'cxx', WRITE_OUTPUT)}"


def test_host_builds_what_emulation_needs(scons, tree, quick_cxx):
    result = scons("-j2", "host", quick_cxx)
    assert result.returncode == 0, result.stderr
    assert built(tree) == {MLIR, MANIFEST, LIBRARY}
    assert f"  [MLIR] build/{MLIR}\n" in result.stdout
    assert f"  [CXX] build/{LIBRARY}\n" in result.stdout
    assert not (tree / ".sconsign.dblite").exists()


def test_an_edit_renders_again_and_a_touch_does_not(scons, tree, quick_cxx):
    scons("host", quick_cxx)
    template, code = tree / "templates" / "ops.mlir.j2", tree / "bdforge" / "plan" / "sequence.py"
    for file in (template, code):
        os.utime(file, (1, 1))
    assert "[MLIR]" not in scons("host", quick_cxx).stdout
    for file in (template, code):
        file.write_text(file.read_text() + "\n")
        assert "[MLIR]" in scons("host", quick_cxx).stdout


def test_a_header_a_tile_or_a_compiler_flag_compiles_again(scons, tree, quick_cxx):
    scons("host", quick_cxx)
    header = next((tree / "kernels" / "hostapi").rglob("*.hpp"))
    header.write_text(header.read_text() + "\n")
    assert "[CXX]" in scons("host", quick_cxx).stdout
    assert "[CXX]" in scons("host", quick_cxx, "native=no").stdout
    spec = tree / "designs" / "gemm_i8_i2_bitnet.toml"
    spec.write_text(spec.read_text().replace("n = 64", "n = 32"))
    assert "-DDIM_N=32" in scons("host", quick_cxx, "native=no", "verbose=1").stdout


def test_a_dry_run_writes_nothing(scons, tree, quick_cxx):
    assert "[CXX]" in scons("-n", "host", quick_cxx).stdout
    assert not (tree / "build").exists()


def test_clean_removes_everything(scons, tree, quick_cxx):
    scons("host", quick_cxx)
    (tree / "build" / DESIGN / "left behind").touch()
    assert scons("-c").returncode == 0
    assert not any(path.is_file() for path in (tree / "build").rglob("*"))


def test_a_failing_compiler_shows_its_text_and_leaves_nothing(scons, tree, tmp_path):
    cxx = program(tmp_path / "bin" / "g++", f"{WRITE_OUTPUT}\necho 'dims.h:1: it is broken' >&2; exit 1")
    result = scons("host", PATH=f"{cxx.parent}:{os.environ['PATH']}")
    assert result.returncode == 2
    assert "dims.h:1: it is broken" in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("scons: ***")]
    assert len(errors) == 1
    assert "g++ failed with exit code 1; to repeat: g++ -std=c++20" in errors[0]
    assert "Traceback" not in result.stderr
    assert not any(path.name.startswith((".part-", "lib")) for path in (tree / "build").rglob("*"))


def npu_tools(folder) -> dict[str, str]:
    """Fake Peano, mlir-aie and XRT below `folder`, as environment variables."""
    peano, mlir_aie, xrt = folder / "peano", folder / "mlir aie", folder / "xrt"
    program(peano / "bin" / "clang++", f'[ "$1" = --version ] && echo clang 20 || {{ {WRITE_OUTPUT}; }}')
    program(peano / "bin" / "ld.lld", WRITE_OUTPUT)
    program(xrt / "bin" / "xclbinutil", "true")
    (mlir_aie / "include" / "aie_api").mkdir(parents=True)
    (mlir_aie / "include" / "aie_api" / "aie.hpp").touch()
    aiecc = """
    case "$*" in *--version*) echo aiecc 1; exit;; esac
    command -v xclbinutil >/dev/null && test -f gemm_i8_i2_bitnet.o || { echo "no xclbinutil or no object"; exit 3; }
    for word; do case "$word" in --xclbin-name=*|--npu-insts-name=*) echo "$*" >"${word#*=}";; esac; done"""
    program(mlir_aie / "bin" / "aiecc", aiecc)
    return {"PEANO_INSTALL_DIR": str(peano), "MLIR_AIE_INSTALL_DIR": str(mlir_aie), "XILINX_XRT": str(xrt)}


def test_with_the_tools_an_xclbin_and_its_words_are_made(scons, tree, tmp_path, quick_cxx):
    tools = npu_tools(tmp_path)
    result = scons(quick_cxx, **tools)
    assert result.returncode == 0, result.stderr
    assert {f"{DESIGN}/gemm_i8_i2_bitnet.{suffix}" for suffix in ("o", "xclbin")} < built(tree)
    command = (tree / "build" / DESIGN / "insts.bin").read_text()
    assert f"--no-xchesscc --no-xbridge --peano {tools['PEANO_INSTALL_DIR']} --no-compile-host" in command
    assert scons(quick_cxx, **tools).stdout == "scons: `all' is up to date.\n"


def test_another_peano_compiles_again(scons, tmp_path, quick_cxx):
    tools = npu_tools(tmp_path)
    scons(quick_cxx, **tools)
    clang = tmp_path / "peano" / "bin" / "clang++"
    clang.write_text(clang.read_text().replace("clang 20", "clang 21"))
    again = scons(quick_cxx, "verbose=1", **tools).stdout
    assert "--target=aie2p-none-unknown-elf -O2 -std=c++20" in again
    assert "-DDIM_M=64 -DDIM_K=128 -DDIM_N=64 -c kernels/aie2p/mm_i8_i2_i32.cc" in again


def test_a_failing_aiecc_leaves_no_half_xclbin(scons, tree, tmp_path, quick_cxx):
    tools = npu_tools(tmp_path)
    aiecc = tmp_path / "mlir aie" / "bin" / "aiecc"
    aiecc.write_text(aiecc.read_text() + "\necho 'error: routing failed'; exit 1\n")
    result = scons(quick_cxx, **tools)
    assert result.returncode == 2
    assert "error: routing failed" in result.stderr
    assert "aiecc failed with exit code 1; to repeat: cd " in result.stderr
    assert not {f"{DESIGN}/gemm_i8_i2_bitnet.xclbin", f"{DESIGN}/insts.bin"} & built(tree)
