"""Every named limit takes its last value and refuses the next one, wherever it is enforced."""

import pytest
from file_limits import file_limits
from limit_table import Limit
from named_limits import NO_LIMIT, named_limits
from stream_limits import stream_limits
from tile_limits import tile_limits
from tool_limits import tool_limits

from bdforge.devices import registers
from bdforge.devices.bd_registers import RegisterError, RegisterGroup

LIMITS = [*tile_limits(), *stream_limits(), *file_limits(), *tool_limits()]
each_limit = pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.name}: {limit.place.words[:30]}")


def test_every_named_limit_has_a_pair_of_cases():
    """A new one goes into a table beside this file, or into NO_LIMIT with the reason."""
    known = {limit.name for limit in LIMITS} | set(NO_LIMIT)
    assert sorted(set(named_limits()) - known) == [], "limits without a last accepted and a first refused value"
    assert sorted(known - set(named_limits())) == [], "limits of the tables that bdforge does not name"


def test_limits_have_the_numbers_that_were_written_down_twice():
    named = named_limits()
    assert {limit.name: limit.number for limit in LIMITS} == {limit.name: named[limit.name] for limit in LIMITS}


@each_limit
def test_the_last_value_is_accepted(limit: Limit):
    limit.place.case(limit.last)


@each_limit
def test_the_next_value_is_refused_by_name(limit: Limit):
    with pytest.raises(limit.place.error) as caught:
        limit.place.case(limit.last + 1)
    assert limit.place.words in str(caught.value)


LAYOUTS = {name: layout for name, layout in vars(registers).items() if isinstance(layout, RegisterGroup)}
FIELDS = [(layout, field) for layout in LAYOUTS for field in LAYOUTS[layout].fields]


@pytest.mark.parametrize(("layout", "field"), FIELDS)
def test_a_register_field_holds_its_ends_alone_and_refuses_what_is_next(layout: str, field: str):
    """Filled with ones it changes no other field; one more than its width holds is an error that names it."""
    group, at = LAYOUTS[layout], LAYOUTS[layout].fields[field]
    width = at.high - at.low + 1
    ends = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if at.signed else (0, (1 << width) - 1)
    for value in ends:
        words = group.encode({field: value})
        assert group.decode(words) == dict.fromkeys(group.fields, 0) | {field: value}
        assert sum(word.bit_count() for word in words) == (value & ((1 << width) - 1)).bit_count()
    for value in (ends[0] - 1, ends[1] + 1):
        with pytest.raises(RegisterError, match=f"{field} = {value} does not fit .*holds {ends[0]} to {ends[1]}"):
            group.encode({field: value})


def test_bits_beyond_a_field_are_told_and_lost_where_a_caller_takes_them():
    """Of 0x4001a in 17 bits 0x1a is left, of -65 in 7 signed ones 63; the word's other fields stay."""
    told: list[str] = []
    group = registers.MEMTILE_BD
    values = {"length": 0x4001A, "packet_id": 3, "acquire_value": -65, "acquire_id": 200}
    words = group.encode(values, too_wide=lambda error: told.append(str(error)))
    assert group.decode(words) == dict.fromkeys(group.fields, 0) | values | {"length": 0x1A, "acquire_value": 63}
    assert [text.partition(" does")[0] for text in told] == [
        "memtile BD: length = 262170",
        "memtile BD: acquire_value = -65",
    ]
