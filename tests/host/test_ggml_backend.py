"""libggml-bdforge.so in stock ggml and llama.cpp, Debian's packages in a cache. Skips when they cannot be had."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from library_builds import ROOT, Done, run, scons
from stock_ggml import BACKEND, HOST, ours, small_design, stock_ggml

from bdforge.models import Products, Split
from bdforge.models.bitnet import BitNet
from bdforge.runtime import load
from support.built_designs import PlannedDesign
from support.ggml_packages import FetchError, Packages, fetch_older_ggml, op_tests
from support.xrt_packages import fetch_packages
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

pytestmark = pytest.mark.slow

Stock = Callable[..., Done]
VARIABLES = [f"BDFORGE_GGML_{name}" for name in ("DESIGN", "DEVICE", "ROWS", "COUNTS")]
PROMPT = "Every token of a prompt is a row"
IDS = [3 + byte for byte in PROMPT.encode()]
COMPLETION = ("-n", "8", "--temp", "0", "-no-cnv", "-t", "1")
COUNTS = r"bdforge: \d+ graphs, (\d+) products in (\d+) submissions, (\d+) matrices packed"


@pytest.fixture(scope="module")
def packages() -> Packages:
    return stock_ggml()


@pytest.fixture(scope="module")
def summing(tmp_path_factory: pytest.TempPathFactory) -> PlannedDesign:
    """A design that leaves int32 sums to the host."""
    return small_design(tmp_path_factory.mktemp("summing"))


@pytest.fixture(scope="module")
def scaling(tmp_path_factory: pytest.TempPathFactory) -> PlannedDesign:
    """A design that scales to bf16."""
    types = ("int8", "int2", "bf16", "int32")
    return small_design(tmp_path_factory.mktemp("scaling"), types=types, epilogue={"scale": True})


@pytest.fixture(scope="module")
def stock(packages: Packages) -> Stock:
    """Runs a program with the packages' libraries and these variables, on one thread: others would spin meanwhile."""

    def call(environ: dict[str, str], program: Path | str, *arguments: Path | str) -> Done:
        alone = {"OMP_NUM_THREADS": "1"} | environ
        return run(*packages.command(program, *arguments), environ=alone)

    return call


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BitNet for stock llama.cpp, which knows the architecture with another activation."""
    content = random_content(config(256, 512, 2, 4, 2, 64, 300, 256), 7)
    return write_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", content, "TQ2_0", "bitnet")


@pytest.mark.parametrize(("design", "within", "rows"), [("summing", "1e-6", "1"), ("scaling", "5e-3", "2")])
def test_products_are_the_sums_in_whole_numbers(
    stock: Stock, design: str, within: str, rows: str, request: pytest.FixtureRequest
):
    environ = ours(request.getfixturevalue(design).folder, **({} if rows == "1" else {"rows": rows}))
    done = stock(environ, HOST / "tests" / "ggml_products", within, rows)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 14
    assert re.findall(COUNTS, done.stderr)[-1] == ("65", "50", "32")
    assert "row 1, block 0 holds other values than -d, 0 and d" in done.stderr
    assert "row 0, block 0 holds other values than -d, 0 and d" in done.stderr


def test_ggmls_own_tests_of_ternary_products_pass_and_nothing_else_is_claimed(
    stock: Stock, packages: Packages, summing: PlannedDesign
):
    done = stock(ours(summing.folder), op_tests(packages), "test", "-b", "bdforge")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    lines = [re.sub(r"\x1b\[\d*;?\d*m", "", line).strip() for line in done.stdout.splitlines()]
    cases = [line.partition("): ")[::2] for line in lines if "): " in line]
    good = [case for case, result in cases if result == "OK"]
    ternary = [case for case, _ in cases if re.match(r"MUL_MAT\(type_a=tq[12]_0,", case)]
    assert good == ternary, "all of them, and no others"
    assert len(ternary) > 40
    assert all(result.startswith("not supported") for case, result in cases if case not in ternary)


def logits(stock: Stock, environ: dict[str, str], model: Path, out: Path) -> np.ndarray:
    done = stock(environ, HOST / "tests" / "ggml_logits", model, out, *map(str, IDS))
    assert done.returncode == 0, done.stderr
    return np.fromfile(out, np.float32).reshape(len(IDS), -1).astype(np.float64)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Normalised, squared."""
    return float(np.square(found - expected).sum() / np.square(expected).sum())


