"""The programs in docs/host.md and docs/embedding.md compile and do what they say."""

import re
from pathlib import Path

import numpy as np
import pytest
from library_builds import ROOT, run, small_design

HEADER = (ROOT / "host/include/bdforge.h").read_text()
FLAGS = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]


def blocks(page: str, language: str) -> str:
    """The page's code in one language, in order."""
    text = (ROOT / "docs" / page).read_text()
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def compiled(folder: Path, build: Path, name: str, source: str, *flags: str) -> Path:
    """The program of `source`; C is compiled alone, then linked with the C++ library."""
    (folder / name).write_text(source)
    words = ["g++", *FLAGS, *flags, f"-I{ROOT / 'host/include'}"]
    done = run(*words, "-c", folder / name, "-o", folder / f"{name}.o")
    assert done.returncode == 0, done.stderr
    done = run("g++", *FLAGS, folder / f"{name}.o", build / "lib/libbdforge.a", "-pthread", "-o", folder / "program")
    assert done.returncode == 0, done.stderr
    return folder / "program"


def test_the_c_examples_are_one_working_program(build: Path, tmp_path: Path):
    program = compiled(tmp_path, build, "main.c", blocks("embedding.md", "c"), "-x", "c", "-std=c11")
    done = run(program, "emulated", small_design(tmp_path / "small"))
    assert done.returncode == 0, done.stderr
    M, K, N = 20, 64, 96
    weights = (np.arange(K * N) % 3 - 1).reshape(K, N)
    x = ((np.arange(M * K) % 17 - 8) / 8).reshape(M, K)
    a = np.rint(x / np.abs(x).max(axis=1, keepdims=True) * 127)
    y = (a @ weights) * np.abs(x).max(axis=1, keepdims=True) / 127 * 0.5
    got = done.stdout.split()
    assert float(got[0]) == pytest.approx(y[0, 1], abs=0.01)  # ties of rounding may differ in float
    assert int(got[1]) == weights[:, 1].sum()


def test_the_c_examples_show_every_call(build: Path):
    calls = set(re.findall(r"\b(bdforge_\w+)\(", HEADER))
    shown = (ROOT / "docs/embedding.md").read_text()
    assert [call for call in sorted(calls) if call not in shown] == []


def test_the_cpp_example_works(build: Path, tmp_path: Path):
    main = "int main(int, char** words) { return run(words[1], words[2]); }\n"
    program = compiled(tmp_path, build, "main.cpp", blocks("host.md", "cpp") + main, "-std=c++17")
    done = run(program, small_design(tmp_path / "small"), "emulated")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "-256 -1.28\n"


@pytest.mark.slow
def test_the_example_of_a_consumer_works(build: Path, tmp_path: Path):
    source = (ROOT / "examples/cpp/main.cpp").read_text()
    program = compiled(tmp_path, build, "main.cpp", source, "-std=c++17")
    design = small_design(tmp_path / "small")
    done = run(program, design)
    assert (done.returncode, done.stdout, done.stderr) == (0, "20x96x72 on emulated: every element right\n", "")
    missing = run(program, tmp_path / "no.xclbin")
    assert missing.returncode == 1
    assert missing.stderr.startswith("consumer: ")
