"""C++ makes the words that Python makes, word for word, and buffers of the same bytes."""

import json
from typing import Any

import numpy as np
import pytest
from host_programs import probed

from bdforge.design.sequences import WalkError
from bdforge.devices import device_named
from bdforge.operators import manifest
from bdforge.operators.gemm import GemmPlan, SpecError, load_spec, plan_gemm, sequence, spec_from
from support.built_designs import spec_content

INT8, BF16, BLOCKS = ("int8", "int8", "int32"), ("bf16", "bf16", "f32"), ("bfp16", "bfp16", "bfp16")
SCALED, BIASED = {"epilogue": {"scale": True}}, {"epilogue": {"scale": True, "bias": True}, "rows": 3, "columns": 4}
STAYS = {"residency": "b", "c_memtile_buffers": 1}
WIDE = {"sequence": {"wait": "wide"}}
SMALL: list[dict[str, Any]] = [
    {"m": 16, "k": 16, "n": 32, "k_mt": 32},
    {"m": 16, "k": 8, "n": 32, "rows": 1, "columns": 1},
    {"m": 48, "k": 8, "n": 64, "rows": 4, "columns": 4, "k_mt": 24, **WIDE},
    {"m": 320, "k": 8, "n": 32, "rows": 4, "columns": 4},
    {"m": 16, "k": 16, "n": 16, "k_mt": 48, "types": INT8, "layouts": "row column row"},
    {"m": 16, "k": 16, "n": 16, "k_mt": 32, "types": INT8, "layouts": "row row row", "rows": 4, "columns": 8, **WIDE},
    {"m": 16, "k": 8, "n": 24, "k_mt": 24, "types": INT8, "layouts": "column column column", "rows": 3, "columns": 4},
    {"m": 32, "k": 8, "n": 16, "types": INT8, "layouts": "column row column", "sequence": {"in_flight": 2}},
    {"m": 16, "k": 8, "n": 16, "k_mt": 16, "types": INT8, "layouts": "row packed column", "a_shims": 2, "columns": 4},
    {"m": 16, "k": 8, "n": 16, "types": INT8, "layouts": "row row column", "rows": 4, "columns": 1},
    {"m": 16, "k": 8, "n": 16, "types": INT8, "layouts": "row column row", "rows": 4, "columns": 3, "k_mt": 24},
    {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "row row row", "k_mt": 16, "a_shims": 2, "columns": 4},
    {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "column column row", "rows": 2, "columns": 2, "k_mt": 24},
    {"m": 16, "k": 8, "n": 16, "types": ("int8", "int8", "int8", "int8"), "layouts": "row column column"},
    {"m": 32, "k": 32, "n": 32, "types": BLOCKS, "layouts": "row packed row", "k_mt": 64},
    {"m": 32, "k": 32, "n": 32, "types": ("bf16", "bfp16", "bf16"), "layouts": "row packed row", "rows": 1},
    {"m": 16, "k": 16, "n": 32, "types": ("int8", "int8", "bf16"), "layouts": "row packed row", **SCALED},
    {"m": 16, "k": 16, "n": 32, "types": BF16, "layouts": "column packed row", "rows": 3, "columns": 3},
    {"m": 16, "k": 16, "n": 32, "types": (*BF16[:2], "bf16", "f32"), "layouts": "column packed row", **BIASED},
    {"m": 16, "k": 8, "n": 32, "device": "phoenix", "rows": 4, "columns": 4, "k_mt": 16},
    {"m": 16, "k": 16, "n": 32, "k_mt": 32, **STAYS},
    {"m": 16, "k": 64, "n": 32, "types": ("int8", "int2", "bf16"), "pool_bytes": 2560, **STAYS, **BIASED},
    {"m": 8, "k": 8, "n": 16, "device": "phoenix", "types": INT8, "layouts": "column row column", "k_mt": 16},
    {"m": 16, "k": 16, "n": 8, "device": "phoenix", "types": BF16, "layouts": "row column column", "rows": 4},
]  # fmt: skip
"""Designs of every layout and element size; more rows than columns, two shims for A, both generations of the array.

Some wait wide, or with fewer steps in flight.
"""
GPT2 = [
    *((256, 768, n) for n in (2304, 768, 3072, 50304)), (256, 3072, 768), (256, 2304, 768), (256, 50304, 768),
    *((m, 256, 768) for m in (2304, 768, 3072, 50304)), (768, 256, 3072),
]  # fmt: skip
BITNET = [
    (m, k, n)
    for m in (1, 7, 128, 256, 512, 1000, 2048, 4096)
    for k, n in ((2560, 2560), (2560, 640), (2560, 13824), (6912, 2560))
]
NAMED = [*GPT2, *BITNET, (70_000, 512, 512), (1 << 20, 512, 96), (1, 262_143, 1), (96, 512, 1 << 20)]
UNPACKED = [*GPT2, *BITNET, (70_000, 512, 512), (1 << 18, 512, 96), (1, 65_535, 1), (96, 512, 1 << 18)]
REFUSED = [
    (0, 8, 8, 8, 0, 8), (8, 262_144, 8, 262_144, 0, 8), (8, 9, 8, 8, 0, 8), (8, 8, 9, 8, 0, 8),
    (8, 8, 1 << 21, 8, 0, 1 << 21),
]  # fmt: skip
Size = tuple[int, int, int, int, int, int, int]
"""Design, M, K, N, lda, ldb, ldc; 0 for no gap."""


