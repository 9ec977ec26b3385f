"""Registers of one tile by themselves: what a reset forgets, which polls tell tasks, what values read as."""

from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.emulator.errors import DesignError, DmaError, RegisterAccessError
from bdforge.array.emulator.register_space import RegisterMap
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.devices.registers import TILE_REGISTERS

KINDS = [TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE]


class Channel:
    """A channel that counts its resets."""

    name, direction, index = "S2MM 0", "S2MM", 0

    def __init__(self) -> None:
        self.resets, self.finishes = 0, None

    def reset(self) -> None:
        self.resets += 1

    def finish_on_tlast(self, mode: int, _: str) -> None:
        self.finishes = mode


def registers(kind: TileKind, channel: Channel) -> Any:
    tile = SimpleNamespace(array=SimpleNamespace(strictness=Strictness()))
    return SimpleNamespace(layout=TILE_REGISTERS[kind], tile=tile, _stored={}, _overflowed={channel})


@pytest.mark.parametrize("kind", KINDS)
def test_a_reset_forgets_that_the_queue_was_full(kind: TileKind):
    fields = TILE_REGISTERS[kind].control.fields
    for name in fields:
        channel = Channel()
        found = registers(kind, channel)
        value = 1 << fields[name].low
        if name in ("compression", "out_of_order"):
            with pytest.raises(DesignError, match=f"S2MM 0: {name} = 1 in its control register is not emulated"):
                RegisterMap._control(found, channel, 0, value, "")  # type: ignore[arg-type]
            continue
        RegisterMap._control(found, channel, 0, value, "")  # type: ignore[arg-type]
        assert channel.resets == (name == "reset"), f"{kind} {name}"
        assert found._overflowed == (set() if name == "reset" else {channel}), f"{kind} {name}"
        assert found._stored == {0: value}, f"{kind} {name}"
        assert channel.finishes == (name == "finish_on_tlast"), f"{kind} {name}"
        assert bool(found.tile.array.strictness.warnings) == name.startswith("pause"), f"{kind} {name}"


@pytest.mark.parametrize("kind", KINDS)
def test_polls_of_queue_and_state_tell_numbers_of_tasks_and_others_nothing(kind: TileKind):
    layout = TILE_REGISTERS[kind].status
    found: Any = SimpleNamespace(layout=TILE_REGISTERS[kind])
    size, running, state = (layout.fields[name] for name in ("queue_size", "running", "state"))
    idle, some = {0}, set(range(1, TASK_QUEUE_ENTRIES + 1))
    assert TASK_QUEUE_ENTRIES == 4
    polls = [
        *((size.mask, count << size.low, {count}) for count in range(5)), (size.mask, 5 << size.low, set()),
        (running.mask, 0, idle), (running.mask, running.mask, some), (state.mask, 0, idle),
        (state.mask, 2 << state.low, some), (state.mask, 1 << state.low, set()), (0, 0, idle | some),
        (running.mask | size.mask, running.mask | 3 << size.low, {3}), (running.mask | size.mask, 3 << size.low, set()),
    ]  # fmt: skip
    for mask, value, counts in polls:
        assert RegisterMap.task_counts(found, mask, value) == counts, f"{kind}: {value:#x} under {mask:#x}"
    for name in set(layout.fields) - {"queue_size", "running", "state"}:
        mask = layout.fields[name].mask
        for more in (0, running.mask):
            assert RegisterMap.task_counts(found, mask | more, 0) == set(), f"{kind} {name}"


