"""The fast executor's library: what it and Python hand each other, and how it is compiled once for this machine.

`engine/engine.cpp` has the same structures.
"""

import ctypes
from dataclasses import astuple
from functools import cache
from pathlib import Path

from bdforge.common.compilers import compiled
from bdforge.common.messages import Fault
from bdforge.core.isa.meaning.multiply import AIE2_SHAPES, SHAPES
from bdforge.core.isa.meaning.shuffle import MODES, is_of_two, routed_bytes

PLACES, OPTIONS = 8, 4


class EngineRow(ctypes.Structure):
    """A step of an instruction: function, offset of the buffer, cycles from issue, phase, places, options."""

    _fields_ = (
        ("function", ctypes.c_int32), ("offset", ctypes.c_int32), ("delay", ctypes.c_int32), ("phase", ctypes.c_int32),
        ("a", ctypes.c_int32 * PLACES), ("o", ctypes.c_int32 * OPTIONS),
    )  # fmt: skip


class EngineState(ctypes.Structure):
    """A core's counters, and what it asks for or why it stopped."""

    _fields_ = (
        ("cycle", ctypes.c_int64), ("bundles", ctypes.c_int64), ("conflicts", ctypes.c_int64),
        ("pc", ctypes.c_int32), ("fault", ctypes.c_int32), ("stopped", ctypes.c_int32), ("request", ctypes.c_int32),
        ("bytes", ctypes.c_int32), ("values", ctypes.c_uint32 * 5), ("pending_stores", ctypes.c_int32),
    )  # fmt: skip


class EngineMark(ctypes.Structure):
    """Where another part of the program begins to run."""

    _fields_ = (("cycle", ctypes.c_int64), ("conflicts", ctypes.c_int64), ("part", ctypes.c_int64))


DONE, TRANSLATE, ASK, FAULT, BUDGET = range(5)
"""Why the library stopped."""

LAND, FORWARD, REQUEST, READ, OPERATE, STORE = range(6)
"""Phases of a cycle."""


SOURCES = Path(__file__).parent / "engine"


class EngineError(Fault, RuntimeError):
    """The fast executor cannot be compiled."""


@cache
def library() -> ctypes.CDLL | None:
    """The library, compiled when it is not there yet; None without a C++ compiler. EngineError if that fails."""
    path = compiled(SOURCES / "engine.cpp", ("-fno-strict-aliasing",), EngineError, native=True)
    if path is None:
        return None
    found = _declared(ctypes.CDLL(str(path)))
    found.engine_shuffles(b"".join(map(routed_bytes, range(MODES))), bytes(map(is_of_two, range(MODES))), MODES)
    for aie2, shapes in enumerate((SHAPES, AIE2_SHAPES)):
        numbers = [n for modes, shape in shapes.items() for n in (*modes, *astuple(shape))]
        found.engine_shapes(aie2, (ctypes.c_int32 * len(numbers))(*numbers), len(shapes))
    return found


def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """Argument and result types of the library's functions."""
    pointer, integer, number, boolean = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_bool
    signatures = {
        "engine_functions": (ctypes.c_char_p, []),
        "engine_product": (boolean, [integer, integer, pointer, pointer, boolean, boolean, pointer]),
        "engine_shuffles": (None, [ctypes.c_char_p, ctypes.c_char_p, integer]),
        "engine_shapes": (None, [boolean, pointer, integer]),
        "engine_program": (pointer, []),
        "engine_drop_program": (None, [pointer]),
        "engine_add": (None, [pointer, *[integer] * 6, ctypes.POINTER(EngineRow), integer]),
        "engine_constant": (integer, [pointer, ctypes.c_uint64]),
        "engine_forget": (None, [pointer]),
        "engine_core": (pointer, [pointer, pointer, pointer, integer, integer, integer]),
        "engine_drop_core": (None, [pointer]),
        "engine_registers": (pointer, [pointer]),
        "engine_unknown": (pointer, [pointer]),
        "engine_counts": (ctypes.POINTER(number), [pointer]),
        "engine_macs": (ctypes.POINTER(number), [pointer]),
        "engine_uses": (ctypes.POINTER(number), [pointer]),
        "engine_assume": (None, [pointer]),
        "engine_assumed": (integer, [pointer]),
        "engine_watch": (None, [pointer, pointer, integer]),
        "engine_marks": (integer, [pointer, ctypes.POINTER(ctypes.POINTER(EngineMark))]),
        "engine_request_data": (pointer, [pointer]),
        "engine_message": (ctypes.c_char_p, [pointer]),
        "engine_state": (None, [pointer, ctypes.POINTER(EngineState)]),
        "engine_run": (integer, [pointer, number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found
