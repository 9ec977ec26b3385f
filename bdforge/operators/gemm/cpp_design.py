"""A built design as a C++ initialiser, for hosts that compile it in instead of reading its manifest."""

from collections.abc import Mapping
from typing import Any

# `Design` and the structs in it, member by member, by the manifest's names.
_SHIM = (
    "bds", "wraps", "step_max", "iteration_max", "repeat_max", "tasks_in_flight", "bd_address", "bd_stride_bytes",
    "bd_constant", ("bd_fields", ("length", "d0_wrap", "d0_step", "d1_wrap", "d1_step", "d2_step", "iteration_wrap",
    "iteration_step", "next", "use_next")), "patched_word", ("queue_addresses", ("a", "b", "c")),
    ("queue_fields", ("token", "repeat", "bd")), ("token", ("direction", "channel", "columns",
    "control_address", "control_value", "control_mask")),
)  # fmt: skip
_STORAGE = ("bits", "order", "block", "run")
_RUNTIME = (
    "header", ("operands", tuple((name, _STORAGE) for name in "abc")), "largest_size", "depth_limit",
    ("arguments", ("a", "b", "c", "r", "s")), ("fed_bytes", ("panel", "tile")),
    ("a_feeds", ("column", "row", "offset", "rows")), "least_rows", ("granules", ("m", "k", "n")),
    ("cores", ("k_steps", "output_tiles", "go")), "column_stride", ("shim", _SHIM),
)  # fmt: skip
_DESIGN = (("tile", ("m", "k", "n", "k_mt")), ("array", ("rows", "columns")))


def cpp_design(facts: Mapping[str, Any]) -> str:
    """`bdforge::generator::Design{...}`, as `host/include/bdforge/stream_design.hpp` declares it, from a manifest."""
    parts = [_value(facts[name], members) for name, members in _DESIGN]
    return f"bdforge::generator::Design{{{', '.join(parts)}, {_value(facts['runtime'], _RUNTIME)[1:-1]}}}"


def _value(value: Any, members: tuple = ()) -> str:
    if isinstance(value, dict):
        pairs = [member if isinstance(member, tuple) else (member, ()) for member in members]
        return "{" + ", ".join(_value(value[name], inner) for name, inner in pairs) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(_value(item, members) for item in value) + "}"
    return str(value)
