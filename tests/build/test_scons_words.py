"""What the site tools make of choices, asked without SCons running: commands, kernels, files, targets."""
# ruff: noqa: N802  methods of a construction environment are called as SCons calls them

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bdforge.common.messages import InputError
from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.devices import Generation, device_named
from bdforge.runtime.toolchain import Tool

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / "site_scons"), str(ROOT / "site_scons/site_tools")]
HALO, PHOENIX = "strix_halo", "phoenix"


@pytest.fixture(scope="module")
def tool() -> Iterator[Callable[[str], ModuleType]]:
    """Modules of the build by name; names that others have come back when the tests end."""
    names = [path.stem for folder in FOLDERS for path in Path(folder).glob("*.py")]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path[:0] = FOLDERS
    yield importlib.import_module
    del sys.path[: len(FOLDERS)]
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)


class Env(dict):
    """A construction environment's variables; `project` is where it is."""

    project = ROOT

    def Dir(self, _name: str) -> SimpleNamespace:
        return SimpleNamespace(get_abspath=lambda: str(self.project))

    def File(self, name: str) -> str:
        return name


def found(name: str, path: str | None) -> Tool:
    return Tool(name, Path(path) if path else None, "1", (), "get it")


@pytest.mark.parametrize(
    ("native", "flags"), [(True, ["-march=native", "-mno-avx512vnni"]), (False, [])], ids=["native", "any machine"]
)
def test_host_kernels_are_one_shared_library_for_this_processor_or_any(tool, monkeypatch, native: bool, flags: list):
    module = tool("hostkernel")
    monkeypatch.setattr(module, "native_flags", lambda cxx, level: [*flags] if (cxx, level) == ("c++", "-O3") else None)
    env = Env(cxx="c++", native=native, KERNEL_DEFINES=["-DM=64"])
    assert module.command(["lib.so"], ["a.cc", "b.cc"], env) == [
        "c++", "-std=c++20", "-O3", *flags, "-fPIC", "-shared", "-Ikernels/hostapi", "-Ikernels", "-DM=64", "-o",
        "lib.so", "a.cc", "b.cc",
    ]  # fmt: skip


@pytest.mark.parametrize(("device", "target"), [(HALO, "aie2p-none-unknown-elf"), (PHOENIX, "aie2-none-unknown-elf")])
@pytest.mark.parametrize("there", [True, False], ids=["with tools", "without"])
def test_peano_compiles_for_the_devices_cores(tool, device: str, target: str, there: bool):
    module = tool("peano")
    clang, linker, api = ("/p/clang++", "/p/ld.lld", "/w/include/aie_api/aie.hpp") if there else (None, None, None)
    tools = [found("clang", clang), found("lld", linker), found("api", api)]
    env = Env(device=device, kernel_opt="s", KERNEL_DEFINES=["-DM=64"], PEANO_TOOLS=tools)
    words = module.compile_command(["a.o"], ["a.cc"], env)
    assert words[:3] == [clang or "clang++", f"--target={target}", "-Os"]
    assert {"-ffunction-sections", "-fstack-size-section", "-std=c++20", "-DNDEBUG"} < set(words)
    assert ("-I/w/include" in words) == there
    assert words[-6:] == ["-Ikernels", "-DM=64", "-c", "a.cc", "-o", "a.o"]
    assert module.merge_command(["d.o"], ["a.o", "b.o"], env) == [linker or "ld.lld", "-r", "-o", "d.o", "a.o", "b.o"]


