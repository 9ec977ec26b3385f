"""Libraries compiled once per session and configuration."""

from collections.abc import Callable
from functools import cache

import pytest
from kernel_library import HERE, SOURCES, Library, tile_options

MODES = HERE / "modes_probe.cc"


@pytest.fixture(scope="session")
def gemm_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Library]:
    """Our kernels and their references, by tile and further g++ options."""

    @cache
    def build(m: int, k: int, n: int, *options: str) -> Library:
        path = tmp_path_factory.mktemp("gemm") / "kernels.so"
        return Library(path, [*SOURCES, MODES], *(options or ("-O0",)), *tile_options(m, k, n))

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
