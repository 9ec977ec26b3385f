"""Running members of the GEMM family on the emulated array, with kernels that several of them share."""

import subprocess
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from bdforge.emulator import emulate
from bdforge.images.build import image, program_of
from bdforge.lower import configuration
from bdforge.operators import render
from bdforge.operators.gemm import Plan
from bdforge.runtime.kernels import load_kernels
from bdforge.sequences.buffers import arguments, fetched, placed
from support.built_designs import ROOT
from support.decoded import device_of
from support.family import Member
from support.family_oracle import Data, check, random_data

ENTRY = ROOT / "kernels" / "hostapi" / "entry.cc"
FLAGS = ["-std=c++20", "-march=native", "-fPIC", f"-I{ROOT / 'kernels' / 'hostapi'}"]
SCHEDULES = ({"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2, "poison": True})


class KernelShop:
    """Compiles kernels once for each set of sources and macros, with the headers of the stand-in compiled before."""

    def __init__(self, folder: Path, speed: str = "-O1"):
        self.folder, self._flags = folder, [speed, *FLAGS]
        self._libraries: dict[tuple, Mapping[str, Callable]] = {}

    @cached_property
    def entry(self) -> Path:
        """The object file of the calls' entry."""
        path = self.folder / "entry.o"
        _gxx(*self._flags, "-c", ENTRY, "-o", path)
        return path

    def header(self, architecture: str) -> Path:
        """A header that includes the stand-in, compiled for an architecture."""
        header = self.folder / architecture.strip("_") / "api.hpp"
        if not header.exists():
            header.parent.mkdir(parents=True)
            header.write_text("#include <aie_api/aie.hpp>\n")
            _gxx(*self._flags, f"-D{architecture}", "-x", "c++-header", header, "-o", f"{header}.gch")
        return header

    def refusal(self, source: str, defines: tuple[str, ...]) -> str:
        """What the compiler says against a source with these macros, the last of which is the architecture; or ''."""
        words = ["-include", self.header(defines[-1]), *self._flags, *(f"-D{macro}" for macro in defines)]
        command = ["g++", *map(str, words), "-fsyntax-only", str(ROOT / source)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    def library(self, plan: Plan) -> Mapping[str, Callable]:
        """A plan's kernels, ready to be called."""
        key = plan.kernels.sources, plan.host_defines
        if key not in self._libraries:
            folder = self.folder / str(len(self._libraries))
            folder.mkdir()
            *macros, architecture = plan.host_defines
            include = ["-include", self.header(architecture)]
            objects = [folder / f"{Path(source).stem}.o" for source in plan.kernels.sources]
            for source, made in zip(plan.kernels.sources, objects, strict=True):
                defines = [f"-D{macro}" for macro in (*macros, architecture)]
                _gxx(*include, *self._flags, *defines, "-c", ROOT / source, "-o", made)
            _gxx("-shared", *objects, self.entry, "-o", folder / "kernels.so")
            self._libraries[key] = load_kernels(folder / "kernels.so")
        return self._libraries[key]


def _gxx(*words: str | Path) -> None:
    subprocess.run(["g++", *map(str, words)], check=True)


def run(plan: Plan, problem, data: Data, kernels, text: str | None = None, **options) -> np.ndarray:
    """C of a problem on the emulated array."""
    planned = plan.sequence(problem)
    buffers = arguments(planned, placed(planned, data.inputs))
    result = emulate(text or render(plan, [problem]), buffers, kernels, **options)
    assert result.warnings == ()
    return fetched(planned, buffers)["C"]


def own_pdi(text: str) -> bytes:
    """The image of a design's text."""
    return image(configuration(device_of(text), program_of), ".pdi", bare=True)


def faults(member: Member, shop: KernelShop, seed: int) -> list[str]:
    """What is wrong with a member's results under two adversarial schedules, the second booted from its own PDI."""
    plan, problem = member.plan, member.problem
    data, text, found = random_data(plan, problem, seed), render(plan, [problem]), []
    for options, booted in zip(SCHEDULES, (None, own_pdi(text)), strict=True):
        c = run(plan, problem, data, shop.library(plan), text, image=booted, **options)
        if wrong := check(plan, data, c):
            found.append(f"{member} under {options}: {wrong}")
    return found
