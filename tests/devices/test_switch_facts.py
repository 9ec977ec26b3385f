"""Ports and legal connections of the stream switches, against the tables written down by hand."""

from itertools import product

import pytest

from bdforge.devices import MLIR_DEVICES, PortBundle, neighbour, switch_of
from support.switch_tables import MASTERS, SLAVES, legal

NPU1, NPU2, ONE_COLUMN = MLIR_DEVICES["npu1"], MLIR_DEVICES["npu2"], MLIR_DEVICES["npu2_1col"]


@pytest.mark.parametrize("device", [NPU1, NPU2])
@pytest.mark.parametrize(("row", "totals"), [(0, (22, 23)), (1, (17, 18)), (2, (23, 25)), (4, (23, 25))])
def test_inner_switches_have_the_ports_of_the_register_lists(device, row, totals):
    switch = switch_of(device, 2, row)
    assert (sum(switch.masters.values()), sum(switch.slaves.values())) == totals


@pytest.mark.parametrize(
    ("device", "tile", "missing"),
    [
        (NPU2, (0, 5), {"North", "West"}),
        (NPU2, (7, 3), {"East"}),
        (NPU1, (3, 0), {"East"}),
        (ONE_COLUMN, (0, 2), {"East", "West"}),
        (ONE_COLUMN, (0, 0), {"East", "West"}),
        (NPU2, (0, 1), set()),
    ],
)
def test_sides_without_a_neighbour_have_no_ports(device, tile, missing):
    switch, kind = switch_of(device, *tile), device.kind(*tile)
    assert dict(switch.masters) == {b: n for b, n in MASTERS[kind].items() if b not in missing}
    assert dict(switch.slaves) == {b: n for b, n in SLAVES[kind].items() if b not in missing}


def test_physical_numbers_do_not_move_at_the_edge():
    assert switch_of(ONE_COLUMN, 0, 2).master_number(PortBundle.NORTH, 0) == 13
    with pytest.raises(ValueError, match="no master port West : 0; the switch has 0 of West"):
        switch_of(ONE_COLUMN, 0, 2).master_number(PortBundle.WEST, 0)


@pytest.mark.parametrize("row", [0, 1, 3])
def test_connections_are_those_of_the_table(row):
    switch = switch_of(NPU2, 3, row)
    for slave, master in product(PortBundle, PortBundle):
        for i, o in product(range(9), range(7)):
            assert switch.connects(slave, i, master, o) == legal(row, (slave, i), (master, o)), (slave, i, master, o)


def test_streams_cross_no_border_beside_memtiles_nor_of_the_array():
    assert neighbour(NPU2, 3, 1, PortBundle.EAST) is None
    assert neighbour(NPU2, 3, 0, PortBundle.SOUTH) is None
    assert neighbour(NPU2, 3, 0, PortBundle.WEST) == (2, 0)
    assert neighbour(NPU2, 3, 1, PortBundle.NORTH) == (3, 2)
