"""The events of a sequence as operations of an instruction stream, and the numbers from which a host makes the same.

BDs are those of mlir-aie's tasks (`bdforge.devices.txn_format.bd_encoding.task_transfer`): sizes and strides in 32-bit
words, a fourth dimension as iteration. The address words hold the offset, which the patch behind them replaces, as
mlir-aie writes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from bd_patterns import Pattern, problems
from bdforge.design.sequences.interpret import Event, Reconfigure, Start, StartedTask, Stored, Wait
from bdforge.design.sequences.sequence_program import Program
from bdforge.devices import Device, Generation, TileKind
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES, SHIM_CONTROLLER_ID, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import CONTROLLER_ID_MASK, RUNTIME_AXI_CACHE, TILE_REGISTERS, address
from bdforge.devices.txn_format.bd_encoding import burst_code, encode_bd, task_transfer
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import DIRECTIONS, BlockWrite, MaskWrite, Operation, Patch, Sync, Write

_SHIM = TILE_REGISTERS[TileKind.SHIM]
_ADDRESS_WORD = _SHIM.bd.fields["address_low"].word
_WORD_MASK = 0xFFFFFFFF
_TRANSFER_SIZES = 4  # of a runtime transfer; the outermost is the BD's iteration
_HEADER_WORDS = 2  # of a stream's header; the other two count operations and bytes
_BD_FIELDS = (
    "length", "d0_wrap", "d0_step", "d1_wrap", "d1_step", "d2_step", "iteration_wrap", "iteration_step",
    "next", "use_next",
)  # fmt: skip


def operations(
    events: Iterable[Event], bits: Sequence[int], generation: Generation, wide: bool,
    configurations: Sequence[Sequence[Operation]] = (),
) -> Iterator[Operation]:  # fmt: skip
    """The instruction stream's operations; `bits` are the elements' widths of each argument.

    With `wide` one operation awaits a token of each of several columns, else every column has one of its own.
    `configurations` are what changes of the array's take.
    """
    for event in events:
        if isinstance(event, Reconfigure):
            yield from () if event.configuration is None else configurations[event.configuration]
        elif isinstance(event, Start):
            for item in event.items:
                yield from [stored(item)] if isinstance(item, Stored) else _task(item, bits, generation)
        else:
            yield from (sync for wait in event.waits for sync in syncs(wait, wide))


def stored(item: Stored) -> Write | BlockWrite:
    """The operation that writes registers."""
    return Write(item.address, *item.values) if len(item.values) == 1 else BlockWrite(item.address, item.values)


def illegal(program: Program, events: Iterable[Event], device: Device) -> list[str]:
    """Every reason why a task, a wait or a BD does not fit an array; BDs that differ in whole words are judged once."""
    limits = device.generation.limits(TileKind.SHIM)
    judged: set[tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = set()
    faults: dict[str, None] = {}
    for event in events:
        if isinstance(event, Reconfigure):
            continue
        if not isinstance(event, Start):
            faults |= {fault: None for wait in event.waits for fault in _outside("wait", wait, wait.columns, device)}
            continue
        for task in (item for item in event.items if isinstance(item, StartedTask)):
            faults |= dict.fromkeys(_outside("task", task, 1, device))
            if task.runs > TASK_REPEAT_MAX:
                faults[f"runs of a task is {task.runs}; it must be from 1 to {TASK_REPEAT_MAX}"] = None
            for bd in task.bds:
                argument = program.arguments[bd.argument]
                bits = bd.bits or argument.bits
                offset = bd.pattern.offset * bits % GRANULE_BITS
                key = (bd.argument, bits, bd.pattern.sizes, bd.pattern.strides, offset)
                if key not in judged:
                    judged.add(key)
                    found = _standing(bd.pattern) or problems(bd.pattern, limits, bits, static=False)
                    faults |= {f"{argument.name}: {fault}": None for fault in found}
    return list(faults)


def _standing(pattern: Pattern) -> list[str]:
    """Why a BD cannot repeat all that it walks, which `problems` takes for the runs of its task."""
    if 1 < pattern.rank < _TRANSFER_SIZES and pattern.sizes[0] > 1 and pattern.strides[0] == 0:
        return ["stride 0 in dimension 0 repeats the whole BD, which its steps cannot; give it and its task runs"]
    return []


def _outside(what: str, found: StartedTask | Wait, columns: int, device: Device) -> Iterator[str]:
    """Where a task or a wait leaves the array."""
    last, channels = device.columns - 1, device.generation.limits(TileKind.SHIM).channels
    if found.column > last:
        yield f"a column is {found.column}; it must be from 0 to {last}"
    elif found.column + columns > device.columns:
        yield f"columns of a wait is {columns}; it must be from 1 to {device.columns - found.column}"
    if found.channel >= channels:
        yield f"a {what} is on channel {found.channel}; a shim has {channels}"


def syncs(wait: Wait, wide: bool) -> Iterator[Sync]:
    """What waits for tokens."""
    direction, width = DIRECTIONS.index(wait.direction), wait.columns if wide else 1
    for column in range(wait.column, wait.column + wait.columns, width):
        yield Sync(direction, 0, column, 1, width, wait.channel)


def _task(task: StartedTask, bits: Sequence[int], generation: Generation) -> Iterator[Operation]:
    """Write a chain's BDs, say where their memory is, and push the task."""
    for bd, following in zip(task.bds, (*task.bds[1:], None), strict=True):
        at = address(task.column, 0, _SHIM.bd_offset(bd.bd_id))
        element_bits = bd.bits or bits[bd.argument]
        offset_bytes = bd.pattern.offset * element_bits // 8
        next_id = None if following is None else following.bd_id
        words = _bd_words(generation, bd.pattern.sizes, bd.pattern.strides, element_bits, next_id)
        yield BlockWrite(at, _at_offset(words, offset_bytes))
        yield Patch(at + GRANULE_BYTES * _ADDRESS_WORD, bd.argument, offset_bytes)
    if task.token:
        control = _SHIM.control_offset(task.direction, task.channel)
        yield MaskWrite(address(task.column, 0, control), token_control(), CONTROLLER_ID_MASK)
    entry = {"token": int(task.token), "repeat": task.runs - 1, "bd": task.bds[0].bd_id}
    queue = _SHIM.queue_offset(task.direction, task.channel)
    yield Write(address(task.column, 0, queue), _SHIM.queue.encode(entry)[0])


