"""What the stand-in accepts and refuses: at compile time as the real headers do, at run time with a fault."""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from kernel_library import ARCH, Build, KernelError, aligned, gxx

from support.api_probes import PRELUDE, Probe, probes, unit
from support.built_designs import made_of_kernels

PROBES = probes()


@pytest.fixture(scope="module")
def errors(api: Callable[[str], tuple[str, ...]]):
    """What g++ says of a probe, by generation and place in the list."""

    @cache
    def of_all(generation: str) -> dict[int, list[str]]:
        return compiled(PROBES, generation)

    def of(generation: str, index: int) -> list[str]:
        found = of_all(generation)[index]
        if found or PROBES[index].accepted(generation):
            return found
        # A class that two probes make wrongly is reported for the first of them.
        return compiled([PROBES[index]], generation)[0]

    def compiled(probes: list[Probe], generation: str) -> dict[int, list[str]]:
        def make(folder: Path) -> None:
            (folder / "probes.cc").write_text(unit(probes))
            done = gxx("-fsyntax-only", "-fPIC", *api(generation), "-w", folder / "probes.cc")
            (folder / "stderr").write_text(done.stderr)

        folder = made_of_kernels((generation, unit(probes)), make)
        return errors_by_probe(folder / "probes.cc", (folder / "stderr").read_text())

    return of


def errors_by_probe(source: Path, stderr: str) -> dict[int, list[str]]:
    """g++'s errors under the probes whose instantiation caused them; all in one unit."""
    found, context = defaultdict(list), set()
    for line in stderr.splitlines():
        if ": In " in line:
            context = set()
        if match := re.match(rf"{re.escape(str(source))}:(\d+):", line):
            context.add(int(match[1]) - PRELUDE.count("\n") - 1)
        if " error: " in line:
            assert context, line  # of a probe, not of the stand-in alone
            for index in context:
                found[index].append(line.split(" error: ")[1])
    return found


@pytest.mark.daily(every=5)
@pytest.mark.parametrize("generation", ARCH)
@pytest.mark.parametrize(("index", "probe_of_api"), [pytest.param(i, p, id=p.name) for i, p in enumerate(PROBES)])
def test_the_stand_in_compiles_what_the_headers_compile(errors, index: int, probe_of_api: Probe, generation: str):
    messages = "\n".join(errors(generation, index))
    if probe_of_api.accepted(generation):
        assert messages == ""
        return
    assert messages != ""
    if probe_of_api.why:
        assert "static assertion failed: aie" in messages
        assert probe_of_api.why in messages


def test_each_probe_is_a_use_of_its_own():
    names = [probe.name for probe in PROBES]
    assert len(set(names)) == len({(probe.given, probe.use) for probe in PROBES}) == len(names) >= 60
    assert {probe.on for probe in PROBES} == {"both", "aie2", "aie2p", "none"}
    assert all(probe.header.endswith(".hpp") for probe in PROBES)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fault_undefined_vector", "aie::add: lane 0 of the vector was never written"),
        ("fault_undefined_half", "aie::store_v: lane 32 of the vector was never written"),
        ("fault_undefined_lane", "aie::vector::get: lane 5 of the vector was never written"),
        ("fault_undefined_accum", "aie::accum::to_vector: lane 0 of the accumulator was never written"),
        ("fault_undefined_mmul", "aie::mmul::to_vector: the accumulator is uninitialised"),
        ("fault_undefined_initial", "aie::mmul::mmul: lane 0 of the accumulator was never written"),
        ("fault_undefined_operand", "aie::mmul::mul: lane 0 of the vector was never written"),
        ("fault_get_beyond", "aie::vector::get: lane 64 is outside 0 to 63"),
        ("fault_extract_beyond", "aie::vector::extract: part 2 is outside 0 to 1"),
    ],
)
def test_undefined_values_are_faults(probe, name, sentence):
    with pytest.raises(KernelError, match=sentence):
        probe.call(name, aligned(256, "int32"))


@pytest.mark.parametrize(("bits", "alignment"), [(128, 16), (256, 32), (512, 64)])
def test_alignment_is_demanded_by_access_width(probe, bits, alignment):
    for skew in range(0, 65, 4):
        source, target = aligned(bits // 8, "uint8", skew), aligned(bits // 8, "uint8")
        if skew % alignment == 0:
            probe.call(f"load_{bits}", source, target)
            continue
        sentence = (
            f"aie::load_v: {bits // 8} lanes at .*, which is {skew % alignment} bytes past a {alignment}-byte boundary"
        )
        with pytest.raises(KernelError, match=sentence):
            probe.call(f"load_{bits}", source, target)
        with pytest.raises(KernelError, match=r"aie::store_v: .*make the buffer and every step a multiple of"):
            probe.call(f"load_{bits}", target, source)


def test_a_512_bit_access_needs_only_32_bytes_on_aie2(kernel_library):
    library = kernel_library(Build("aie2", ("zero_i32",), (40, 24, 64)))
    library.call("zero_i32", aligned(40 * 64, "int32", 32))
    with pytest.raises(KernelError, match="16 bytes past a 32-byte boundary"):
        library.call("zero_i32", aligned(40 * 64, "int32", 16))


@pytest.mark.parametrize(
    ("call", "numbers", "sentence"),
    [
        ("transpose_int8", (4, 8), "aie::transpose: 4 x 8 is not the vector's 64 lanes"),
        ("filter_int4", (1,), "aie::filter_(even|odd): step 1 is shorter than a byte"),
        ("filter_int8", (3,), "aie::filter_(even|odd): step 3 is not a power of two"),
        ("filter_int8", (64,), "aie::filter_(even|odd): step 64 is outside 1 to 32"),
        ("upshift_int8", (-1,), "aie::upshift: shift -1 is outside 0 to 31"),
    ],
)
def test_meaningless_arguments_are_faults(probe, call, numbers, sentence):
    with pytest.raises(KernelError, match=sentence):
        probe.call(call, aligned(64, "int8"), aligned(64, "int8"), *numbers)


def test_downshift_refuses_modes_in_which_releases_differ(probe):
    probe.call("set_modes", 12, 0)
    with pytest.raises(KernelError, match="aie::downshift: rounding mode is not floor"):
        probe.call("arithmetic_int8", aligned(64, "int8"), aligned(64, "int8"), aligned(14 * 64, "int8"))


def test_a_call_of_25_arguments_is_refused(probe):
    probe.call("get_modes", *[aligned(2, "uint32")] * 24)
    with pytest.raises(KernelError, match="argument count 25 is outside 0 to 24"):
        probe.call("get_modes", *[aligned(2, "uint32")] * 25)
