"""One comparison for integers and arrays, against the registers themselves."""

from random import Random
from typing import Any

import numpy as np
import pytest

from bdforge.devices.limits import CORE, MEMTILE, SHIM, TileLimits
from bdforge.devices.rules import RANGES, bounds, exceeded, fits, outside
from bdforge.devices.txn_format.bd_encoding import BdError, encode_bd

KINDS = (SHIM, MEMTILE, CORE)


def edge(random: Random, most: int) -> int:
    """A value at a limit, beside it, or far below; not 1, of which no step counts."""
    return random.choice((most - 1, most, most + 1, 2 + random.randrange(max(most // 2, 1))))


def words(random: Random, limits: TileLimits) -> dict:
    """A BD whose values lie around the limits."""
    rank = random.randint(1, limits.dims)
    wraps = (*limits.wraps, 100)
    dims = [(edge(random, wraps[min(n, len(wraps) - 1)]), edge(random, limits.step_max)) for n in reversed(range(rank))]
    found: dict[str, Any] = {"dims": dims, "length": edge(random, limits.length_max)}
    if random.random() < 0.5:
        found["iteration"] = (edge(random, limits.iteration_wrap_max), edge(random, limits.step_max))
    if limits.pad_max:
        pads = [limits.pad_max[n] if n < 3 else 0 for n in reversed(range(rank))]
        found["padding"] = [(edge(random, most), edge(random, most)) if most else (0, 0) for most in pads]
    return found


def in_registers(limits: TileLimits, bd: dict) -> bool:
    try:
        encode_bd(
            limits.kind, length_words=bd["length"], dims_words=bd["dims"], iteration=bd.get("iteration"),
            padding=bd.get("padding", ()),
        )  # fmt: skip
    except BdError:
        return False
    return True


@pytest.mark.parametrize("limits", KINDS, ids=lambda limits: limits.kind)
def test_what_fits_is_what_registers_take(limits: TileLimits):
    random = Random(7)
    told = {True: 0, False: 0}
    for _ in range(3000):
        bd = words(random, limits)
        expected = in_registers(limits, bd)
        assert fits(limits, **bd) is expected, bd
        assert (not list(exceeded(limits, **bd))) is expected
        told[expected] += 1
    assert min(told.values()) > 20


def test_reasons_name_field_dimension_value_and_limit():
    found = list(exceeded(SHIM, dims=[(3, (1 << 20) + 1), (1024, 4), (1023, 1)], iteration=(65, 1), length=1 << 32))
    assert found == [
        ("size", 1, 1024, 1023),
        ("step", 2, (1 << 20) + 1, 1 << 20),
        ("runs", 3, 65, 64),
        ("length", 0, 1 << 32, (1 << 32) - 1),
    ]
    assert list(exceeded(CORE, padding=[(1, 0)])) == [("padding before", 0, 1, 0)]


def test_padding_has_a_limit_in_each_dimension_on_each_side():
    """Of a memtile 63, 31 and 15 words from the innermost on, of a fourth dimension and of other tiles none."""
    most = [(0, 0), (15, 15), (31, 31), (63, 63)]
    assert list(exceeded(MEMTILE, padding=most)) == []
    beyond = [(before + 1, after + 1) for before, after in most]
    sides = ("padding before", "padding after")
    assert list(exceeded(MEMTILE, padding=beyond)) == [
        (side, number, limit + 1, limit) for number, limit in ((3, 0), (2, 15), (1, 31), (0, 63)) for side in sides
    ]
    assert list(exceeded(SHIM, padding=[(0, 1)])) == [("padding after", 0, 1, 0)]


def test_the_outermost_dimension_has_no_size_field():
    assert [b[1] for b in bounds(SHIM, dims=[(9999, 1)] * 3) if b[0] == "size"] == [1, 0]


def test_arrays_are_judged_value_by_value():
    random = Random(11)
    many = [[(edge(random, 1023), edge(random, 1 << 17)) for _ in range(3)] for _ in range(500)]
    columns = np.array(many).transpose(1, 2, 0)
    lengths = np.array([edge(random, MEMTILE.length_max) for _ in many])
    found = fits(MEMTILE, dims=[(size, step) for size, step in columns], length=lengths)
    expected = [fits(MEMTILE, dims=bd, length=int(n)) for bd, n in zip(many, lengths, strict=True)]
    assert found.tolist() == expected
    assert any(expected)
    assert not all(expected)


LAST = {  # of what is counted from 0: of a shim, a memtile and a core
    "bd_id": (15, 47, 15), "next_bd_id": (15, 47, 15), "channel": (1, 5, 1), "lock": (15, 63, 15),
    "lock value": (63, 63, 63), "repeat_count": (255, 255, 255), "pkt_id": (31, 31, 31), "pkt_type": (7, 7, 7),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*LAST, *RANGES}))
def test_what_is_counted_from_0_ends_where_its_tile_does(name: str):
    for tile, last in zip(KINDS, LAST[name], strict=True):
        assert outside(name, 0, tile) is outside(name, last, tile) is None
        for value in (-1, last + 1):
            assert str(outside(name, value, tile)).startswith(f"{name} = {value} is outside 0 to {last}, ")
