"""What Python and the fast executor's library hand each other; `engine/engine.cpp` has the same structures."""

import ctypes

PLACES, OPTIONS = 8, 4


class Row(ctypes.Structure):
    """A step of an instruction: function, offset of the buffer, cycles from issue, phase, places, options."""

    _fields_ = (
        ("function", ctypes.c_int32), ("offset", ctypes.c_int32), ("delay", ctypes.c_int32), ("phase", ctypes.c_int32),
        ("a", ctypes.c_int32 * PLACES), ("o", ctypes.c_int32 * OPTIONS),
    )  # fmt: skip


class State(ctypes.Structure):
    """A core's counters, and what it asks for or why it stopped."""

    _fields_ = (
        ("cycle", ctypes.c_int64), ("bundles", ctypes.c_int64), ("conflicts", ctypes.c_int64),
        ("pc", ctypes.c_int32), ("fault", ctypes.c_int32), ("stopped", ctypes.c_int32), ("request", ctypes.c_int32),
        ("bytes", ctypes.c_int32), ("values", ctypes.c_uint32 * 2), ("pending_stores", ctypes.c_int32),
    )  # fmt: skip


class Mark(ctypes.Structure):
    """Where another part of the program begins to run."""

    _fields_ = (("cycle", ctypes.c_int64), ("conflicts", ctypes.c_int64), ("part", ctypes.c_int64))


DONE, TRANSLATE, ASK, FAULT, BUDGET = range(5)
"""Why the library stopped."""

LAND, FORWARD, REQUEST, READ, OPERATE, STORE = range(6)
"""Phases of a cycle."""