def test_logits_of_a_model_are_those_of_the_cpu(stock: Stock, model: Path, summing: PlannedDesign, tmp_path: Path):
    found = logits(stock, ours(summing.folder), model, tmp_path / "ours")
    expected = logits(stock, {}, model, tmp_path / "cpu")
    assert 0 < error(found, expected) < 1e-3, "0: nothing was ours"


def test_stock_llama_computes_another_model(stock: Stock, model: Path, summing: PlannedDesign, tmp_path: Path):
    """SiLU where BitNet-b1.58-2B-4T has relu2; all else is as in Python."""
    found = logits(stock, ours(summing.folder), model, tmp_path / "ours")
    bitnet = BitNet.load(model, Products(load(summing.folder), Split(summing.plan, "cpu")))

    def in_python(act: str) -> np.ndarray:
        other = replace(bitnet, config=bitnet.config.model_copy(update={"hidden_act": act}))
        return other.logits(other.hidden(IDS, other.cache()))

    assert error(found, in_python("silu")) < 1e-3
    assert error(found, in_python("relu2")) > 0.02


def test_the_benchmark_shows_our_name_and_each_matrix_is_packed_once(stock: Stock, model: Path, summing: PlannedDesign):
    done = stock(ours(summing.folder, rows="3"), "llama-bench", "-m", model, "-p", "9", "-n", "2", "-t", "1", "-r", "2")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "ternary" in line]
    assert len(rows) == 2
    assert all("| bdforge " in row for row in rows)
    # 3 prompts; behind the last layer's attention there is one row only, which is the CPU's as single tokens are
    assert re.findall(COUNTS, done.stderr) == [("33", "24", "11"), ("0", "0", "0")]
    assert done.stderr.count("less than 3 rows are slower here") == 1


def completed(packages: Packages, model: Path, environ: dict[str, str]) -> tuple[bytes, bytes]:
    """What llama-completion writes, to both streams. Now and then it ends before the thread that prints has ended."""
    words = packages.command("llama-completion", "-m", model, "-p", PROMPT, *COMPLETION)
    seen = []
    while len(seen) < 10:
        done = subprocess.run(
            words, env=os.environ | environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True
        )
        if done.stdout.endswith(b"\n\n"):
            return done.stdout, done.stderr
        seen.append(done.stdout)
    raise AssertionError(f"never whole: {seen}")


def test_a_models_text_is_the_same_with_and_without_us(packages: Packages, model: Path, summing: PlannedDesign):
    text, said = completed(packages, model, ours(summing.folder, rows="3"))
    assert text == completed(packages, model, {})[0]
    assert len(text.strip()) > len(PROMPT)
    assert b"11 matrices packed" in said


