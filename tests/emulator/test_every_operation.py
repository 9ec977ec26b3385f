"""Every operation that core programs may use has a test; those that no other file of this folder has stand here."""

import importlib
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator.cores import interpreted as core_operations
from bdforge.array.emulator.cores.interpreted.emit import EMITTERS
from bdforge.array.emulator.cores.interpreted.translation import operations_that_cost
from bdforge.array.mlir import _context  # what `parse` reads with
from support.core_bodies import run_core

HERE = Path(__file__).parent
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(HERE.rglob("*.py")))
for module in pkgutil.iter_modules(core_operations.__path__):
    importlib.import_module(f"{core_operations.__name__}.{module.name}")
EIGHT = np.arange(8, dtype=np.int32)


def test_every_operation_of_core_programs_is_run_by_a_test():
    """By its name, or by its last part as a key of a table."""
    assert len(EMITTERS) > 100
    assert sorted(name for name in EMITTERS if not _mentioned(name)) == []


def test_every_operation_of_core_programs_can_be_read():
    context = _context()
    assert sorted(name for name in EMITTERS if context.get_optional_op(name) is None) == []


def _mentioned(name: str) -> bool:
    last = re.escape(name.partition(".")[2])
    return bool(re.search(rf"{re.escape(name)}\b(?!\.)", TEXT) or re.search(rf"[\"']{last}[\"']", TEXT))


@pytest.mark.parametrize(
    "view",
    [
        "%v = memref.assume_alignment %a, 4 : memref<8xi32>",
        "%w = memref.memory_space_cast %a : memref<8xi32> to memref<8xi32, 1>\n"
        "%v = memref.memory_space_cast %w : memref<8xi32, 1> to memref<8xi32>",
    ],
)
def test_views_that_change_nothing_are_the_same_memory(view):
    body = f"""
      {view}
      %x = arith.constant 40 : i32
      memref.store %x, %v[%c3] : memref<8xi32>"""
    assert run_core(body, {"a": EIGHT})["a"].tolist() == [0, 1, 2, 40, 4, 5, 6, 7]


def test_markers_of_the_trace_change_nothing():
    body = """
      aie.event(0)
      %x = arith.constant 9 : i32
      memref.store %x, %a[%c1] : memref<8xi32>
      aie.event(1)"""
    assert run_core(body, {"a": EIGHT})["a"].tolist() == [0, 9, 2, 3, 4, 5, 6, 7]


FREE = {
    "aie.end", "aie.event", "aie.get_cascade", "aie.get_stream", "aie.put_cascade", "aie.put_stream", "aie.use_lock",
    "arith.constant", "arith.index_cast", "func.call", "aie.tile", "aie.buffer", "aie.external_buffer", "aie.lock",
}  # fmt: skip


def test_operations_without_a_cost_of_their_own_are_those_that_ports_locks_and_calls_have():
    """And declarations, constants, casts of an index, for which no instruction is issued; all others are a cycle."""
    for name in EMITTERS:
        block: Any = SimpleNamespace(ops=[SimpleNamespace(name=name)] * 3)
        assert operations_that_cost(block) == (0 if name in FREE else 3), name
