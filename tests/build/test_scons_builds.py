"""What SCons builds, when it builds again, and what failures leave."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scratch_tree import WRITE_OUTPUT, built, program

from bdforge import emulate
from support.differences import same
from support.processes import ends

DESIGN = "strix_halo/gemm_i8_i2_bitnet"
MLIR, MANIFEST = f"{DESIGN}/gemm_i8_i2_bitnet.mlir", f"{DESIGN}/manifest.json"
SCHEMA = f"{DESIGN}/manifest.schema.json"
LIBRARY = f"{DESIGN}/kernels/libgemm_i8_i2_bitnet.so"


def test_host_builds_what_emulation_needs(scons, tree, quick_cxx):
    result = scons("-j2", "host", quick_cxx)
    assert result.returncode == 0, result.stderr
    assert built(tree) == {MLIR, MANIFEST, SCHEMA, LIBRARY}
    assert f"  [MLIR] build/{MLIR}\n" in result.stdout
    assert f"  [CXX] build/{LIBRARY}\n" in result.stdout
    assert f"  [MANIFEST] build/{MANIFEST}\n" in result.stdout
    assert not (tree / ".sconsign.dblite").exists()


def test_an_edit_renders_again_and_a_touch_does_not(scons, tree, quick_cxx):
    scons("host", quick_cxx)
    template, code = tree / "templates" / "ops.mlir.j2", tree / "bdforge" / "operators" / "gemm" / "sequence.py"
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
    for change, words in ((f"{header.relative_to(tree)} has another line", ()), ("native=no", ("native=no",))):
        told = scons("host", quick_cxx, *words).stdout
        assert "[CXX]" in told, f"{change}: the host's kernels are not compiled again: {told or 'nothing was made'}"
    spec = tree / "designs" / "gemm_i8_i2_bitnet.toml"
    spec.write_text(spec.read_text().replace("n = 64", "n = 32"))
    told = scons("host", quick_cxx, "native=no", "verbose=1").stdout
    assert "-DDIM_N=32" in told, (
        f"n = 32 in {spec.name}: the host's kernels are not compiled for it: {told or 'nothing'}"
    )


def test_a_dry_run_writes_nothing_and_fills_no_cache(scons, tree, tmp_path, quick_cxx):
    assert "[CXX]" in scons("-n", "host", quick_cxx, f"cache={tmp_path / 'cache'}").stdout
    assert not (tree / "build").exists()
    assert not (tmp_path / "cache").exists()


def test_clean_removes_everything(scons, tree, quick_cxx):
    scons("host", quick_cxx)
    for left in (tree / "build" / DESIGN / "left behind", tree / "build" / "host" / "objects" / "left.o"):
        left.parent.mkdir(parents=True, exist_ok=True)
        left.touch()
    ends(scons("-c"))
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


@pytest.mark.slow
def test_a_compiler_of_another_version_compiles_again(scons, tmp_path):
    cxx = program(tmp_path / "cxx", f'[ "$1" = --version ] && echo cxx 1 || {{ {WRITE_OUTPUT}; }}')
    scons("host", f"cxx={cxx}")
    assert "[CXX]" not in scons("host", f"cxx={cxx}").stdout
    cxx.write_text(cxx.read_text().replace("cxx 1", "cxx 2"))
    assert "[CXX]" in scons("host", f"cxx={cxx}").stdout


def test_a_cache_serves_another_tree(scons, tree, tmp_path, quick_cxx):
    cache = f"cache={tmp_path / 'a cache'}"
    scons("host", quick_cxx, cache)
    scons("-c", quick_cxx, cache)
    again = scons("host", quick_cxx, cache)
    assert f"Retrieved `build/{MLIR}' from cache" in again.stdout
    assert f"Retrieved `build/{LIBRARY}' from cache" in again.stdout
    assert "[CXX]" not in again.stdout
    assert f"  [MANIFEST] build/{MANIFEST}\n" in again.stdout
    assert built(tree) == {MLIR, MANIFEST, SCHEMA, LIBRARY}


def test_examples_are_built_without_aiecc_and_run_from_their_images(scons, tree, quick_cxx):
    """16 KiB through a memtile and back; which toolchain is to blame is said before any work."""
    result = scons("examples", quick_cxx)
    assert result.returncode == 0, result.stderr
    place = tree / "build/strix_halo/examples/pass_through"
    x, y = np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)
    words, image = (place / "insts_copy.bin").read_bytes(), (place / "pass_through.xclbin").read_bytes()
    emulate((place / "pass_through.mlir").read_text(), [x, y], instructions=words, image=image)
    same(y, x)
    result = scons("examples", "toolchain=aiecc", quick_cxx)
    assert result.returncode == 2
    assert "needs tools that are not there" in result.stderr
    assert "aiecc: looked in" in result.stderr


@pytest.mark.slow
def test_several_things_are_built_at_once(scons, tree, tmp_path):
    """Two compilers of kernels wait for each other: one at a time would never end."""
    meet = f"""case "$*" in --version) echo 1; exit;; *-shared*) ;; *) exit 1;; esac
    touch '{tmp_path}'/$$.here
    for i in $(seq 200); do [ $(ls '{tmp_path}' | grep -c here) -ge 2 ] && break; sleep 0.05; done
    [ $i -lt 200 ] || exit 9
    {WRITE_OUTPUT}"""
    spec = tree / "designs" / "gemm_i8_i2_bitnet.toml"
    (tree / "designs" / "second.toml").write_text(spec.read_text())
    ends(scons("-j2", "host", "design=gemm_i8_i2_bitnet,second", f"cxx={program(tmp_path / 'cxx', meet)}"))


def test_a_folder_that_cannot_be_made_is_named(scons, quick_cxx):
    result = scons("host", quick_cxx, "build=/dev/null/x")
    assert result.returncode == 2
    assert "scons: *** [/dev/null/x] " in result.stderr
    assert "Traceback" not in result.stderr
    assert '  File "' not in result.stderr


@pytest.mark.slow
def test_a_disk_that_fills_up_is_said_and_leaves_no_parts(tree):
    """Files stay below four KiB; then writing fails as on a full disk."""
    command = f"ulimit -f 4; exec '{sys.executable}' -B -m SCons -Q host"
    result = subprocess.run(["bash", "-c", command], cwd=tree, text=True, capture_output=True, check=False, timeout=120)
    assert result.returncode == 2
    assert f"{MLIR}: cannot be written: File too large" in result.stderr
    assert ".sconsign.dblite: cannot be written: File too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert '  File "' not in result.stderr
    assert built(tree) == set()