@pytest.mark.parametrize(("value", "reads"), [(0, 0), (63, 63), (-1, 63), (-64, 0)])
def test_a_lock_reads_as_the_six_bits_that_its_register_has(value: int, reads: int):
    layout = TILE_REGISTERS[TileKind.CORE]
    limits = SimpleNamespace(memory_bytes=0x10000, bds=16, locks=16, lock_value_max=63)
    locks = [SimpleNamespace(value=value if number == 15 else 7) for number in range(16)]
    tile = SimpleNamespace(limits=limits, locks=locks, registers=layout, column=0, row=2, channels={})
    found = RegisterMap(tile)  # type: ignore[arg-type]
    assert found.read(layout.lock_offset(15)) == reads
    assert found.read(layout.lock_offset(15) + 4) == 0
    assert found.read(layout.lock_offset(0)) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_a_bd_reads_back_with_its_own_counter_and_keeps_its_place_in_the_text(kind: TileKind):
    layout = TILE_REGISTERS[kind].bd
    field, count = layout.fields["iteration_current"], layout.words
    scheduler = SimpleNamespace(notify=lambda *_: None)
    tile: Any = SimpleNamespace(
        registers=TILE_REGISTERS[kind], array=SimpleNamespace(scheduler=scheduler, strictness=Strictness()), column=0,
        row=2, name="tile", _busy=[0, 0, 1], _bds=[(0,) * count] * 3, _iterations=[0] * 3, _sources=[""] * 3,
    )  # fmt: skip
    values = [0xFFFFFFFF & ~field.mask if word == field.word else 0xF0 + word for word in range(count)]
    for word, value in enumerate(values):
        started = value | 5 << field.low if word == field.word else value
        EmulatedTile.write_bd(tile, 1, word, started, " (here)" if word == 0 else "")
        assert EmulatedTile.read_bd(tile, 1, word) == started, f"{kind}: word {word}"
    assert (tile._bds[1], tile._sources[1]) == (tuple(values), " (here)")
    assert [EmulatedTile.advance_iteration(tile, 1, 8) for _ in range(5)] == [5, 6, 7, 0, 1]
    assert EmulatedTile.read_bd(tile, 1, field.word) == values[field.word] | 2 << field.low
    assert (tile._bds[0], tile._iterations) == ((0,) * count, [0, 2, 0])
    with pytest.raises(DmaError, match=r"tile: BD 2 is rewritten while a task that uses it is .* \(x\);"):
        EmulatedTile.write_bd(tile, 2, 0, 0, " (x)")


@pytest.mark.parametrize("kind", KINDS)
def test_memory_ends_with_its_last_word(kind: TileKind):
    """What lies behind is no memory: a gap, which nobody can write, or a register (of a shim from 0 on)."""
    device = mlir_device_named("npu2")
    limits = device.limits(0, {TileKind.SHIM: 0, TileKind.MEMTILE: 1, TileKind.CORE: 2}[kind])
    stored: list[tuple[int, int]] = []
    tile: Any = SimpleNamespace(
        limits=limits, registers=TILE_REGISTERS[kind], column=0, row=0, name="tile", channels={}, locks=[],
        memory=range(limits.memory_bytes // 4), store=lambda word, value: stored.append((word, value)),
        array=SimpleNamespace(device=device),
    )  # fmt: skip
    found, size = RegisterMap(tile), limits.memory_bytes
    assert size == {TileKind.SHIM: 0, TileKind.MEMTILE: 1 << 19, TileKind.CORE: 1 << 16}[kind]
    for offset in range(max(size - 8, 0), size, 4):
        found.write(offset, offset + 1, "")
        assert (found.read(offset), found.name(offset)) == (offset // 4, f"memory word at {offset:#x}")
    if size:
        with pytest.raises(RegisterAccessError, match=f"nothing is at offset {size:#x}; .* has {size} bytes"):
            found.write(size, 7, "")
    assert stored == [(offset // 4, offset + 1) for offset in range(max(size - 8, 0), size, 4)]
    assert (found.read(size), found.name(size)) == (0, f"register {size:#x}")


@pytest.mark.parametrize("value", [0, 1, 2])
def test_code_and_control_of_a_core_are_reached_by_their_registers(value: int):
    calls: list[tuple] = []
    programs = SimpleNamespace(
        control_core=lambda *call: calls.append(("control", *call)),
        store_code=lambda *call: calls.append(("code", *call)),
        code_word=lambda _, offset: offset + 1,
    )  # fmt: skip
    layout = TILE_REGISTERS[TileKind.CORE]
    device = mlir_device_named("npu2")
    array = SimpleNamespace(device=device, programs=programs, strictness=Strictness())
    tile: Any = SimpleNamespace(
        limits=device.limits(3, 4), registers=layout, column=3, row=4, name="tile", channels={}, locks=[], array=array
    )
    found, code = RegisterMap(tile), layout.program_memory
    assert layout.core_control is not None
    found.write(layout.core_control, value, " (here)")
    for offset in (code.start, code.stop - 4):
        found.write(offset, value, "")
        assert found.read(offset) == offset - code.start + 1
    last = code.stop - code.start - 4
    wanted = [("control", (3, 4), value, " (here)"), ("code", (3, 4), 0, value, ""), ("code", (3, 4), last, value, "")]
    assert calls == wanted
    assert found.read(layout.core_control) == value
    with pytest.raises(RegisterAccessError, match="is not a multiple of 4"):
        found.write(code.start + 2, 0, "")
