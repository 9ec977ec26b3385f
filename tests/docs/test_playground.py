"""The playground's pieces in Python: what its page asks, its tasks, and what is packed for browsers."""

import io
import json
import tarfile
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from bdforge.cli.puzzle import Puzzle, puzzles
from bdforge.operators.gemm import GemmProblem
from bdforge.operators.gemm.spec import TileSizes
from cli.test_puzzle_command import STEPS, solve
from support.built_designs import ROOT
from tools.site.playground import assemble, session, ternary_kernels
from tools.site.playground.tasks import flagship, puzzle_task

SOLVED = {
    1: ("[[64, 1]]", "[[96, 1]]"),
    14: ('0 : i32, sym_name = "sum_free', '1 : i32, sym_name = "sum_free'),
}
ADD_ONE = (ROOT / "examples/add_one/add_one.mlir").read_text()


def ran(text: str, task: dict, arrays: bytes | None = None, budget: int = 10_000) -> dict:
    return json.loads(session.run(text, task.get("file", "x.mlir"), json.dumps(task), arrays, budget))


def test_a_check_answers_with_messages_at_their_lines():
    text = ADD_ONE.replace("aie.flow(%shim", "aie.fl0w(%shim", 1)
    found = json.loads(session.check(text, "x.mlir"))
    (message,) = found["messages"]
    assert (found["state"], message["kind"], found["said"]) == ("wrong", "error", "")
    assert "aie.fl0w" in text.splitlines()[message["line"] - 1]
    assert ran(text, {})["state"] == "wrong"
    found = json.loads(session.check(ADD_ONE, "x.mlir"))
    assert (found["state"], found["messages"]) == ("checked", [])
    assert found["said"].startswith("x.mlir: 1 device, ")


@pytest.mark.parametrize(("task", "budget", "state", "told"), [
    ({}, 10_000, "ended", "host buffer 1, 96 x int32: -4 3 "),
    ({"references": "def f(a):\n    return a + 1\n", "reference": "f"}, 10_000, "right", "all 96 elements equal"),
    ({"references": "def f(a):\n    return a\n", "reference": "f"}, 10_000, "different", r"b[0] is -4, expected -5"),
    ({"references": "def f(a):\n    return a[:5]\n", "reference": "f"}, 10_000, "failed", "does not take"),
    ({"kernels": "x =\n"}, 10_000, "failed", "kernels.py: SyntaxError: invalid syntax (kernels.py, line 1)"),
    ({"kernels": "\nopen('/nowhere/x')\n"}, 10_000, "failed", "No such file or directory: '/nowhere/x' (kernels.py:2)"),
    ({}, 3, "failed", "no end after 3 "),
])  # fmt: skip
def test_a_run_tells_how_it_ended(task: dict, budget: int, state: str, told: str):
    found = ran(ADD_ONE, task, budget=budget)
    assert found["state"] == state
    assert told in found["said"] + found["fault"]
    assert '"run":{"parties"' in found["html"]


def test_the_flagships_kernels_and_arrays_are_right():
    text, arrays = flagship(GemmProblem(32, 64, 64), rows=1, columns=1, tile=TileSizes(16, 32, 32))
    kernels = Path(ternary_kernels.__file__).read_text()
    assert ran(text, {"kernels": kernels}, arrays)["said"].splitlines()[1].startswith("all 2,048 elements equal")
    wrong = kernels.replace("- 1) *", "- 2) *")
    assert ran(text, {"kernels": wrong}, arrays)["state"] == "different"


def test_a_kernel_keeps_its_contract():
    random, (m, k, n) = np.random.default_rng(3), (8, 24, 64)
    a, w = random.integers(-128, 128, (m, k)), random.integers(-1, 2, (k, n))
    packed = np.zeros((n // 32, k // 8, 8, 8), np.uint8)
    for row in range(k):
        for column in range(n):
            field, within = divmod(column % 32, 8)
            packed[column // 32, row // 8, row % 8, within] |= (w[row, column] + 1) << 2 * field
    c = np.full(m * n, 5, np.int32)
    ternary_kernels.zero_i32(c)
    tiles = a.reshape(m // 8, 8, k // 8, 8).swapaxes(1, 2).astype(np.int8)
    for _ in range(2):
        ternary_kernels.mm_i8_i2_i32(tiles.ravel(), packed.view(np.int8).ravel(), c)
    ternary_kernels.unscale_i32(c)
    np.testing.assert_array_equal(c.reshape(m // 8, n // 8, 8, 8).swapaxes(1, 2).reshape(m, n), 2 * (a @ w))


@pytest.mark.parametrize("number", [1, 14])
def test_a_puzzle_is_a_task_with_its_text(number: int):
    task, text = puzzle_task(puzzles()[number - 1])
    assert task["title"].startswith(f"{number}. ")
    assert text == puzzles()[number - 1].start.read_text()
    assert ran(text, task)["state"] == "failed"
    old, new = SOLVED[number]
    assert ran(text.replace(old, new), task)["state"] == "right"


@pytest.mark.slow
@pytest.mark.parametrize("puzzle", puzzles(), ids=str)
def test_every_puzzle_fails_at_first_and_its_solution_passes(puzzle: Puzzle):
    task, text = puzzle_task(puzzle)
    assert ran(text, task, budget=100_000)["state"] in ("failed", "different")
    assert ran(solve(puzzle.file, STEPS[puzzle.number]), task, budget=100_000)["state"] == "right"


def test_numpy_is_packed_with_its_licence_and_without_tests(tmp_path: Path):
    names = ["numpy/__init__.py", "numpy/_core/_x.so", "numpy-2.dist-info/LICENSE.txt"]
    left = ["numpy/tests/test_x.py", "numpy/_core/_operand_tests.wasm32.so", "numpy/_core/include/x.h", "numpy/a.pyi"]
    with tarfile.open(tmp_path / "numpy.tar.gz", "w:gz") as made:
        for name in names + left:
            made.addfile(tarfile.TarInfo(f"lib/python3.11/site-packages/{name}"), io.BytesIO())
    assemble.pack_numpy(tmp_path / "numpy.tar.gz", tmp_path / "numpy.zip")
    assert ZipFile(tmp_path / "numpy.zip").namelist() == names


def test_without_npm_it_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(assemble.NoPlaygroundError, match="there is no npm with node"):
        assemble.assemble(tmp_path / "playground")
    assert not (tmp_path / "playground").exists()


def test_a_fetch_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("npm", "node"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'no network' >&2; exit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(assemble.NoPlaygroundError, match="npm cannot fetch Python for browsers: no network"):
        assemble.fetched()
    assert list((tmp_path / "cache/bdforge/playground").iterdir()) == []


def test_the_lock_pins_every_package_by_its_hash_and_names_no_host():
    lock = (Path(assemble.__file__).parent / "package-lock.json").read_text()
    packages = {name: found for name, found in json.loads(lock)["packages"].items() if name}
    assert all(found["integrity"].startswith("sha512-") for found in packages.values())
    assert "resolved" not in lock
