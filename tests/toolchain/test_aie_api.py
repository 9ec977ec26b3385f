"""The real AIE API: it takes and refuses what the list of probes says, and our kernels with every option of theirs.

Runs where Peano and mlir-aie are installed; skips with what is missing elsewhere.
"""

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.runtime.toolchain import find_aie_api, find_peano, missing_report
from support.api_probes import PRELUDE, Probe, probes, unit

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
GENERATIONS = (AIE2P, AIE2)
ACCEPTED = [probe for probe in probes() if probe.on != "none"]
REFUSED = [(g, p) for g in GENERATIONS for p in probes() if not p.accepted(g.name.lower())]

FLAGS = ("-std=c++20", "-DNDEBUG", "-w", "-Wno-missing-template-arg-list-after-template-kw")
TILE = (*(f"-DDIM_{axis}=64" for axis in "MKN"), "-DARRAY_ROWS=4", "-DTILE_ELEMENTS=64")
OPTIONS = {
    "mm": (("-DA_TRANSPOSED",), ("-DB_TRANSPOSED",), ("-DC_TRANSPOSED",), ("-DDIM_RHO=2",), ("-DSHIFT=3",)),
    "finish": tuple(
        tuple(chosen)
        for count in (1, 2)
        for chosen in itertools.combinations(("-DBIAS", "-DRELU", "-DC_TRANSPOSED", "-DFIELD_SCALED", "-DSCALE"), count)
    ),
    "unscale": (("-DRELU",),),
    "zero": (),
    "elementwise": tuple((f"-DFUNCTION={name}", "-DSHIFT=3") for name in ("add", "mul", "relu2_gate")),
}
Compile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def clang(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Peano on a source for a generation, the API's headers precompiled: reading them takes most of the time."""
    if report := missing_report([find_peano(), find_aie_api()]):
        pytest.skip(f"not installed: {' '.join(report.split())}")
    peano, api = find_peano().path, find_aie_api().path
    assert peano is not None
    assert api is not None
    folder = tmp_path_factory.mktemp("aie_api")
    (folder / "api.hpp").write_text(PRELUDE)

    def compile(generation: Generation, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
        common = [str(peano), f"--target={generation.peano_target}", *FLAGS, f"-I{api.parent.parent}"]
        precompiled = folder / f"{generation.name}.pch"
        if not precompiled.exists():
            words = [*common, "-x", "c++-header", str(folder / "api.hpp"), "-o", str(precompiled)]
            subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
        words = [*common, "-fsyntax-only", "-include-pch", str(precompiled), *options, str(source)]
        return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)

    return compile


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda generation: generation.name)
def test_the_headers_take_every_accepted_probe(clang: Compile, generation: Generation, tmp_path: Path):
    source = tmp_path / "accepted.cc"
    source.write_text(unit((p for p in ACCEPTED if p.accepted(generation.name.lower())), prelude=""))
    done = clang(generation, source)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize(("generation", "probe"), REFUSED, ids=lambda value: getattr(value, "name", None))
def test_the_headers_refuse_every_refused_probe(clang: Compile, generation: Generation, probe: Probe, tmp_path: Path):
    source = tmp_path / "refused.cc"
    source.write_text(unit([probe], prelude=""))
    assert clang(generation, source).returncode != 0, probe.use


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda generation: generation.name)
@pytest.mark.parametrize("family", OPTIONS)
def test_the_headers_take_our_kernels_with_every_option(clang: Compile, generation: Generation, family: str):
    for source in sorted((KERNELS / "aie2p").glob(f"{family}_*.cc")):
        for options in ((), *OPTIONS[family]):
            words = (*TILE, *options)
            if refused_here(generation, source, words):
                continue  # by a sentence of ours: no such variant of this kernel
            done = clang(generation, source, *words)
            assert done.returncode == 0, f"{source.name} {' '.join(options)}\n{done.stderr[:4000]}"


def refused_here(generation: Generation, source: Path, options: tuple[str, ...]) -> bool:
    """Whether the host's compiler refuses the same."""
    words = ["g++", "-std=c++20", "-fsyntax-only", f"-D__AIE_ARCH__={generation.compiler_architecture}"]
    words += [f"-I{KERNELS / 'hostapi'}", *options, str(source)]
    return subprocess.run(words, capture_output=True, check=False).returncode != 0