@pytest.mark.parametrize(("cxx", "optimise", "sanitize", "level"), [
    ("g++", True, "", "-O2"), ("g++", True, "address", "-O0"), ("g++", False, "", "-O0"),
    ("g++", False, "address", "-O0"), ("clang++-19", True, "address", "-O0"),
])  # fmt: skip
def test_the_library_is_optimised_unless_it_is_sanitized(tool, cxx: str, optimise: bool, sanitize: str, level: str):
    module = tool("xrt_host")
    env = Env(optimise=optimise, sanitize=sanitize, xrt="none", ENV={"PATH": ""}, cxx=cxx, BUILDERS={})
    env.Tool = lambda _name: None  # type: ignore[attr-defined]
    module.generate(env)
    assert (env["OPTIMISE"], env["XRT"]) == (level, None)
    env |= {"CPPPATH": ["inc"], "CPPDEFINES": ["X=1"], "SYSTEM": ["sys"], "LIBRARIES": ["-lone"]}
    seen = ["-fsanitize=address", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"] if sanitize else []
    seen += ["--param=asan-instrumentation-with-call-threshold=0"] if sanitize and cxx == "g++" else []
    strict = ["-Wall", "-Wextra", "-Werror"]
    memory = (
        ["--param=ggc-min-expand=500", "--param=ggc-min-heapsize=1000000"] if (level, cxx) == ("-O0", "g++") else []
    )
    assert module.compile_command(["a.o"], ["xrt/a.cpp"], env) == [
        cxx, "-std=c++20", level, "-fPIC", *strict, *seen, *memory, "-DX=1", "-Iinc", "-isystem", "sys", "-c",
        "xrt/a.cpp", "-o", "a.o",
    ]  # fmt: skip
    assert module.program_command(["p"], ["a.o"], env) == [cxx, *seen, "-o", "p", "a.o", "-lone", "-pthread"]
    shared = module.shared_command([Path("l.so")], ["a.o", "l.map"], env)
    assert shared == [
        cxx, "-shared", "-Wl,-soname,l.so", *seen, "-o", "l.so", "a.o", "-Wl,--version-script=l.map", "-lone",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "headers"), [("src/xrt_backend.cpp", True), ("src/xrt_absent.cpp", False), ("src/a.cpp", False)]
)
def test_only_the_backend_for_xrt_sees_its_headers(tool, source: str, headers: bool):
    xrt = SimpleNamespace(include=Path("/x/include"), library=Path("/x/lib"))
    env = Env(OPTIMISE="-O2", sanitize="", XRT=xrt, cxx="g++", CPPPATH=[])
    module = tool("xrt_host")
    words = module.compile_command(["a.o"], [source], env)
    assert ("/x/include" in words) == headers, words
    linked = module.program_command(["p"], ["a.o"], env)
    assert linked[4:7] == ["-L/x/lib", "-Wl,-rpath,/x/lib", "-lxrt_coreutil"]
    assert linked[7:9] == ["-luuid", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]


@pytest.mark.parametrize(("wanted", "kernels", "there", "chosen"), [
    ("auto", "auto", True, "aiecc"), ("auto", "auto", False, "bdforge"), ("auto", "asm", True, "bdforge"),
    ("auto", "cpp", True, "aiecc"), ("aiecc", "auto", False, "aiecc"), ("bdforge", "auto", True, "bdforge"),
    ("bdforge", "asm", False, "bdforge"),
])  # fmt: skip
def test_xclbins_are_made_by_aiecc_where_it_is_found_and_no_assembly_is_asked_for(
    tool, wanted: str, kernels: str, there: bool, chosen: str
):
    env = Env(toolchain=wanted, kernels=kernels, AIECC_TOOLS=[found("aiecc", "/aiecc" if there else None)], BUILDERS={})
    tool("toolchain").generate(env)
    assert env["TOOLCHAIN"] == chosen


LACKING, ALL = ["elementwise_bf16"], ["zero_i32"]


@pytest.fixture
def toolchain(tool, monkeypatch) -> ModuleType:
    """The tool, for which one kernel is not assembled for this device with these macros."""
    module = tool("toolchain")

    def lacking(names: list[str], generation: Generation, macros: list[str]) -> dict[str, str]:
        assert (generation.name, macros) == ("AIE2P", ["TILE_M=16"])
        return {name: f"{name} is not assembled" for name in names if name in LACKING}

    monkeypatch.setattr(module, "cpp_only", lacking)
    return module


