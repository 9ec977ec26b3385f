"""Limits of tiles, channels and host memory, each with the last that is taken and the first that is refused."""

from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import ArgumentError, DmaError
from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.errors import UnpatchedError
from bdforge.array.emulator.host import FIRST_ADDRESS, GUARD_BYTES, SPARE_BYTES, HostBuffers

MIB = 1 << 20


def memory(*sizes: int, **options: Any) -> HostBuffers:
    return HostBuffers([(f"x{i}", np.zeros(size, np.uint8)) for i, size in enumerate(sizes)], **options)


def test_arguments_lie_a_guard_apart_whatever_their_size():
    found = memory(4, MIB - 4, MIB, MIB + 4, 4)
    assert [found.address_of(i) - FIRST_ADDRESS for i in range(5)] == [0, 2 * MIB, 4 * MIB, 6 * MIB, 9 * MIB]
    assert GUARD_BYTES == MIB
    for argument in (-1, 5):
        with pytest.raises(ArgumentError, match=f"argument {argument} is patched in, but the run was given 5 arrays"):
            found.address_of(argument)


RUN = Order(4, None, 0, 3)


@pytest.mark.parametrize(("size", "last"), [(64, 48), (62, 48), (61, 48)])
def test_a_transfer_ends_with_the_last_word_of_its_argument(size: int, last: int):
    found = memory(size)
    base = found.address_of(0)
    assert found.locate(base + last, RUN, False, "here")[1] == last // 4
    with pytest.raises(DmaError, match=f"touches bytes {last + 4} to {last + 19} of argument x0, which has {size}"):
        found.locate(base + last + 4, RUN, False, "here")
    with pytest.raises(DmaError, match="here touches bytes -4 to 11 of argument x0"):
        found.locate(base, Order(4, None, -1, 2), False, "here")


def test_addresses_of_no_argument_were_never_patched():
    found = memory(64)
    base = found.address_of(0)
    with pytest.raises(DmaError, match="touches bytes"):
        found.locate(base + 63 + SPARE_BYTES, RUN, False, "here")
    for address in (base - 4, base + 64 + SPARE_BYTES):
        with pytest.raises(UnpatchedError, match=f"host address {address:#x}, which belongs to no argument"):
            found.locate(address, RUN, False, "here")


def test_spare_bytes_are_there_where_they_are_permitted():
    faults: list[DmaError] = []
    found = memory(64, beyond=faults.append)
    base = found.address_of(0)
    found.locate(base + 64 + SPARE_BYTES - 16, RUN, True, "here")
    assert len(faults) == 1
    with pytest.raises(DmaError, match="touches bytes"):
        found.locate(base + 64 + SPARE_BYTES - 12, RUN, True, "here")


def test_an_argument_that_is_read_only_may_be_read():
    array = np.zeros(64, np.uint8)
    array.flags.writeable = False
    found = HostBuffers([("x", array)])
    assert found.locate(found.address_of(0) + 16, RUN, False, "here")[1] == 4
    with pytest.raises(DmaError, match="here writes to argument x, which is read-only"):
        found.locate(found.address_of(0) + 16, RUN, True, "here")
