"""Every register field by word and mask, and every register by its offset, as the register lists have them."""

import pytest
from register_masks import MASKS

from bdforge.devices import registers, switch_registers
from bdforge.devices.bd_registers import RegisterGroup
from bdforge.devices.limits import AIE2, TileKind
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import TILE_REGISTERS, address, split_address

LAYOUTS = {
    name: layout
    for module in (registers, switch_registers)
    for name, layout in vars(module).items()
    if isinstance(layout, RegisterGroup)
}
SIGNED = {"acquire_value", "release_value"}


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_fields_stand_where_the_register_list_has_them(name: str):
    listed = {field: (int(word), mask) for field, word, mask in map(str.split, MASKS[name].split(", "))}
    fields = LAYOUTS[name].fields
    assert {field: (at.word, f"{at.mask:08x}") for field, at in fields.items()} == listed
    assert {field for field, at in fields.items() if at.signed} == SIGNED & set(fields)


OFFSETS = {  # first and last of each register of a kind, by the names that listings give them
    TileKind.SHIM: {
        "BD 0": 0x1D000, "BD 15": 0x1D1E0, "BD 15 word 7": 0x1D1FC, "lock 0": 0x14000, "lock 15": 0x140F0,
        "S2MM 0 control": 0x1D200, "S2MM 0 queue": 0x1D204, "S2MM 1 queue": 0x1D20C, "MM2S 0 control": 0x1D210,
        "MM2S 1 control": 0x1D218, "MM2S 1 queue": 0x1D21C, "shim mux": 0x1F000, "shim demux": 0x1F004,
        "master TileControl : 0": 0x3F000, "master East : 3": 0x3F054, "slave TileControl : 0": 0x3F100,
        "slave Trace : 0": 0x3F158, "rule 0 of slave TileControl : 0": 0x3F200, "rule 3 of slave Trace : 0": 0x3F36C,
    },
    TileKind.MEMTILE: {
        "memory 0x7fffc": 0x7FFFC, "BD 0": 0xA0000, "BD 47 word 7": 0xA05FC, "lock 0": 0xC0000, "lock 63": 0xC03F0,
        "S2MM 0 control": 0xA0600, "S2MM 5 queue": 0xA062C, "MM2S 0 control": 0xA0630, "MM2S 5 queue": 0xA065C,
        "MM2S 0 pad value": 0xA06E0, "MM2S 5 pad value": 0xA06F4, "master DMA : 0": 0xB0000,
        "master North : 5": 0xB0040, "slave DMA : 0": 0xB0100, "slave Trace : 0": 0xB0144,
        "rule 3 of slave Trace : 0": 0xB031C,
    },
    TileKind.CORE: {
        "memory 0xfffc": 0xFFFC, "program memory 0x0": 0x20000, "program memory 0x3ffc": 0x23FFC, "BD 0": 0x1D000,
        "BD 15 word 5": 0x1D1F4, "lock 0": 0x1F000, "lock 15": 0x1F0F0, "S2MM 0 control": 0x1DE00,
        "S2MM 1 queue": 0x1DE0C, "MM2S 0 control": 0x1DE10, "MM2S 1 queue": 0x1DE1C, "core control": 0x32000,
        "cascade": 0x36060, "master Core : 0": 0x3F000, "master East : 3": 0x3F058, "slave Core : 0": 0x3F100,
        "slave Trace : 1": 0x3F160, "rule 3 of slave Trace : 1": 0x3F38C,
    },
}  # fmt: skip
ROWS = {TileKind.SHIM: 0, TileKind.MEMTILE: 1, TileKind.CORE: 2}


@pytest.mark.parametrize("kind", OFFSETS)
def test_registers_are_named_by_their_offsets(kind: TileKind):
    found = {register_at(address(3, ROWS[kind], offset)).name: offset for offset in OFFSETS[kind].values()}
    assert found == OFFSETS[kind]


BEYOND = {  # where the registers before have ended
    TileKind.SHIM: (0x0, 0x14100, 0x14008, 0x1D220, 0x1F008, 0x3F058, 0x3F15C, 0x3F370, 0x36060, 0x32000),
    TileKind.MEMTILE: (0x80000, 0xA0660, 0xA06F8, 0xAFFFC, 0xB0001, 0xB0102, 0xB0044, 0xB0148, 0xB0320, 0xC0400),
    TileKind.CORE: (0x10000, 0x1D018, 0x1D200, 0x1DE20, 0x1F100, 0x24000, 0x32004, 0x36064, 0x3F05C, 0x3F164, 0x3F390),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "offset"), [(kind, offset) for kind in BEYOND for offset in BEYOND[kind]])
def test_what_no_register_list_names_is_other(kind: TileKind, offset: int):
    assert register_at(address(0, ROWS[kind], offset)).what is What.OTHER