@pytest.mark.parametrize(("chosen", "kernels", "names", "peano", "objects"), [
    ("aiecc", "auto", ALL, False, True), ("bdforge", "cpp", ALL, False, True), ("bdforge", "auto", ALL, True, False),
    ("bdforge", "asm", ALL, True, False), ("bdforge", "auto", LACKING, True, True),
    ("bdforge", "auto", LACKING, False, False),
])  # fmt: skip
def test_objects_of_peano_are_for_aiecc_for_a_wish_and_for_what_is_not_assembled(
    toolchain, chosen: str, kernels: str, names: list[str], peano: bool, objects: bool
):
    peano_tool = found("clang", "/p/clang++" if peano else None)
    env = Env(TOOLCHAIN=chosen, kernels=kernels, device=HALO, PEANO_TOOLS=[peano_tool])
    assert toolchain.compiled(env, names, ["TILE_M=16"]) is objects
    assert toolchain.assembled(env, names, ["TILE_M=16"]) is (names is ALL)


@pytest.mark.parametrize(("kernels", "names", "taken"), [
    ("auto", [*ALL, *LACKING], LACKING), ("cpp", [*ALL, *LACKING], [*ALL, *LACKING]), ("asm", ALL, []),
])  # fmt: skip
def test_kernels_of_objects_are_those_that_are_not_assembled_or_all(toolchain, monkeypatch, kernels, names, taken):
    one = {name: AssemblyKernel.__new__(AssemblyKernel) for name in [*ALL, *LACKING]}
    files = {("d.o", "aie2p"): one}
    monkeypatch.setattr(toolchain, "linkable", lambda path, generation: files.get((path.name, generation), {}))
    env = Env(device=HALO, kernels=kernels, KERNELS=names, KERNEL_MACROS=["TILE_M=16"])
    node = SimpleNamespace(get_abspath=lambda: "/b/d.o")
    assert list(toolchain._given([node], env)) == taken
    if taken:
        other = SimpleNamespace(get_abspath=lambda: "/b/e.o")
        with pytest.raises(InputError, match=f"no function {sorted(taken)[0]}, which the cores call"):
            pytest.fail(f"kernels={kernels} takes {list(toolchain._given([other], env))} of an object without any")


HASH = hashlib.sha256(b"mlir").hexdigest()
EARLIER = {"mlir": {"sha256": HASH}, "xclbin": {"sha256": "1"}, "elf": {"sha256": "2"}, "more": {"sha256": "3"}}


@pytest.mark.parametrize(("content", "mlir", "kept"), [
    (json.dumps({"files": EARLIER}), HASH, {"mlir": HASH, "xclbin": "1"}),
    (json.dumps({"files": EARLIER}), HASH[1:], {}), ("{", HASH, {}), ("[]", HASH, {}), ("{}", HASH, {}),
    (None, HASH, {}),
], ids=["the same MLIR", "another MLIR", "no JSON", "a list", "an older kind", "none"])  # fmt: skip
def test_a_manifest_keeps_files_of_the_same_mlir_that_are_still_there(tool, tmp_path, content, mlir, kept):
    paths = {role: tmp_path / role for role in ("mlir", "xclbin", "elf")}
    for role in ("mlir", "xclbin"):
        paths[role].touch()
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert tool("manifest")._earlier(tmp_path / "manifest.json", mlir, paths) == kept


def nodes(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(get_abspath=lambda name=name: f"/home/{name}") for name in names]


@pytest.mark.parametrize(("targets", "of_all", "asked"), [
    ([], True, True), ([], False, False), (["all"], True, True), (["all"], False, False), (["host"], True, False),
    (["emulate"], True, False), (["build/host/x.xclbin"], False, True), (["build"], True, True),
    (["build/host"], False, True), (["build/ho"], True, False), (["build/host/x.xclbin/y"], True, False),
    (["host", "build"], False, True),
])  # fmt: skip
def test_a_node_is_asked_for_by_default_by_its_path_or_by_a_folder_above(tool, monkeypatch, targets, of_all, asked):
    module = tool("choices")
    monkeypatch.setattr(module, "COMMAND_LINE_TARGETS", targets)
    monkeypatch.setattr(module, "GetLaunchDir", lambda: "/home")
    assert module.asks_for(nodes("build/other", "build/host/x.xclbin", "host/a", "emulate/b"), of_all) is asked


