"""A wheel, installed outside of any checkout, does what the checkout does; it is made from the source distribution."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path

import numpy as np
import pytest
from scratch_tree import ROOT, Run, copy_tree

import bdforge
from bdforge.cli.demo import NEXT
from bdforge.cli.system_files import system_files
from support.cpu_time import spent
from support.processes import ends
from support.small_designs import loopback

pytestmark = pytest.mark.slow

FOLDERS = ("designs", "examples", "host", "kernels", "site_scons", "templates")
BUILD = "from setuptools import build_meta; print(build_meta.build_{}({!r}))"


def checked(command: list[str], **options) -> str:
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """As `python -m build --no-isolation` makes it: first the source distribution, then the wheel from that."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_tree(folder)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    sdist = checked([sys.executable, "-c", BUILD.format("sdist", str(folder))], cwd=source).splitlines()[-1]
    shutil.unpack_archive(folder / sdist, folder)
    unpacked = folder / sdist.removesuffix(".tar.gz")
    made = checked([sys.executable, "-c", BUILD.format("wheel", str(folder))], cwd=unpacked).splitlines()[-1]
    return folder / made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Callable[..., Run]:
    """Runs the command `bdforge` of a new environment, which shares only the libraries of this one."""
    folder = tmp_path_factory.mktemp("installed")
    checked([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")])
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    checked([*pip, "--no-compile", str(wheel)])  # what is imported is compiled then
    place = Path(checked([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    (place / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    work = folder / "work"
    work.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept["XDG_CACHE_HOME"] = str(folder / "cache")

    def run(*arguments: str, program: str = "bdforge") -> Run:
        return subprocess.run(
            [str(python.with_name(program)), *arguments],
            cwd=work, env=kept, text=True, capture_output=True, check=False, timeout=600,
        )  # fmt: skip

    found = run("-c", "import bdforge; print(bdforge.__file__)", program="python").stdout
    assert found.startswith(str(place)), found
    (work / "loop.mlir").write_text(loopback())
    (work / "mine.toml").write_bytes((ROOT / "designs" / "gemm_i8_i2_bitnet.toml").read_bytes())
    return run


def test_a_wheel_holds_every_file_of_the_shared_folders(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = checked(["git", "ls-files", "SConstruct", *FOLDERS], cwd=ROOT).split()
    assert {f"bdforge/share/{name}" for name in listed} - names == set()
    assert {name for name in names if "__pycache__" in name or name.startswith("tests")} == set()


def test_a_wheel_holds_every_module_and_table_of_the_packages(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = checked(["git", "ls-files", "bdforge", "bd_patterns"], cwd=ROOT).split()
    assert set(listed) - names == set()


def test_a_wheel_is_for_every_system_and_says_what_it_is(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as file:
        about = next(name for name in file.namelist() if name.endswith("/METADATA"))
        told = message_from_bytes(file.read(about))
        compiled = {name for name in file.namelist() if name.endswith((".so", ".dylib", ".pyd"))}
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("bdforge", bdforge.__version__, "Apache-2.0")
    assert told["Requires-Python"] == ">=3.11"
    assert compiled == set()


def test_a_wheel_brings_a_man_page_and_completion(wheel):
    """What shells and `man` find beside a program in PATH: pip puts it below `share` of an environment."""
    with zipfile.ZipFile(wheel) as file:
        place = f"bdforge-{bdforge.__version__}.data/data/share/"
        found = {name.removeprefix(place): file.read(name).decode() for name in file.namelist() if place in name}
    assert found == system_files()


def test_the_version_stands_in_one_place(wheel, installed):
    assert wheel.name.startswith(f"bdforge-{bdforge.__version__}-")
    assert installed("--version").stdout == f"bdforge {bdforge.__version__}\n"
    assert f"\n## {bdforge.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("render", "mine.toml", "--shape", "256x256x512"), "aie.device(npu2)"),
        (("show", "loop.mlir"), "device @main: npu2"),
        (("estimate", "mine.toml", "--shape", "256x2560x2560"), "256x2560x2560"),
        (("tune", "--types", "i8,i8,i8", "--shapes", "512x512x512", "--finalists", "0", "--out", "best.toml"), ""),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_an_installed_bdforge_works_outside_of_a_checkout(installed, arguments, said):
    done = installed(*arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


WITHOUT_COMPILER = (
    ("demo", "all 16,384 elements equal numpy's"),
    ("verify {share}/examples/add_one/add_one.mlir", "1 device, 2 tiles"),
    ("emulate {share}/examples/add_one/add_one.mlir --arg a.npy --arg b.npy --out added", "ended (emulated)"),
    ("emulate {share}/examples/chain/chain.mlir --arg a.npy --arg b.npy --kernels {share}/examples/chain/kernels.py",
     "ended (emulated)"),
    ("render {share}/designs/gemm_i8_i8_i32_one_core.toml --shape 64,128,64 -o gemm.mlir", "wrote gemm.mlir"),
    ("lower {share}/examples/pass_through.mlir -o pass.xclbin", "pass.xclbin"),
    ("explain pass.xclbin", "shim (0, 0)"),
    ("asm {share}/examples/machine_code/gemm.s -o core.elf --design gemm.mlir --core 0,2 --define TILE_M=64 --define "
     "TILE_K=64 --define TILE_N=64", "core.elf"),
    ("disasm core.elf", "vmac"),
    ("reproduce taka-table1", "Table 1"),
    ("doctor", "missing  C++ compiler g++"),
)  # fmt: skip
"""Commands, and what they print, where the only programs are those of the environment."""

FIRST_MINUTE = 4  # of these: `demo`, `verify`, `emulate`


def test_a_fresh_environment_without_a_compiler_is_a_minute_from_its_first_design(wheel, tmp_path):
    taken = [(spent(), "")]  # of CPU, since others may keep the machine busy
    checked([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    programs = tmp_path / "venv" / "bin"
    checked([str(programs / "pip"), "install", "-q", "--no-compile", str(wheel)])
    environ = {"PATH": str(programs), "HOME": str(tmp_path), "PYTHONWARNINGS": "error::ResourceWarning"}
    checked([str(programs / "python"), "-c", "import numpy as np; np.save('a.npy', np.arange(-48, 48, dtype='i4')); "
             "np.save('b.npy', np.zeros(96, 'i4'))"], cwd=tmp_path)  # fmt: skip
    (share,) = tmp_path.glob("venv/lib/*/site-packages/bdforge/share")
    for words, said in WITHOUT_COMPILER:
        command = [str(programs / "bdforge"), *words.format(share=share).split()]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, text=True, capture_output=True, check=False, timeout=120
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), f"{words}: {done.stderr}"
        assert said in done.stdout + done.stderr, words
        taken.append((spent(), words))
    assert (np.load(tmp_path / "added" / "b.npy") == np.arange(-47, 49)).all()
    in_project = [line for line in NEXT.splitlines() if line.startswith("  bdforge")]
    for line in in_project:
        checked([str(programs / "bdforge"), *shlex.split(line, comments=True)[1:]], cwd=tmp_path, env=environ)
    assert taken[FIRST_MINUTE][0] - taken[0][0] < 60, taken


@pytest.mark.slow  # a project of one's own is built and run the same way
def test_an_installed_bdforge_builds_and_runs_a_design(installed):
    made = installed("build", "mine.toml", "--out", "made")
    assert made.returncode == 0, made.stdout + made.stderr
    assert made.stdout.count("  [") == 3
    again = installed("build", "mine.toml", "--out", "made")
    assert (again.returncode, again.stdout.count("  [")) == (0, 0)
    ran = installed("run", "made/strix_halo/mine", "--shape", "16x256x512")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "mine" in ran.stdout


def in_project(installed: Callable[..., Run], *words: str) -> str:
    """Runs a Python module in the project that `bdforge new` has written."""
    done = installed("-c", f"import os, runpy, sys; os.chdir('ours'); sys.argv = {list(words)}; "
                     "runpy.run_module(sys.argv[0], run_name='__main__')", program="python")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow  # a checkout's build is the same; daily an installed one names what it lacks
def test_a_project_of_ones_own_is_built_and_emulated(installed):
    ends(installed("new", "ours"))
    out = in_project(installed, "SCons", "-Q", "design=transpose", "emulate")
    steps = ["[MLIR]", "[CXX]", "[COPY]", "[MANIFEST]", "[EMULATE]"]
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  [")] == steps
    assert "exact" in out


def test_a_project_of_ones_own_passes_its_tests(installed):
    installed("new", "ours", "--force")
    assert "3 passed" in in_project(installed, "pytest", "-q", "-p", "no:cacheprovider")


def test_a_project_of_ones_own_runs_an_operator_from_cpp(installed):
    installed("new", "ours", "--force")
    in_project(installed, "SCons", "-Q", "design=gemm", "emulate")
    in_project(installed, "SCons", "-Q", "optimise=no", "app")
    words = ["ours/build/app", "ours/build/strix_halo/gemm/gemm.xclbin"]
    done = installed("-c", f"import subprocess; subprocess.run({words}, check=True)", program="python")
    assert done.stdout == "20x96x72 on emulated: every element right\n"


def test_a_design_that_is_not_there_is_one_sentence(installed):
    done = installed("build", "other.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("scons: /")
    assert done.stderr.endswith("/other.toml: cannot be read: No such file or directory\n")