def test_a_place_of_the_array_says_what_it_is():
    found = {
        (0, 0x1F000): What.MUX, (0, 0x1F004): What.DEMUX, (0, 0x14010): What.LOCK, (1, 0xA0634): What.QUEUE,
        (1, 0xA06E4): What.PAD_VALUE, (2, 0x1F000): What.LOCK, (2, 0x20010): What.PROGRAM, (2, 0x36060): What.CASCADE,
        (2, 0x32000): What.CORE, (2, 0x3F004): What.MASTER, (1, 0xB0104): What.SLAVE, (0, 0x3F204): What.RULE,
        (2, 0x1DE08): What.CONTROL, (1, 0x10): What.MEMORY, (2, 0x1D024): What.BD,
    }  # fmt: skip
    assert {place: register_at(address(1, *place)).what for place in found} == found


LAYOUT_AT = {  # row and offset: the layout of the word, or words, that begin there
    (0, 0x1D000): registers.SHIM_BD, (0, 0x1D004): None, (1, 0xA0020): registers.MEMTILE_BD, (1, 0xA003C): None,
    (2, 0x1D1E0): registers.CORE_BD, (2, 0x1D1F4): None, (0, 0x14000): None, (0, 0x1D204): registers.QUEUE,
    (1, 0xA0604): registers.MEMTILE_QUEUE, (2, 0x1DE04): registers.QUEUE, (0, 0x1D200): registers.SHIM_CONTROL,
    (1, 0xA0600): registers.CONTROL, (2, 0x1DE00): registers.CONTROL, (1, 0xA06E0): None,
    (2, 0x3F000): switch_registers.CIRCUIT_MASTER, (1, 0xB0100): switch_registers.SLAVE,
    (0, 0x3F200): switch_registers.RULE, (0, 0x1F000): switch_registers.SHIM_MUX,
    (0, 0x1F004): switch_registers.SHIM_DEMUX, (2, 0x36060): switch_registers.CASCADE, (2, 0x32000): None,
    (2, 0x20000): None, (1, 0x0): None, (0, 0x0): None,
}  # fmt: skip


@pytest.mark.parametrize("place", LAYOUT_AT, ids=lambda place: f"{place[0]} {place[1]:#x}")
def test_a_place_has_the_layout_of_its_kind_of_tile(place: tuple[int, int]):
    assert register_at(address(1, *place)).layout is LAYOUT_AT[place]


@pytest.mark.parametrize(
    ("address_", "index", "direction"),
    [
        (address(2, 1, 0xA0634), (0,), "MM2S"), (address(2, 2, 0x1DE08), (1,), "S2MM"),
        (address(2, 0, 0x1D068), (3, 2), ""), (address(2, 1, 0xC0050), (5,), ""),
        (address(2, 2, 0x3F21C), (1, 3), ""), (address(2, 1, 0xA06E8), (2,), "MM2S"),
    ],
)  # fmt: skip
def test_a_register_has_the_numbers_of_its_place(address_: int, index: tuple[int, ...], direction: str):
    found = register_at(address_)
    assert (found.column, found.index, found.direction) == (2, index, direction)


@pytest.mark.parametrize(("rows", "kinds"), [(1, "smccc"), (2, "smmcc")])
def test_rows_of_memtiles_are_counted_from_row_1(rows: int, kinds: str):
    assert "".join(register_at(address(0, row, 0), rows).kind[0] for row in range(5)) == kinds


@pytest.mark.parametrize(("place", "full"), [((5, 3, 0xABCDE), 0x0A3ABCDE), ((127, 31, 0xFFFFF), 0xFFFFFFFF)])
def test_addresses_have_column_row_and_offset(place: tuple[int, int, int], full: int):
    assert address(*place) == full
    assert split_address(full) == place


STATUS = {
    TileKind.SHIM: (0x1D220, 0x1D224, 0x1D228, 0x1D22C), TileKind.MEMTILE: (0xA0660, 0xA0664, 0xA0680, 0xA0684),
    TileKind.CORE: (0x1DF00, 0x1DF04, 0x1DF10, 0x1DF14),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATUS)
def test_offsets_of_channels_locks_and_bds_are_those_that_listings_name(kind: TileKind):
    registers, limits = TILE_REGISTERS[kind], AIE2.limits(kind)
    places = [(direction, channel) for direction in ("S2MM", "MM2S") for channel in (0, 1)]
    assert tuple(registers.status_offset(*place) for place in places) == STATUS[kind]
    last = limits.channels - 1
    found = {
        f"lock {limits.locks - 1}": registers.lock_offset(limits.locks - 1), "BD 0": registers.bd_offset(0),
        f"S2MM {last} queue": registers.queue_offset("S2MM", last),
        "MM2S 0 control": registers.control_offset("MM2S", 0),
        f"MM2S {last} queue": registers.queue_offset("MM2S", last),
    }  # fmt: skip
    assert found == {name: OFFSETS[kind][name] for name in found}


def test_gaps_of_tiles_are_those_of_the_register_lists():
    found = {kind: (*at.gaps, at.program_memory) for kind, at in TILE_REGISTERS.items()}
    assert found == {
        TileKind.SHIM: (range(0x14000), range(0)),
        TileKind.MEMTILE: (range(0x80000, 0x91000), range(0)),
        TileKind.CORE: (range(0x10000, 0x11000), range(0x24000, 0x30000), range(0x20000, 0x24000)),
    }  # fmt: skip