def planned_design(m: int, k: int, n: int, device: str = "strix_halo", **content: Any) -> GemmPlan:
    return plan_gemm(spec_from(spec_content(m, k, n, **content), "small"), device_named(device))


@pytest.fixture(scope="module")
def plans(pytestconfig) -> list[GemmPlan]:
    flagship = plan_gemm(
        load_spec(pytestconfig.rootpath / "designs/gemm_i8_i2_bitnet.toml"), device_named("strix_halo")
    )
    return [flagship, *(planned_design(**small) for small in SMALL)]


def sweep(seed: int, whole: bool) -> list[Size]:
    """Named shapes, on designs that pack nothing in turn or on each, then sizes spread evenly over magnitudes, leading
    dimensions too."""
    rng = np.random.default_rng(seed)
    sizes: list[Size] = [(0, *shape, 0, 0, 0) for shape in (NAMED if whole else [*NAMED[:-4:3], *NAMED[-4:]])]
    turns = enumerate((design, *shape, 0, 0, 0) for shape in UNPACKED for design in (5, 6, 8))
    sizes += [size for i, size in turns if whole or i % 16 == seed % 16]
    for i in range(500 if whole else 24):
        m, k, n = (int(2 ** rng.uniform(0, most)) for most in ((11, 12, 12) if i % 2 else (9, 9, 10)))
        a, b, c = (int(gap) for gap in rng.integers(0, 70, 3) * rng.choice([0, 1, 4, 8], 3))
        sizes.append((i % (1 + len(SMALL)), m, k, n, a, b, c))
    return sorted([(index, m, k, n, *leading(index, (m, k, n), gaps)) for index, m, k, n, *gaps in sizes] + FAR)


FAR: list[Size] = [
    (0, 300, 512, 512, 1 << 22, 0, 1 << 20), (0, 300, 512, 512, (1 << 22) + 4, 0, (1 << 20) + 1),
    (5, 100, 64, 100, 64, 1 << 22, 100), (5, 100, 64, 100, 64, (1 << 22) + 4, 100),
    (8, 100, 64, 100, 1 << 22, 1 << 22, 1 << 20), (8, 100, 64, 100, (1 << 22) + 4, (1 << 22) + 4, (1 << 20) + 1),
    (5, 1000, 64, 100, 1 << 18, 1 << 20, 1 << 16), (7, 1000, 96, 1000, 1 << 18, 1 << 18, 1 << 18),
    (5, 300, 64, 100, 1 << 17, 64, 100), (5, 300, 64, 100, (1 << 17) + 4, 64, 100),
    (5, 100, 64, 200, 64, 1 << 17, 200), (5, 100, 64, 200, 64, (1 << 17) + 4, 200),
    (8, 100, 64, 200, 100, 200, 1 << 15), (8, 100, 64, 200, 100, 200, (1 << 15) + 1),
    (0, 1100, 512, 512, 1 << 22, 0, 1 << 20),
]  # fmt: skip
"""Leading dimensions as long as a BD's step, and one more; panels and column steps too far apart for one task, as far
apart as one step, and one word further; operands of more than 4 GiB."""