def test_files_of_a_project_come_before_those_of_bdforge(tool, tmp_path):
    module, env = tool("commands"), Env()
    env.project = tmp_path
    (tmp_path / "kernels").mkdir()
    for name in ("kernels/mine.cc", "kernels/both.h"):
        (tmp_path / name).touch()
    assert module.searched(env, "kernels/mine.cc") == "#kernels/mine.cc"
    assert module.searched(env, "kernels/hostapi/entry.cc") == str(ROOT / "kernels/hostapi/entry.cc")
    assert module.searched(env, "kernels/nowhere.cc") == "#kernels/nowhere.cc"
    assert module.includes(env, "kernels", "nowhere") == ["-Ikernels", f"-I{ROOT / 'kernels'}"]
    headers = module.kernel_headers(env)
    assert headers[0] == "#kernels/both.h"
    assert len(headers) == 1 + sum(path.suffix in (".h", ".hpp") for path in (ROOT / "kernels").rglob("*"))


SOURCE = "kernels/aie2p/elementwise_bf16.cc"


def test_kernels_of_a_design_elsewhere_are_looked_for_beside_it(tool, tmp_path, capsys):
    module = tool("commands")
    for name in ("designs/beside.cc", "kernels/above.cc"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    env = Env(BESIDE=tmp_path / "designs")
    for bare, place in {"beside": tmp_path / "designs", "above": tmp_path / "kernels"}.items():
        assert module.searched(env, f"kernels/{bare}.cc") == str(place / f"{bare}.cc")
    assert module.searched(env, SOURCE) == f"#{SOURCE}"
    assert module.includes(env, "kernels") == [f"-I{tmp_path / 'kernels'}", "-Ikernels"]
    with pytest.raises(SystemExit):
        module.searched(env, "kernels/nowhere.cc")
    said = f"kernel nowhere.cc: not found; looked for it in {tmp_path / 'designs'}, {tmp_path / 'designs/kernels'}, "
    assert capsys.readouterr().err.startswith(f"scons: {said}{tmp_path / 'kernels'}, {ROOT / 'kernels'}")


@pytest.mark.parametrize(("compiled", "architecture", "device"), [
    (True, 21, HALO), (False, 21, HALO), (False, 20, PHOENIX),
])  # fmt: skip
def test_kernels_know_their_generation_on_the_host_and_one_object_is_linked(tool, compiled, architecture, device):
    made: list[tuple] = []

    class Kernels(Env):
        def Clone(self, **more: Any) -> "Kernels":
            return Kernels(self | more)

        def HostKernels(self, library: str, sources: list[str]) -> str:
            made.append((library, sources, self["KERNEL_DEFINES"]))
            return library

        def PeanoObject(self, target: str, source: Any) -> str:
            return f"{target} of {source.name} with {self['KERNEL_DEFINES']}"

        def KernelObject(self, target: str, objects: list[str]) -> tuple[str, list[str]]:
            return target, objects

        def File(self, name: str) -> Any:
            return SimpleNamespace(name=name.strip("#"))

    assert device_named(device).generation.compiler_architecture == architecture
    place, env = SimpleNamespace(File=lambda name: f"b/{name}"), Kernels(device=device)
    library, merged = tool("commands").kernels(env, place, "d", Path("d.toml"), [SOURCE], ["M=4"], compiled)
    assert library == "b/kernels/libd.so"
    _, sources, defines = made.pop()
    assert defines == ["-DM=4", f"-D__AIE_ARCH__={architecture}"]
    assert [source.name for source in sources] == [SOURCE, "kernels/hostapi/entry.cc"]
    objects = [f"b/kernels/elementwise_bf16.o of {SOURCE} with ['-DM=4']"]
    assert merged == (("b/d.o", objects) if compiled else [])