def test_an_older_ggml_with_other_tables_takes_us_too(packages: Packages, summing: PlannedDesign, tmp_path: Path):
    try:
        libraries = fetch_older_ggml()
    except FetchError as error:
        pytest.skip(f"ggml 0.25: {error}")
    program, linked = tmp_path / "products", [f"-l:{name}" for name in ("libggml.v0.5.0.so", "libggml-base.so")]
    place = [f"-L{libraries}", *linked, "-Wl,--allow-shlib-undefined"]
    subprocess.run(["g++", HOST / "objects" / "tests" / "ggml_products.cpp.o", "-o", program, *place], check=True)
    environ = ours(summing.folder) | {"LD_LIBRARY_PATH": str(libraries)}
    done = run(program, "1e-6", "1", cwd=libraries, environ=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ggml 0.25.1\n")


ASKS = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static int version; /* begins the table of a backend that is there already */
size_t ggml_backend_reg_count(void) { return version != 0; }
void *ggml_backend_reg_get(size_t i) { return i == 0 ? &version : NULL; }
int main(int count, char **words) {
    version = atoi(words[2]);
    void *library = dlopen(words[1], RTLD_LAZY);
    int *(*start)(void) = library == NULL ? NULL : (int *(*)(void))dlsym(library, "ggml_backend_init");
    if (start == NULL) return puts(dlerror()), 1;
    int *found = start();
    return printf("%d", found == NULL ? 0 : *found), 0;
}
"""


@pytest.fixture(scope="module")
def asks(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that loads us as ggml does whose backends have a certain API version, or that has none (0)."""
    program = tmp_path_factory.mktemp("asks") / "asks"
    for_sanitizers = ["-Wl,--no-as-needed", "-lstdc++"]  # which look for its way to throw when a program starts
    command = ["gcc", "-x", "c", "-", "-rdynamic", "-z", "lazy", "-o", program, "-ldl", *for_sanitizers]
    subprocess.run(command, input=ASKS, text=True, check=True)
    return program


def started(program: Path, version: int, environ: dict[str, str]) -> Done:
    """What such a program prints: the version that we say we have, 0 when it gets nothing."""
    return run(program, BACKEND, str(version), environ=dict.fromkeys(VARIABLES, "") | environ)


@pytest.mark.parametrize(("version", "more"), [(2, {}), (3, {"rows": "999999"})])
def test_the_api_version_is_the_one_that_is_asked_for(
    asks: Path, summing: PlannedDesign, version: int, more: dict[str, str]
):
    done = started(asks, version, ours(summing.folder, **more))
    assert (done.stdout, done.returncode) == (str(version), 0), done.stderr
    assert re.fullmatch(r"bdforge: MUL_MAT with TQ1_0 or TQ2_0 .* on the emulated array; all else .*\n", done.stderr)


@pytest.mark.parametrize(
    ("version", "changed", "reason"),
    [
        (6, {}, "API version 6, this library serves 2, 3;"),
        (0, {}, "load ggml's CPU backend first"),
        (3, {"DESIGN": ""}, "BDFORGE_GGML_DESIGN is not set; name the folder of a built design"),
        (3, {"DESIGN": "/nowhere"}, "BDFORGE_GGML_DESIGN=/nowhere: there is no such folder or file"),
        (3, {"DEVICE": ""}, "device 0: "),
        (3, {"ROWS": "a few"}, "BDFORGE_GGML_ROWS=a few is no number of rows"),
        (3, {"ROWS": "1" * 40}, "is no number of rows"),
        (3, {"ROWS": "1000000"}, "BDFORGE_GGML_ROWS=1000000 is no number of rows; give 1 to 999999"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_line(
    asks: Path, summing: PlannedDesign, version: int, changed: dict[str, str], reason: str
):
    environ = ours(summing.folder) | {f"BDFORGE_GGML_{name}": value for name, value in changed.items()}
    done = started(asks, version, environ)
    assert (done.stdout, done.returncode) == ("0", 0)
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_design_that_does_more_is_refused(asks: Path, tmp_path: Path):
    relu = {"scale": True, "relu": True}
    design = small_design(tmp_path / "relu", types=("int8", "int2", "bf16", "int32"), epilogue=relu).folder
    done = started(asks, 3, ours(design))
    assert done.stdout == "0"
    assert "relu is no GEMM of int8 with int2 to int32, or scaled to bf16 and nothing more" in done.stderr


def test_with_xrt_it_loads_and_says_what_of_an_npu_is_missing(packages: Packages, summing: PlannedDesign):
    try:
        xrt = fetch_packages()
    except FetchError as error:
        pytest.skip(f"XRT's packages: {error}")
    place = ROOT / "build" / "test-host" / "ggml-xrt"
    library = place / "host" / "lib" / BACKEND.name
    scons(place, str(library), f"ggml={packages.prefix}", f"xrt={xrt.prefix}", "optimise=no")
    environ = ours(summing.folder, device="0") | {"GGML_BACKEND_PATH": str(library)}
    both = replace(packages, folders=(*packages.folders, str(xrt.libraries)))
    done = run(*both.command("llama-bench", "--list-devices"), environ=environ)
    assert done.returncode == 0, done.stderr
    assert re.search(r"bdforge: device 0: .* \(XRT: .*\) \(not used; other backends go on\)", done.stderr)


def test_without_ggml_the_build_says_what_to_install(tmp_path: Path):
    done = scons(tmp_path / "build", "ggml", f"ggml={tmp_path}", "xrt=none", "design=gemm_i8_i2_bf16", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"scons: ggml-backend.h of ggml is not in {tmp_path}/include; install it")
    assert os.listdir(tmp_path / "build") == [".lock"]