def leading(index: int, sizes: tuple[int, int, int], gaps: list[int]) -> tuple[int, int, int]:
    """lda, ldb, ldc of a design for gaps behind the lines; 0 for packed B."""
    layouts = SMALL[index - 1].get("layouts", "row packed row") if index else "row packed row"
    M, K, N = sizes
    shapes = [{"row": K, "column": M}, {"row": N, "column": K, "packed": 0}, {"row": N, "column": M}]
    lines = [shape[layout] for shape, layout in zip(shapes, layouts.split(), strict=True)]
    a, b, c = (line + gap if line else 0 for line, gap in zip(lines, gaps, strict=True))
    return a, b, c


def python_sequence(plan: GemmPlan, m: int, k: int, n: int, lda: int, ldb: int, ldc: int):
    return sequence(plan, m, k, n, lda=lda, ldb=ldb or None, ldc=ldc)


@pytest.fixture(scope="module")
def driver(plans):
    """What C++ makes of sizes: words or bytes of buffers as a list, or why there are none."""
    sequences = [manifest(plan, ())["sequence"] for plan in plans]

    def answers(sizes, **more) -> list[list[int] | str]:
        orders, last = [], None
        for index, *parameters in sizes:  # a design's one after another, so that each is read once
            orders.append({"parameters": parameters} | more | ({"sequence": sequences[index]} if index != last else {}))
            last = index
        printed = probed("programs", lines=[json.dumps(order) for order in orders])
        return [json.loads(line) if line.startswith("[") else line for line in printed]

    return answers


def first_difference(words: list[int], expected: list[int]) -> str:
    counts = f"{len(words)} words, expected {len(expected)}"
    for place, (word, other) in enumerate(zip(words, expected, strict=False)):
        if word != other:
            return f"{counts}; word {place} is {word:#x}, expected {other:#x}"
    return counts


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 7))])
def test_words_and_bytes_of_buffers_are_the_same_for_hundreds_of_sizes(plans, driver, seed):
    sizes = sweep(seed, seed > 2)
    assert len(sizes) > 50
    refused = 0
    for (index, *size), words, buffers in zip(sizes, driver(sizes), driver(sizes, bytes=1), strict=True):
        told = f"design {index}, M K N lda ldb ldc = {size}: "
        try:
            expected = python_sequence(plans[index], *size)
        except (SpecError, WalkError):
            refused += 1
            assert isinstance(words, str), f"{told}{words[:20]}"
            continue
        if words != (made := expected.words().tolist()):
            pytest.fail(f"{told}{words if isinstance(words, str) else first_difference(words, made)}", False)
        assert buffers == expected.argument_bytes, told
    assert refused <= len(sizes) // 100


@pytest.mark.slow
def test_a_leading_dimension_of_0_is_no_gap(plans, driver):
    shapes = [(index, *shape) for index in range(len(plans)) for shape in ((33, 40, 70), (512, 512, 512))]
    natural = [(index, m, k, n, *leading(index, (m, k, n), [0, 0, 0])) for index, m, k, n in shapes]
    short = driver(shapes)
    assert short == driver(natural)
    assert not any(isinstance(words, str) for words in short)


def test_what_python_refuses_cpp_refuses(plans, driver):
    sizes = [(0, *sizes) for sizes in REFUSED]
    for printed in (driver(sizes), driver(sizes, bytes=1)):
        assert all(str(answer).startswith("SequenceError: ") for answer in printed)
        assert "M = 0 is outside 1 to 1048576" in printed[0]
    for size in REFUSED:
        with pytest.raises(SpecError):
            python_sequence(plans[0], *size)


SHORT = {
    (5, 40, 40, 40, 40, 39, 40): "ldb = 39 is below K = 40",
    (6, 40, 40, 50, 40, 49, 50): "ldb = 49 is below N = 50",
    (7, 40, 30, 20, 39, 30, 40): "lda = 39 is below M = 40",
    (7, 40, 30, 20, 40, 30, 39): "ldc = 39 is below M = 40",
}


def test_lines_that_would_overlap_are_refused_for_every_layout(plans, driver):
    for ((index, *size), why), answer in zip(SHORT.items(), driver(SHORT), strict=True):
        assert answer.endswith(f"{why}; lines would overlap")
        with pytest.raises(SpecError, match="lines would overlap"):
            python_sequence(plans[index], *size)
