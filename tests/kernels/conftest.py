"""Libraries compiled once per session and configuration."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from kernel_library import ARCH, ENTRY, HERE, Library, compile_without_warning, gxx, sources, tile_options

MODES = HERE / "modes_probe.cc"


@pytest.fixture(scope="session")
def entry(tmp_path_factory: pytest.TempPathFactory, api: Callable[[str], tuple[str, ...]]) -> Path:
    """Object file by which hosts call kernels and set their modes."""
    folder = tmp_path_factory.mktemp("entry")
    for source in (ENTRY, MODES):
        compile_without_warning("-c", *api("aie2p"), source, "-o", folder / f"{source.stem}.o")
    compile_without_warning("-r", "-nostdlib", *folder.glob("*.o"), "-o", folder / "all.o")
    return folder / "all.o"


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, ...]]:
    """Options that give a source the stand-in of a generation, precompiled and not optimised: parsing it takes most of
    the time."""

    @cache
    def build(generation: str) -> tuple[str, ...]:
        header, options = tmp_path_factory.mktemp("api") / "api.hpp", ("-O0", *ARCH[generation])
        header.write_text("#include <aie_api/aie.hpp>\n")
        compile_without_warning(*options, "-x", "c++-header", header, "-o", f"{header}.gch")
        return (*options, "-include", str(header), "-Winvalid-pch")

    return build


@pytest.fixture(scope="session")
def refusal(api: Callable[[str], tuple[str, ...]]) -> Callable[..., str]:
    """What g++ says of a kernel, by generation, name and options, when it refuses it; nothing when it takes it."""

    def compile(generation: str, name: str, *options: str) -> str:
        result = gxx("-fsyntax-only", "-fPIC", *api(generation), *options, *sources(name))
        return result.stderr if result.returncode != 0 else ""

    return compile


@pytest.fixture(scope="session")
def kernel_library(
    tmp_path_factory: pytest.TempPathFactory, entry: Path, api: Callable[[str], tuple[str, ...]]
) -> Callable[..., Library]:
    """Kernels of a generation ("aie2p", "aie2"), or references, by name, tile and further g++ options.

    Not optimised unless these say so. What few are compiled with takes no precompiled header: making it costs more.
    """

    @cache
    def build(generation: str, names: tuple[str, ...], tile: tuple[int, int, int], *options: str) -> Library:
        path = tmp_path_factory.mktemp("kernels") / "kernels.so"
        rare = any(option.startswith(("-O", "-m", "-DHOSTAPI")) for option in options)
        target = ARCH[generation] if rare else api(generation)
        return Library(path, sources(*names), *target, *options, *tile_options(*tile), entry=entry)

    return build


@pytest.fixture(scope="session")
def gemm_library(kernel_library: Callable[..., Library]) -> Callable[..., Library]:
    """The ternary kernels of AIE2P, by tile, or the product alone by tile and further g++ options."""

    def build(m: int, k: int, n: int, *options: str) -> Library:
        others = () if options else ("unscale_i32", "zero_i32", "reference")
        return kernel_library("aie2p", ("mm_i8_i2_i32", *others), (m, k, n), *options)

    return build


@pytest.fixture(scope="session")
def compiled_probe(
    tmp_path_factory: pytest.TempPathFactory, entry: Path, api: Callable[[str], tuple[str, ...]]
) -> Library:
    folder = tmp_path_factory.mktemp("probe")
    return Library(folder / "probe.so", [HERE / "hostapi_probe.cc"], *api("aie2p"), entry=entry)


@pytest.fixture
def probe(compiled_probe: Library) -> Library:
    """The functions of hostapi_probe.cc, with all cores freshly reset."""
    compiled_probe.reset()
    return compiled_probe


@pytest.fixture(scope="session")
def mmul_library(tmp_path_factory: pytest.TempPathFactory, entry: Path) -> Callable[..., Library]:
    """Every legal aie::mmul, by architecture and further g++ options."""

    @cache
    def build(arch: int, *options: str) -> Library:
        path = tmp_path_factory.mktemp("mmul") / "mmul.so"
        return Library(path, [HERE / "mmul_probe.cc"], "-O0", f"-D__AIE_ARCH__={arch}", *options, entry=entry)

    return build
