"""Rules of silicon by themselves: the last value that passes, and the first that is told of."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.emulator import silicon_rules as silicon
from bdforge.array.emulator.bd_access import ShimAccess
from bdforge.array.emulator.cores.stack import Frame, largest
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices.limits import HOST_BUFFERS


def told(rule: Callable[[Strictness], object]) -> str:
    """What a rule finds: the note of a fault, or its warnings."""
    strictness = Strictness()
    try:
        rule(strictness)
    except Exception as error:
        return f"{error} {' '.join(error.__notes__)}"
    return "; ".join(strictness.warnings)


ACCESSES = [(burst, cache, qos) for burst in range(4) for cache, qos in ((0, 0), (2, 0), (3, 0))]
ACCESSES += [(3, cache, 0) for cache in range(16)] + [(3, 2, qos) for qos in range(16)]


@pytest.mark.parametrize("access", dict.fromkeys(ACCESSES), ids=str)
def test_shims_reach_dram_by_codes_that_are_known(access: tuple[int, int, int]):
    burst, cache, qos = access
    found = told(lambda rules: silicon.check_shim_access(ShimAccess(*access), lambda: "here", rules, 512))
    names = {"[shim-burst]": burst == 0, "[shim-cache]": cache not in (0, 2, 3), "[shim-qos]": qos != 0}
    assert {name: name in found for name in names} == names, f"burst, cache and quality {access}: {found!r}"


def counted(*counts: int) -> Counter:
    """So many tokens of one channel of each column from 0 on."""
    return Counter({(column, 0, "MM2S", 0): count for column, count in enumerate(counts)})


def sync(columns: int) -> Any:
    return SimpleNamespace(columns=columns, rows=1)


def wait(tokens: Counter) -> Callable[[Strictness], None]:
    keys = list(tokens)
    return lambda rules: silicon.check_wide_wait(sync(len(keys)), keys, tokens, "", rules)


def patch(argument: int) -> Callable[[Strictness], None]:
    found: Any = SimpleNamespace(argument=argument)
    return lambda rules: silicon.check_argument(rules, found, "")


RULES: dict[str, list[tuple[Callable[[Strictness], None], bool]]] = {
    "unread-tokens": [
        (lambda rules: silicon.check_unread(counted(4), 0, rules), False),
        (lambda rules: silicon.check_unread(counted(5), 0, rules), True),
        (lambda rules: silicon.check_unread(counted(4, 9), 0, rules), False),
        (lambda rules: silicon.check_unread(Counter({(0, 0, "MM2S", 0): 3, (0, 1, "S2MM", 2): 2}), 0, rules), True),
    ],
    "wide-wait": [
        (wait(counted(9)), False), (wait(counted(1, 1)), False), (wait(counted(1, 2)), True),
        (wait(counted(0, 3)), True),
    ],
    "control-columns": [
        (lambda rules: silicon.check_control_columns({3}, rules), False),
        (lambda rules: silicon.check_control_columns({3, 4}, rules), True),
    ],
    "shared-locks": [
        (lambda rules: silicon.check_lock_pair("tile", {5}, rules), False),
        (lambda rules: silicon.check_lock_pair("tile", {5, 0}, rules), True),
    ],
    "buffer-arguments": [(patch(HOST_BUFFERS - 1), False), (patch(HOST_BUFFERS), True)],
    "channel-enable": [(lambda rules: silicon.check_enabled("S2MM 0", "", rules), True)],
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule_begins_where_it_says(name: str):
    for number, (rule, broken) in enumerate(RULES[name]):
        found = told(rule)
        assert (f"[{name}]" in found) == broken, f"case {number} of {name}: {found or 'nothing told'}"
    assert HOST_BUFFERS == 5


@pytest.mark.parametrize(("size", "kept", "fits"), [(96, 32, True), (97, 32, False), (128, 0, True), (129, 0, False)])
def test_a_stack_holds_the_largest_frame_beside_what_is_kept(size: int, kept: int, fits: bool):
    frames = [("small", Frame(8, "a.o")), ("large", Frame(size, "b.o")), ("middle", Frame(64, "c.o"))]
    found = largest(frames, 128, kept)
    assert (found is None) == fits, found
    if found:
        beside = f" beside {kept} of memref.alloca" if kept else ""
        assert found.startswith(f"its stack has 128 bytes, but large takes {size}{beside} (b.o)")
    assert largest([], 0, 99) is None
