"""The C++ generator is the Python one, word for word; staging and the cache do what they say."""

import subprocess

import numpy as np
import pytest
from host_programs import FLAGS, ROOT, compiled, run

from bdforge.devices import device_named
from bdforge.plan import Plan, SpecError, load_spec, plan_gemm, sequence, spec_from
from support.built_designs import spec_content

STRIX_HALO = device_named("strix_halo")
SMALL = [
    {"m": 16, "k": 16, "n": 32, "k_mt": 32},
    {"m": 16, "k": 8, "n": 32, "rows": 1, "columns": 1},
    {"m": 48, "k": 8, "n": 64, "rows": 4, "columns": 4, "k_mt": 24},
    {"m": 320, "k": 8, "n": 32, "rows": 4, "columns": 4},
]
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
REFUSED = [(0, 8, 8, 8, 8), (8, 262_144, 8, 262_144, 8), (8, 9, 8, 8, 8), (8, 8, 9, 8, 8), (8, 8, 1 << 21, 8, 1 << 21)]


@pytest.fixture(scope="module")
def plans(pytestconfig) -> list[Plan]:
    flagship = plan_gemm(load_spec(pytestconfig.rootpath / "designs/gemm_i8_i2_bitnet.toml"), STRIX_HALO)
    return [flagship, *(plan_gemm(spec_from(spec_content(**small), "small"), STRIX_HALO) for small in SMALL)]


def sweep() -> list[tuple[int, int, int, int, int, int]]:
    """(design, M, K, N, lda, ldc): named shapes, then sizes spread evenly over magnitudes, leading dimensions too."""
    rng = np.random.default_rng(2)
    sizes = [(0, *shape, shape[1], shape[2]) for shape in NAMED]
    for i in range(2000):
        m, k, n = (int(2 ** rng.uniform(0, most)) for most in ((11, 14, 12) if i % 2 else (9, 9, 10)))
        lda = k if i % 3 else k + int(rng.integers(0, 70)) * (1 if i % 6 else 4)
        ldc = n if i % 5 else n + int(rng.integers(0, 70))
        sizes.append((i % (1 + len(SMALL)), m, k, n, lda, ldc))
    far = [(0, 300, 512, 512, 1 << 22, 1 << 20), (0, 300, 512, 512, (1 << 22) + 4, (1 << 20) + 1)]
    return [*sizes, *far]


@pytest.fixture(scope="module")
def driver(tmp_path_factory, plans):
    return compiled(tmp_path_factory.mktemp("host"), "sequence_driver", plans)


def lines(sizes) -> list[str]:
    return [" ".join(map(str, size)) for size in sizes]


def streams(output: bytes) -> list[np.ndarray]:
    words = np.frombuffer(output, "<u4")
    found, at = [], 0
    while at < len(words):
        found.append(words[at + 1 : at + 1 + words[at]])
        at += 1 + int(words[at])
    return found


def test_2000_sizes_are_the_same_word_for_word(plans, driver):
    sizes = sweep()
    made = streams(run(driver, "words", lines=lines(sizes)))
    assert len(made) == len(sizes) > 2000
    for (index, m, k, n, lda, ldc), words in zip(sizes, made, strict=True):
        expected = sequence(plans[index], m, k, n, lda=lda, ldc=ldc).words()
        assert np.array_equal(words, expected), (index, m, k, n, lda, ldc)


def test_staged_shapes_and_packed_bytes_are_the_same(plans, driver):
    sizes = sweep()[::4]
    printed = run(driver, "staging", lines=lines(sizes)).decode().splitlines()
    for (index, m, k, n, lda, ldc), line in zip(sizes, printed, strict=True):
        planned = sequence(plans[index], m, k, n, lda=lda, ldc=ldc)
        staged = [f"{s.rows} {s.columns}" if s else "- -" for s in (planned.staging.a, planned.staging.c)]
        assert line == f"{staged[0]} {staged[1]} {planned.b_bytes}"


def test_what_python_refuses_cpp_refuses(plans, driver):
    sizes = [(0, *sizes) for sizes in REFUSED]
    assert all(len(words) == 0 for words in streams(run(driver, "words", lines=lines(sizes))))
    printed = run(driver, "staging", lines=lines(sizes)).decode().splitlines()
    assert all(line.startswith("refused: ") for line in printed)
    assert "M = 0 is outside 1 to 1048576" in printed[0]
    for m, k, n, lda, ldc in REFUSED:
        with pytest.raises(SpecError):
            sequence(plans[0], m, k, n, lda=lda, ldc=ldc)


def test_staged_operands_are_copied_whole_and_nothing_else_is(tmp_path, plans):
    program = compiled(tmp_path, "staging_driver", plans, "-fsanitize=address,undefined", "-O1")
    sizes = [
        (1, 3, 50, 7, 53, 9),
        (1, 20, 50, 70, 50, 70),
        (1, 20, 64, 7, 64, 7),
        (1, 5, 7, 200, 9, 201),
        (1, 1, 1, 1, 1, 1),
    ]
    assert run(program, lines=lines(sizes)).decode().split() == ["ok"] * len(sizes)


@pytest.mark.parametrize("header", ["stream_design", "grid", "staging", "stream", "sequence", "sequence_cache"])
def test_each_header_compiles_alone(header):
    options = [*FLAGS, "-fsyntax-only", f"-I{ROOT / 'host' / 'include'}", "-x", "c++", "-"]
    subprocess.run(["g++", *options], input=f'#include "bdforge/{header}.hpp"\n', text=True, check=True)


def test_the_cache_makes_each_size_once_for_all_threads(tmp_path, plans):
    program = compiled(tmp_path, "cache_driver", plans, "-fsanitize=thread", "-O1")
    assert run(program).decode() == "same 1 each_once 1 refuses 1 outlives 1\n"