def token_control() -> int:
    """Value of a channel's control register under CONTROLLER_ID_MASK, so that its tokens find their way."""
    return _SHIM.control.encode({"controller_id": SHIM_CONTROLLER_ID})[0]


def _at_offset(words: tuple[int, ...], offset_bytes: int) -> tuple[int, ...]:
    low, high = words[_ADDRESS_WORD : _ADDRESS_WORD + 2]
    address_words = (low | offset_bytes & _WORD_MASK, high | offset_bytes >> 32)
    return (*words[:_ADDRESS_WORD], *address_words, *words[_ADDRESS_WORD + 2 :])


@lru_cache(maxsize=4096)
def _bd_words(
    generation: Generation, sizes: tuple[int, ...], strides: tuple[int, ...], element_bits: int, next_bd: int | None
) -> tuple[int, ...]:
    """Register words of a BD; the same BD comes back for every column and, often, for every step."""
    missing = _TRANSFER_SIZES - len(sizes)
    limits = generation.limits(TileKind.SHIM)
    transfer = task_transfer(limits, (1,) * missing + sizes, (0,) * missing + strides, element_bits)
    return tuple(
        encode_bd(
            TileKind.SHIM,
            length_words=transfer.length_words,
            dims_words=transfer.dims_words,
            iteration=transfer.iteration,
            next_bd=next_bd,
            burst=burst_code(generation, 0),
            axi_cache=RUNTIME_AXI_CACHE,
        )
    )


def target_facts(device: Device) -> dict[str, Any]:
    """What a host must know of an array to turn events into words: limits and registers of shims.

    Addresses are full ones of column 0; `column_stride` is what the same register of the next column adds. Fields are
    [word, lowest bit]. Queues and controls are listed by direction and channel.
    """
    generation = device.generation
    limits = generation.limits(TileKind.SHIM)
    constant = encode_bd(TileKind.SHIM, length_words=0, burst=burst_code(generation, 0), axi_cache=RUNTIME_AXI_CACHE)

    def registers(offset) -> dict[str, list[int]]:
        return {way: [address(0, 0, offset(way, i)) for i in range(limits.channels)] for way in DIRECTIONS}

    return {
        "header": [int(word) for word in encode([], device)[:_HEADER_WORDS]],
        "columns": device.columns,
        "column_stride": address(1, 0, 0),
        "bds": limits.bds,
        "wraps": list(limits.wraps),
        "step_max": limits.step_max,
        "iteration_max": limits.iteration_wrap_max,
        "length_max": limits.length_max,
        "repeat_max": TASK_REPEAT_MAX,
        "queue_entries": TASK_QUEUE_ENTRIES,
        "bd_address": address(0, 0, _SHIM.bd_offset(0)),
        "bd_stride_bytes": _SHIM.bd_stride,
        "bd_constant": constant,
        "bd_fields": {name: [_SHIM.bd.fields[name].word, _SHIM.bd.fields[name].low] for name in _BD_FIELDS},
        "patched_word": _ADDRESS_WORD,
        "queues": registers(_SHIM.queue_offset),
        "queue_fields": {name: field.low for name, field in _SHIM.queue.fields.items()},
        "controls": registers(_SHIM.control_offset),
        "control_value": token_control(),
        "control_mask": CONTROLLER_ID_MASK,
    }
