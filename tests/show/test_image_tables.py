"""Tables of an image's register writes, with addresses as AMD's register tables have them."""

from collections.abc import Iterable

import pytest
from rich.table import Table

from bdforge.array.images.cdo import cdo
from bdforge.array.images.pdi import pdi
from bdforge.array.images.read import Container, ImageContent, KernelEntry
from bdforge.array.images.xclbin_write import xclbin
from bdforge.array.show import ShowError, command
from bdforge.array.show.container import image_tables
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write

CORE_LOCK, CORE_CONTROL, CORE_PROGRAM, CORE_CASCADE = 0x1F000, 0x32000, 0x20000, 0x36060
MEMTILE_BD, MEMTILE_S2MM_QUEUE, MEMTILE_MM2S_QUEUE, CORE_MM2S_QUEUE = 0xA0000, 0xA0604, 0xA0634, 0x1DE14


def at(column: int, row: int, offset: int) -> int:
    return column << 25 | row << 20 | offset


def tables(*configurations: Iterable[Operation], container: Container | None = None) -> dict[str, list[tuple]]:
    """Rows of each table by its title."""
    image = ImageContent("CDO", tuple(map(tuple, configurations)), container)
    found = [table for table in image_tables(image) if isinstance(table, Table)]
    return {str(table.title): list(zip(*(column.cells for column in table.columns), strict=True)) for table in found}


def test_a_tile_counts_bytes_locks_bds_and_tasks_and_leaves_zeros_out():
    found = tables([
        BlockWrite(at(0, 2, CORE_PROGRAM), (1, 2, 3)), BlockWrite(at(0, 2, 0x400), (7,) * 5),
        Write(at(0, 2, CORE_LOCK), 2), Write(at(0, 2, CORE_LOCK + 0x30), 0), Write(at(0, 2, CORE_CONTROL), 1),
        BlockWrite(at(0, 1, MEMTILE_BD), (4,) * 8), BlockWrite(at(0, 1, MEMTILE_BD + 0x60), (4,) * 8),
        Write(at(0, 1, MEMTILE_S2MM_QUEUE), 3),
    ])  # fmt: skip
    assert found["8 register writes"] == [
        ("memtile (0, 1)", "", "", "", "", "2", "1"), ("core (0, 2)", "enabled", "12", "20", "2", "", ""),
    ]  # fmt: skip
    assert found["memories"] == [("core (0, 2)", "program", "0x0", "12"), ("core (0, 2)", "data", "0x400", "20")]
    assert found["locks that are not 0"] == [("core (0, 2)", "0: 2")]
    assert [row[:2] for row in found["BDs, in words"]] == [("memtile (0, 1)", "0"), ("memtile (0, 1)", "3")]


def test_tables_without_rows_are_left_out_and_configurations_numbered():
    assert list(tables([Write(at(0, 2, CORE_LOCK), 0)])) == ["1 register writes"]
    two = tables([Write(at(0, 2, CORE_LOCK), 0)], [Write(at(0, 2, CORE_LOCK), 0)] * 2)
    assert list(two) == ["configuration 0: 1 register writes", "configuration 1: 2 register writes"]


@pytest.mark.parametrize(("word", "row"), [
    (0, ("S2MM 0", "0", "1", "")), (5 | 1 << 16, ("S2MM 0", "5", "2", "")),
    (47 | 255 << 16 | 1 << 31, ("S2MM 0", "47", "256", "yes")),
])  # fmt: skip
def test_a_task_tells_its_runs_which_are_its_repeats_and_one(word: int, row: tuple[str, ...]):
    assert tables([Write(at(3, 1, MEMTILE_S2MM_QUEUE), word)])["tasks"] == [("memtile (3, 1)", *row)]


