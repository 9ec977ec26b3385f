"""Builds of the C++ library for tests, kept in build/test-host so that a second run compiles nothing."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from bdforge.devices import device_named
from bdforge.operators import Plan, built_files, manifest, render
from bdforge.operators.gemm import GemmPlan, plan_gemm, spec_from
from bdforge.runtime.service.software_npu import LIBRARY
from support.built_designs import compile_kernels, spec_content
from support.once import locked

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = ROOT / "build" / "test-host" / "sanitized"
ARCHIVE = "lib/libbdforge.a"
SOURCES = ("host", "tests/host")
BUILD_SECONDS = 600  # on a machine with many other jobs
SANITIZERS = (
    "address,bool,bounds,builtin,enum,integer-divide-by-zero,nonnull-attribute,object-size,pointer-overflow,return,"
    "returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound"
)
"""`address,undefined` but for checks of each pointer's alignment and type, which double the time of compiling."""

Done = subprocess.CompletedProcess[str]


def scons(build: Path, *arguments: str, check: bool = True, cwd: Path = ROOT) -> Done:
    """Runs SCons with results in `build`; one process at a time for each folder."""
    environ = {name: value for name, value in os.environ.items() if name not in ("SCONSFLAGS", "XILINX_XRT")}
    with locked(build / ".lock"):
        done = subprocess.run(
            [sys.executable, "-m", "SCons", "-Q", "-j2", f"build={build}", *arguments], cwd=cwd, env=environ,
            text=True, capture_output=True, timeout=BUILD_SECONDS, check=False,
        )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@cache
def built(build: Path, *arguments: str) -> None:
    """What `scons` makes of these arguments, made once of the same sources: SCons takes seconds to find that out."""
    wanted, record = f"{_sources()} {arguments}", build / ".built"
    with locked(build / ".built.lock"):
        known = (
            [line for line in record.read_text().splitlines() if line.startswith(_sources())]
            if record.is_file()
            else []
        )
        if wanted not in known:
            scons(build, *arguments)
            record.write_text("".join(f"{line}\n" for line in [*known, wanted]))


@cache
def _sources() -> str:
    """Everything that the library and its programs are made of, and by."""
    found = hashlib.sha256(subprocess.run(["g++", "--version"], check=True, capture_output=True).stdout)
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix not in (".py", ".pyc"))
    for path in sorted([*(ROOT / "site_scons").rglob("*.py"), ROOT / "SConstruct", *filter(Path.is_file, files)]):
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def sanitized_build() -> Path:
    """Folder of the library, bdforge-run and test programs, without XRT, with sanitizers. Others are added to it,
    which take its objects: compiling these takes longest."""
    programs = (str(SANITIZED / "host" / "tests" / name) for name in ("probe", "c_program", "c_threads"))
    built(SANITIZED, "cpp", *programs, "xrt=none", f"sanitize={SANITIZERS}")
    return SANITIZED / "host"


def unit_cases() -> Path:
    """The program of all cases of the library itself, which take as long to compile as half of it."""
    built(SANITIZED, "cpp", "cpp-tests", "xrt=none", f"sanitize={SANITIZERS}")
    return SANITIZED / "host" / "tests" / "unit"


def npu_library() -> Path:
    """The library that shows programs the software NPU; it needs no XRT."""
    return sanitized_build() / "lib" / LIBRARY


def sanitizer_runtime() -> str:
    """What programs without sanitizers must be started with to load a library that has them."""
    return subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()


FOREIGN = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
"""For programs with libraries of others, which leak, and libraries that come before the sanitizer's."""


def run(*words: Path | str, cwd: Path | None = None, environ: dict[str, str] | None = None) -> Done:
    """A program's exit code and output."""
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=os.environ | (environ or {}), text=True, capture_output=True,
        timeout=120, check=False,
    )  # fmt: skip


def c_program(folder: Path, *sources: Path, archive: Path | None = None, libraries: Sequence[str] = ()) -> Path:
    """A program of sources in C over the sanitized shared library, which links faster than an archive, or over an
    `archive` and the `libraries` which that needs; headers may lie beside the first source.
    """
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=address,undefined"]
    include = [f"-I{ROOT / 'host/include'}", f"-I{sources[0].parent}"]
    objects = [folder / f"{source.stem}.o" for source in sources]
    for source, made in zip(sources, objects, strict=True):
        done = run("g++", "-x", "c", "-std=c11", *flags, *include, "-c", source, "-o", made)
        assert done.returncode == 0, done.stderr
    lib = None if archive else sanitized_build() / "lib"
    over = [archive, *libraries, "-pthread"] if archive else [f"-L{lib}", "-lbdforge", f"-Wl,-rpath,{lib}"]
    done = run("g++", *flags, *objects, *over, "-o", folder / "program")
    assert done.returncode == 0, done.stderr
    return folder / "program"


def small_plan(**changes: int) -> GemmPlan:
    """A design of 2 x 2 cores with one built-in problem, whose edges are all ragged."""
    sizes = {"m": 16, "k": 16, "n": 32, "k_mt": 32} | changes
    content = spec_content(sizes["m"], sizes["k"], sizes["n"], k_mt=sizes["k_mt"])
    content["problems"] = [{"M": 33, "K": 40, "N": 70}]
    return plan_gemm(spec_from(content, "small"), device_named("strix_halo"))


def write_manifest(folder: Path, plan: Plan) -> Path:
    """The plan's manifest in `folder`, which is made, with the hashes of the files that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {role: folder / path for role, path in built_files(plan, plan.spec.problems).items()}
    hashes = {role: hashlib.sha256(file.read_bytes()).hexdigest() for role, file in files.items() if file.is_file()}
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest(plan, plan.spec.problems, hashes)))
    return path


def small_design(folder: Path, plan: Plan | None = None) -> Path:
    """The path of an xclbin of a plan, the small design's, as it lies in what a build leaves in `folder`.

    The file itself is a stand-in, and so is the ELF's.
    """
    plan = plan or small_plan()
    files = built_files(plan, ())
    folder.mkdir(parents=True, exist_ok=True)
    for role in ("xclbin", "elf"):
        (folder / files[role]).write_bytes(b"no " + role.replace("elf", "ELF").encode())
    (folder / files["mlir"]).write_text(render(plan, plan.spec.problems))
    compile_kernels(folder / files["host_kernels"], plan)
    write_manifest(folder, plan)
    return folder / files["xclbin"]


def edit_manifest(folder: Path, **members: object) -> None:
    """Other members in a manifest, as somebody might write them by hand."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def replace_kernels(folder: Path, plan: GemmPlan, do: str, more: str = "") -> None:
    """Kernels of a built design that all do the same, in C, with `more` beside them."""
    bodies = "".join(f"void {name}(void) {{ {do} }}\n" for name in manifest(plan, ())["kernels"])
    (folder / "kernels.c").write_text(f"#include <stdint.h>\n#include <string.h>\n#include <unistd.h>\n{bodies}{more}")
    library = folder / built_files(plan, ())["host_kernels"]
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "kernels.c", "-o", library], check=True)
    write_manifest(folder, plan)


def ternary(seed: int, K: int, N: int) -> np.ndarray:
    """Random weights of -1, 0, 1."""
    return np.random.default_rng(seed).integers(-1, 2, (K, N), np.int8)
