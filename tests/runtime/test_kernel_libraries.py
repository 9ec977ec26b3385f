"""Kernels from files: what is found in them, how they are called, and what is no kernel."""

import subprocess
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bdforge.runtime import KernelFault, KernelLibraryError, load_kernels
from bdforge.runtime.host_kernels import check_called
from support.differences import same

SOURCE = """
#include <stdint.h>
int64_t number = 5;
void count(int64_t *sum, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g) {
  *sum = a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g;
}
void negated(int32_t *to, int32_t *from) { *to = -*from; }
"""

ENTRY = """
#include <stdint.h>
#include <string.h>
#include <stdio.h>
size_t hostapi_state_bytes() { return 8; }
void noted(int64_t *to, int64_t a, int64_t b) {}
int hostapi_call(void *function, int64_t *state, const uint64_t *args, int count, char *message, size_t size) {
  int64_t *to = (int64_t *)args[0];
  to[0] = function == (void *)noted; to[1] = ++*state; to[2] = count; to[3] = args[count - 1]; to[4] = size;
  if (args[count - 1] != 13) return 0;
  memset(message, 'x', size - 1);
  memcpy(message, "unlucky: ", 9);
  message[size - 1] = 0;
  return 1;
}
"""
"""In the place of `kernels/hostapi/entry.cc`: it notes how it is called, and refuses a 13."""


def compiled(folder: Path, source: str) -> Path:
    path = folder / "lib.so"
    words = ["gcc", "-O0", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
    subprocess.run(words, input=source, text=True, check=True)
    return path


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return compiled(tmp_path_factory.mktemp("kernels"), SOURCE)


def test_a_library_with_an_entry_is_called_through_it_core_by_core(tmp_path: Path):
    """Function, what the core remembers, number of words, the last one, room for a message. Every core of every array,
    and who calls without one, has a memory of its own, which all kernels of a library share."""
    path = compiled(tmp_path, ENTRY)
    kernels, to = load_kernels(path), np.zeros(5, np.int64)
    noted, cores = cast("Any", kernels["noted"]), [{}, {}]
    made = [noted, *map(noted.for_core, cores), noted.for_core(cores[0]), kernels["noted"], load_kernels(path)["noted"]]
    for kernel, calls in zip(made, (0, 0, 0, 2, 2, 0), strict=True):
        for more, last in enumerate((-5, 1 << 40), 1):
            kernel(to, 3, last)
            same(to, [1, calls + more, 3, last, 512], "what the entry is called with")
    with pytest.raises(KernelFault, match=r"^unlucky: x{502}$"):
        noted(to, 13)
    assert to[2] == 2


def test_a_kernel_takes_arguments_in_order_and_24_at_most(library: Path):
    count, total = load_kernels(library)["count"], np.zeros(1, np.int64)
    count(total, 1, 2, 3, 4, 5, 6, 7)
    assert total[0] == 7654321
    count(total, -1, 0, 0, 0, 0, 0, 0)
    assert total[0] == -1
    assert not count._prepared, "calls with numbers are not kept: there is no end of them"  # type: ignore[attr-defined]
    with pytest.raises(KernelFault, match="25 arguments; compiled kernels take at most 24"):
        count(total, *range(24))
    with pytest.raises(KernelFault, match="an argument of type float cannot be passed to a compiled kernel"):
        count(total, 1.5)


def test_each_call_gets_its_own_arrays(library: Path):
    """Arguments are kept prepared: by the arrays, not by their number or place."""
    negated: Any = load_kernels(library)["negated"]
    first, second = np.array([3], np.int32), np.array([4], np.int32)
    for to, source in ((first, second), (second, first), (first, second), (first, first), (second, second)):
        expected = -source[0]
        negated(to, source)
        assert to[0] == expected
    for value in range(-50, 50):
        source = np.array([value], np.int32)
        negated(first, source)
        assert first[0] == -value
    kept = [first, second]
    key = tuple(map(id, kept))
    negated(*kept)
    assert [id(array) for array in negated._prepared[key][0]] == list(key), (
        "arrays that are not held may give their ids to others"
    )
    on_another_core = negated.for_core({})
    on_another_core(first, np.array([9], np.int32))
    assert first[0] == -9


def test_what_a_library_lacks_and_what_is_data_are_no_kernels(library: Path):
    kernels = load_kernels(library)
    assert "count" in kernels
    assert "absent" not in kernels
    with pytest.raises(KernelLibraryError, match=r"lib\.so: its symbol number is data, not a function; no kernel"):
        _ = kernels["number"]
    (library.parent / "no.so").write_bytes(b"no library")
    with pytest.raises(KernelLibraryError, match=r"no\.so: cannot load this kernel library: "):
        load_kernels(library.parent / "no.so")
    with pytest.raises(KernelLibraryError, match=r"absent\.so: no such kernel library"):
        load_kernels(library.parent / "absent.so")


def test_a_build_names_functions_that_no_kernel_defines(library: Path):
    check_called(library, ["count", "negated"], "mine", ["mine.cc"])
    with pytest.raises(KernelLibraryError, match=r"mine: its cores call number, absent, which .* defines \(mine\.cc\)"):
        check_called(library, ["number", "count", "absent"], "mine", ["mine.cc"])
    (library.parent / "no.so").write_bytes(b"no library")
    check_called(library.parent / "no.so", ["absent"], "mine", [])  # nothing is known of it


def test_a_modules_public_functions_are_kernels(tmp_path: Path):
    (tmp_path / "mine.py").write_text("import sys\nSIZE = 4\ndef work(a): a[:] = SIZE\ndef _helper(): pass\n")
    kernels, array = load_kernels(tmp_path / "mine.py"), np.zeros(2, np.int32)
    assert list(kernels) == ["work"]
    kernels["work"](array)
    assert array.tolist() == [4, 4]
