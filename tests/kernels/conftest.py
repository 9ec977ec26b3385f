"""Libraries compiled once per session and configuration."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from kernel_library import ARCH, ENTRY, HERE, Library, compile_without_warning, gxx, sources, tile_options

MODES = HERE / "modes_probe.cc"


@pytest.fixture(scope="session")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Object file by which hosts call kernels and set their modes."""
    folder = tmp_path_factory.mktemp("entry")
    for source in (ENTRY, MODES):
        compile_without_warning("-c", "-O0", source, "-o", folder / f"{source.stem}.o")
    compile_without_warning("-r", "-nostdlib", *folder.glob("*.o"), "-o", folder / "all.o")
    return folder / "all.o"


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The stand-in as a precompiled header, by the g++ options that count for it: parsing it takes most of the time."""

    @cache
    def build(*options: str) -> Path:
        header = tmp_path_factory.mktemp("api") / "api.hpp"
        header.write_text("#include <aie_api/aie.hpp>\n")
        compile_without_warning(*options, "-x", "c++-header", header, "-o", f"{header}.gch")
        return header

    return build


@pytest.fixture(scope="session")
def refusal(api: Callable[..., Path]) -> Callable[..., str]:
    """What g++ says of a kernel, by generation, name and options, when it refuses it."""

    def compile(generation: str, name: str, *options: str) -> str:
        arch = ARCH[generation]
        include = ("-include", api("-O0", *arch), "-fPIC", "-O0", *arch)
        result = gxx("-fsyntax-only", *include, *options, *sources(name))
        assert result.returncode != 0
        return result.stderr

    return compile


@pytest.fixture(scope="session")
def kernel_library(
    tmp_path_factory: pytest.TempPathFactory, entry: Path, api: Callable[..., Path]
) -> Callable[..., Library]:
    """Kernels of a generation ("aie2p", "aie2"), or "reference", by name, tile and further g++ options."""

    @cache
    def build(generation: str, names: tuple[str, ...], tile: tuple[int, int, int], *options: str) -> Library:
        path = tmp_path_factory.mktemp("kernels") / "kernels.so"
        options = (*ARCH[generation], *options)
        options = options if any(option.startswith("-O") for option in options) else ("-O0", *options)
        header = api(*(option for option in options if option.startswith(("-O", "-m", "-D__AIE", "-DHOSTAPI"))))
        include = ("-include", str(header), "-Winvalid-pch")
        return Library(path, sources(*names), *include, *options, *tile_options(*tile), entry=entry)

    return build


@pytest.fixture(scope="session")
def gemm_library(kernel_library: Callable[..., Library]) -> Callable[..., Library]:
    """The ternary kernels of AIE2P, by tile and further g++ options."""

    def build(m: int, k: int, n: int, *options: str) -> Library:
        names = ("mm_i8_i2_i32", "unscale_i32", "zero_i32", "reference")
        return kernel_library("aie2p", names, (m, k, n), *options)

    return build


@pytest.fixture(scope="session")
def compiled_probe(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("probe") / "probe.so", [HERE / "hostapi_probe.cc", MODES], "-O0")


@pytest.fixture
def probe(compiled_probe: Library) -> Library:
    """The functions of hostapi_probe.cc, with all cores freshly reset."""
    compiled_probe.reset()
    return compiled_probe


@pytest.fixture(scope="session")
def mmul_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Library]:
    """Every legal aie::mmul, by architecture and further g++ options."""

    @cache
    def build(arch: int, *options: str) -> Library:
        path = tmp_path_factory.mktemp("mmul") / "mmul.so"
        return Library(path, [HERE / "mmul_probe.cc"], "-O0", f"-D__AIE_ARCH__={arch}", *options)

    return build