def test_tasks_keep_their_order_and_name_direction_and_channel():
    found = tables([
        Write(at(0, 1, MEMTILE_MM2S_QUEUE + 8), 2), Write(at(0, 1, MEMTILE_S2MM_QUEUE), 1),
        Write(at(0, 2, CORE_MM2S_QUEUE), 1),
    ])  # fmt: skip
    assert [row[:3] for row in found["tasks"]] == [
        ("memtile (0, 1)", "MM2S 1", "2"), ("memtile (0, 1)", "S2MM 0", "1"), ("core (0, 2)", "MM2S 0", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("control", "text"), [(None, ""), (0, "stopped"), (1, "enabled"), (2, "stopped"), (3, "enabled")]
)
def test_a_core_runs_when_bit_0_of_its_control_is_set(control: int | None, text: str):
    writes = [Write(at(0, 2, CORE_LOCK), 0), *([] if control is None else [Write(at(0, 2, CORE_CONTROL), control)])]
    (row,) = tables(writes)[f"{len(writes)} register writes"]
    assert row[1] == text


@pytest.mark.parametrize(("word", "text"), [
    (0, "North to South"), (1, "West to South"), (2, "North to East"), (3, "West to East"),
])  # fmt: skip
def test_a_cascade_tells_both_its_sides(word: int, text: str):
    (row,) = tables([MaskWrite(at(2, 3, CORE_CASCADE), value=word, mask=3)])["1 register writes"]
    assert row[1] == f"cascade {text}"


ON, MEMTILE_MASTER, MEMTILE_SLAVE = 1 << 31, 0xB0000, 0xB0100
"""What enables a port of a switch; where a memtile's masters and slaves begin, DMA 0 to 5 first."""


def test_routes_lead_from_slaves_to_masters():
    """Slave 0 to masters 1 and 4, slave 2 to master 0; slave 3 is enabled, but no master takes its words."""
    found = tables([
        *(Write(at(0, 1, MEMTILE_SLAVE + 4 * slave), ON) for slave in (0, 2, 3)),
        *(Write(at(0, 1, MEMTILE_MASTER + 4 * master), ON | slave) for master, slave in ((1, 0), (4, 0), (0, 2))),
    ])  # fmt: skip
    assert found["routes"] == [
        ("(0, 1) DMA : 0", "", "(0, 1) DMA : 1, (0, 1) DMA : 4"), ("(0, 1) DMA : 2", "", "(0, 1) DMA : 0"),
        ("(0, 1) DMA : 3", "", "lost: nothing is set for slave port (0, 1) DMA : 3"),
    ]  # fmt: skip


def test_routes_that_cannot_be_followed_say_why():
    """No array has a column 60."""
    ((start, packets, text),) = tables([Write(at(60, 1, MEMTILE_SLAVE), ON)])["routes"]
    assert (start, packets, text.partition(":")[0]) == ("", "", "cannot be followed")


LAST = 253402300799
"""The second before the year 10000 begins (date -u -d 9999-12-31T23:59:59 +%s)."""


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "1970-01-01 00:00:00 UTC"), (1_700_000_000, "2023-11-14 22:13:20 UTC"), (LAST, "9999-12-31 23:59:59 UTC"),
    (LAST + 1, f"{LAST + 1} s since 1970"), ((1 << 64) - 1, f"{(1 << 64) - 1} s since 1970"),
])  # fmt: skip
def test_a_container_tells_its_time_as_far_as_dates_go(seconds: int, text: str):
    container = Container("ab", seconds, (("MEM_TOPOLOGY", 88),), (), (), {})
    assert tables(container=container)["xclbin"] == [
        ("uuid", "ab"), ("time", text), ("columns of partitions", "no partition"), ("sections", "MEM_TOPOLOGY 88 B"),
    ]  # fmt: skip


def test_a_container_lists_kernels_and_cores_that_run_on_the_host():
    hosted = {(0, 2): ("zero", "mm"), (1, 2): ()}
    container = Container("ab", 0, (), (4, 8), (KernelEntry("a:b", 0x901), KernelEntry("c:d", 16)), hosted)
    assert tables(container=container)["xclbin"][2:] == [
        ("columns of partitions", "4, 8"), ("kernel", "a:b, id 0x901"), ("kernel", "c:d, id 0x10"),
        ("core (0, 2)", "no machine code; on the host: zero, mm"),
        ("core (1, 2)", "no machine code; on the host: its body"), ("sections", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{"out": "x.png"}, {"device": "main"}, {"out": "x.svg", "device": "main"}])
def test_an_image_takes_neither_a_picture_nor_a_device(tmp_path, options):
    """Of the three kinds, none: out is a picture of MLIR, and an image holds no device with a name."""
    given = {name: tmp_path / value if name == "out" else value for name, value in options.items()}
    files = {"cdo": cdo([Write(at(0, 2, CORE_LOCK), 1)])}
    files |= {"pdi": pdi([files["cdo"]])}
    files |= {"xclbin": xclbin(files["pdi"], 4)}
    for suffix, content in files.items():
        (tmp_path / f"it.{suffix}").write_bytes(content)
        assert "core (0, 2)" in command(tmp_path / f"it.{suffix}")
        with pytest.raises(ShowError, match="is an image: it is shown in tables"):
            command(tmp_path / f"it.{suffix}", **given)
    assert {path.suffix for path in tmp_path.iterdir()} == {".cdo", ".pdi", ".xclbin"}
