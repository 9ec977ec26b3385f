"""Libraries of kernels: all builds that a module lists in BUILDS together, in a unit for each generation.

They and what g++ refuses are kept in build/test-kernels, so that a second run compiles nothing.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from kernel_library import (
    ARCH,
    HERE,
    KERNELS,
    PLAIN,
    Build,
    Library,
    compile_without_warning,
    gxx,
    sources,
    unit,
)

from support.built_designs import QUICK, made_of_kernels

HEADERS = ("aie_api/aie.hpp", "algorithm", "array", "cstdint", "cstring", "iterator", "utility")
Api = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="session")
def api() -> Api:
    """Options that give a source the stand-in of a generation, precompiled: parsing it takes most of the time."""

    @cache
    def build(generation: str, *others: str) -> tuple[str, ...]:
        options = (*QUICK, *ARCH[generation], *others)

        def make(folder: Path) -> None:
            header = folder / "api.hpp"
            header.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
            compile_without_warning(*options, "-x", "c++-header", header, "-o", f"{header}.gch")

        folder = made_of_kernels(("api", *options, *HEADERS), make)
        return (*options, "-include", str(folder / "api.hpp"), "-Winvalid-pch")

    return build


@pytest.fixture(scope="session")
def shared(api: Api) -> Callable[..., Library]:
    """A library of sources, or of a unit of builds, by g++ options, with what lets hosts call kernels and set their
    modes."""

    def entry(folder: Path) -> None:
        for source in (KERNELS / "hostapi" / "entry.cc", HERE / "modes_probe.cc"):
            compile_without_warning("-c", *api("aie2p"), source, "-o", folder / f"{source.stem}.o")

    @cache
    def build(of: tuple[Path | Build, ...], *options: str) -> Path:
        def make(folder: Path) -> None:
            files = [part for part in of if isinstance(part, Path)]
            if builds := [part for part in of if isinstance(part, Build)]:
                files = [folder / "unit.cc"]
                files[0].write_text(unit(builds, options))
            objects = made_of_kernels("entry", entry).glob("*.o")
            compile_without_warning("-shared", *options, *files, *objects, "-o", folder / "kernels.so")

        return made_of_kernels((of, options), make) / "kernels.so"

    return lambda of, *options, suffix="": Library(build(tuple(of), *options), suffix)


@pytest.fixture(scope="session")
def refusal(api: Api) -> Callable[..., str]:
    """What g++ says of a kernel, by generation, name and options, when it refuses it; nothing when it takes it."""

    def compile(generation: str, name: str, *options: str) -> str:
        command = ("-fsyntax-only", "-fPIC", *api(generation), *options, *sources(name))

        def make(folder: Path) -> None:
            result = gxx(*command)
            (folder / "stderr").write_text(result.stderr if result.returncode != 0 else "")

        return (made_of_kernels(command, make) / "stderr").read_text()

    return compile


@pytest.fixture(scope="module")
def kernel_library(request: pytest.FixtureRequest, shared: Callable[..., Library], api: Api) -> Callable[..., Library]:
    """A Build's kernels. What no BUILDS lists is compiled alone, and as its own options say if these are of speed."""
    listed: list[Build] = list(dict.fromkeys(getattr(request.module, "BUILDS", [])))

    def api_of(build: Build) -> tuple[str, ...]:
        return api(build.generation, *{PLAIN}.intersection(build.options))

    def build(asked: Build) -> Library:
        if any(option.startswith(("-O", "-m")) for option in asked.options):
            return shared(sources(*asked.names), *ARCH[asked.generation], *asked.flags)
        target = api_of(asked)
        builds = [build for build in listed if api_of(build) == target] if asked in listed else [asked]
        return shared(builds, *target, suffix=f"_{builds.index(asked)}")

    return build


@pytest.fixture(scope="session")
def compiled_probe(shared: Callable[..., Library], api: Api) -> Library:
    return shared([HERE / "hostapi_probe.cc"], *api("aie2p"))


@pytest.fixture
def probe(compiled_probe: Library) -> Library:
    """The functions of hostapi_probe.cc, with all cores freshly reset."""
    compiled_probe.reset()
    return compiled_probe


@pytest.fixture(scope="session")
def mmul_library(shared: Callable[..., Library], api: Api) -> Callable[..., Library]:
    """Every legal aie::mmul, by generation and further g++ options."""

    def build(generation: str, *options: str) -> Library:
        told = (*ARCH[generation], "-O0", *options) if "-march=native" in options else api(generation, *options)
        return shared([HERE / "mmul_probe.cc"], *told)

    return build
