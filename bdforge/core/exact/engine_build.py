"""The fast executor's library: what it and Python hand each other, and how it is compiled once for this machine.

`engine/engine.cpp` has the same structures.
"""

import ctypes
from dataclasses import astuple
from functools import cache
from pathlib import Path

from bdforge.common.compilers import compiled
from bdforge.common.messages import Fault
from bdforge.core.exact.core_memory import BANKS
from bdforge.core.exact.profile import MOST_MARKS
from bdforge.core.exact.register_layout import FORWARDED
from bdforge.core.isa.meaning.multiply import TABLES
from bdforge.core.isa.meaning.nonlinear import approximated
from bdforge.core.isa.meaning.shuffle import MODES, routed_bytes
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

PLACES, OPTIONS = 8, 4
_HALVES = PROGRAM_MEMORY_BYTES // 2


class EngineRow(ctypes.Structure):
    """A step of an instruction: function, offset of the buffer, cycles from issue, phase, places, options."""

    _fields_ = (
        ("function", ctypes.c_int32), ("offset", ctypes.c_int32), ("delay", ctypes.c_int32), ("phase", ctypes.c_int32),
        ("a", ctypes.c_int32 * PLACES), ("o", ctypes.c_int32 * OPTIONS),
    )  # fmt: skip


class EngineMark(ctypes.Structure):
    """Where another part of the program begins to run."""

    _fields_ = (("cycle", ctypes.c_int64), ("conflicts", ctypes.c_int64), ("part", ctypes.c_int64))


class EngineState(ctypes.Structure):
    """A core, where the library has it: registers, counters, and what it asks for or why it stopped."""

    _fields_ = (
        ("cycle", ctypes.c_int64), ("bundles", ctypes.c_int64), ("conflicts", ctypes.c_int64),
        ("parts", ctypes.c_void_p),
        ("pc", ctypes.c_int32), ("fault", ctypes.c_int32), ("part", ctypes.c_int32), ("pending_stores", ctypes.c_int32),
        ("marked", ctypes.c_int32), ("assumes", ctypes.c_int32), ("request", ctypes.c_int32), ("bytes", ctypes.c_int32),
        ("registers", ctypes.c_uint8 * (2 * FORWARDED)), ("unknown", ctypes.c_uint8 * (FORWARDED // 2)),
        ("counts", ctypes.c_int64 * _HALVES), ("macs", ctypes.c_int64 * _HALVES), ("uses", ctypes.c_int64 * BANKS),
        ("marks", EngineMark * MOST_MARKS), ("request_data", ctypes.c_void_p), ("values", ctypes.c_uint32 * 5),
        ("assumed", ctypes.c_int32), ("approximation", ctypes.c_int32), ("message", ctypes.c_char * 256),
    )  # fmt: skip


DONE, TRANSLATE, ASK, FAULT, BUDGET = range(5)
"""Why the library stopped."""

LAND, FORWARD, REQUEST, READ, OPERATE, STORE = range(6)
"""Phases of a cycle."""


SOURCES = Path(__file__).parent / "engine"
FLAGS = ("-fno-strict-aliasing", "-fvisibility=hidden", "-pthread")


class EngineError(Fault, RuntimeError):
    """The fast executor cannot be compiled."""


@cache
def library() -> ctypes.CDLL | None:
    """The library, compiled when it is not there yet; None without a C++ compiler. EngineError if that fails."""
    path = compiled(SOURCES / "engine.cpp", FLAGS, EngineError, native=True)
    if path is None:
        return None
    found = _declared(ctypes.CDLL(str(path)))
    found.engine_shuffles(b"".join(map(routed_bytes, range(MODES))), MODES)
    numbers = [n for row in approximated() for n in astuple(row)[2:]]
    found.engine_approximations((ctypes.c_double * len(numbers))(*numbers))
    for table, shapes in enumerate(TABLES):
        numbers = [n for modes, shape in shapes.items() for n in (*modes, *astuple(shape))]
        found.engine_shapes(table, (ctypes.c_int32 * len(numbers))(*numbers), len(shapes))
    return found


def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """Argument and result types of the library's functions."""
    pointer, integer, number, boolean = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_bool
    signatures = {
        "engine_functions": (ctypes.c_char_p, []),
        "engine_product": (boolean, [integer, integer, pointer, pointer, boolean, boolean, pointer]),
        "engine_shuffles": (None, [ctypes.c_char_p, integer]),
        "engine_approximations": (None, [pointer]),
        "engine_shapes": (None, [integer, pointer, integer]),
        "engine_program": (pointer, [integer, integer, integer]),
        "engine_drop_program": (None, [pointer]),
        "engine_add": (None, [pointer, *[integer] * 6, ctypes.POINTER(EngineRow), integer]),
        "engine_constant": (integer, [pointer, ctypes.c_uint64]),
        "engine_forget": (None, [pointer]),
        "engine_states": (ctypes.c_char_p, [pointer, integer]),
        "engine_attach": (None, [pointer, pointer]),
        "engine_core": (ctypes.POINTER(EngineState), [pointer, pointer, pointer]),
        "engine_drop_core": (None, [ctypes.POINTER(EngineState)]),
        "engine_run": (integer, [ctypes.POINTER(EngineState), number]),
        "engine_run_beside": (None, [pointer, pointer, pointer, integer, integer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found
