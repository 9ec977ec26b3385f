"""Rules of silicon by themselves: the last value that passes, and the first that is told of."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.emulator import silicon_rules as silicon
from bdforge.array.emulator.bd_access import ShimAccess
from bdforge.array.emulator.cores.core import Frame, largest
from bdforge.array.emulator.strictness import Strictness


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


@pytest.mark.parametrize(("counts", "told_of"), [((9,), False), ((1, 1), False), ((1, 2), True), ((0, 3), True)])
def test_a_wait_for_several_tiles_may_take_two_tokens_of_one(counts: tuple[int, ...], told_of: bool):
    tokens = Counter({(column, 0, "MM2S", 0): count for column, count in enumerate(counts)})
    sync: Any = SimpleNamespace(columns=len(tokens), rows=1)
    found = told(lambda rules: silicon.check_wide_wait(sync, list(tokens), tokens, "", rules))
    assert ("[wide-wait]" in found) == told_of, found


@pytest.mark.parametrize(("counts", "told_of"), [((4,), False), ((5,), True), ((4, 9), False)])
def test_more_than_four_tokens_of_a_column_are_told_of(counts: tuple[int, ...], told_of: bool):
    tokens = Counter({(column, row, "MM2S", 0): 1 for column, count in enumerate(counts) for row in range(count)})
    assert bool(told(lambda rules: silicon.check_unread(tokens, 0, rules))) == told_of


@pytest.mark.parametrize(("size", "kept", "fits"), [(96, 32, True), (97, 32, False), (128, 0, True), (129, 0, False)])
def test_a_stack_holds_the_largest_frame_beside_what_is_kept(size: int, kept: int, fits: bool):
    frames = [("small", Frame(8, "a.o")), ("large", Frame(size, "b.o")), ("middle", Frame(64, "c.o"))]
    found = largest(frames, 128, kept)
    assert (found is None) == fits, found
    if found:
        beside = f" beside {kept} of memref.alloca" if kept else ""
        assert found.startswith(f"its stack has 128 bytes, but large takes {size}{beside} (b.o)")
    assert largest([], 0, 99) is None
