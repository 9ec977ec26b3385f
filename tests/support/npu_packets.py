"""What the software NPU makes of command packets, and of memory of many kinds: the second part of `support.npu_limits`.

Answers are errno, or a list of what stands in packets and structures afterwards.
"""

import ctypes
import mmap
import os
import struct
from typing import Any

from bdforge.devices import mlir_device_named
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import decode, encode
from bdforge.devices.txn_format.operations import LoadPdi, MaskPoll, Noop
from support.raw_npu import (
    COMMAND,
    CONFIGURE,
    CREATE_BO,
    CREATE_CONTEXT,
    DESTROY_CONTEXT,
    DEVICE,
    EXECUTE,
    GEM_CLOSE,
    GET_ARRAY,
    GET_INFO,
    HEAP,
    SHARE,
    WAIT,
    RawBuffer,
    RawNpu,
    execution,
    wanted,
)

CHAIN, CODE, PREEMPTIBLE, ELF = 19, 20, 21, 22
LOCK = address(0, 2, 0x1F000)
LARGEST_HEAP = (1 << 32) - (1 << 26)  # between the heap's address and that of all else


def chain_of(npu: RawNpu, packets: list[RawBuffer], count: int) -> RawBuffer:
    """A chain that says it has so many runs; its packet ends with the handles of these."""
    words = struct.pack(f"<6I{len(packets)}Q", count, 0, 0, 0, 0, 0, *(one.handle for one in packets))
    return npu.command(CHAIN, (), words)


def ended(npu: RawNpu, context: int, packet: RawBuffer) -> list[int]:
    """errno of its submission, and the state in which it ended."""
    answer, done = npu.call(EXECUTE, execution(context, packet))
    if not answer:
        npu.wait(context, struct.unpack_from("<Q", done, 48)[0])
    return [answer, state(packet)]


def state(packet: RawBuffer) -> int:
    return packet.memory[0] & 15


def of_packets(npu: RawNpu, pdi: bytes, words: RawBuffer, operands: list[RawBuffer]) -> dict[str, Any]:
    """Runs in a context of its own, whose units 0 and 1 have other configurations."""
    context, count = npu.context(pdi, pdi + bytes(4)), len(words.memory) // 4
    answers: dict[str, Any] = {
        f"run with masks {masks}": ended(npu, context, npu.packet(words, count, operands, masks))
        for masks in ((0,), (2,), (3, 0), (1, 0, 0), (1, 0, 0, 0), (4,))
    }
    outside = RawBuffer(0, operands[0].address + len(operands[0].memory), operands[0].memory)
    answers["operand at the end of its buffer"] = ended(npu, context, npu.packet(words, count, [outside]))
    good, bad, behind = (npu.packet(words, count - less, operands) for less in (0, 1, 0))
    chain = chain_of(npu, [good, bad, behind], 3)
    answers["second of three runs fails"] = [
        *ended(npu, context, chain), *map(state, (good, bad, behind)), struct.unpack_from("<I", chain.memory, 12)[0],
    ]  # fmt: skip
    answers["chain in a chain"] = ended(npu, context, chain_of(npu, [chain], 1))[0]
    answers["submission of type 1"], _ = npu.call(EXECUTE, execution(context, good, 1))
    answers["submission of 2 commands"], _ = npu.call(EXECUTE, execution(context, good, 0, 2))
    stream, first = decode(words.memory[:]), bytes(len(operands[2].memory))
    stuck = encode([*stream.operations, MaskPoll(LOCK, 33, 0x3F)], stream.header).tobytes()
    longer, c = npu.holding(stuck), own_buffer(npu, len(first))
    answers["run that gets stuck"] = ended(npu, context, npu.packet(longer, len(stuck) // 4, [*operands[:2], c]))
    answers["what it wrote by then"] = c.memory[:] == operands[2].memory[:] != first
    answers |= of_codes(npu, context, pdi)
    long = chain_of(npu, [*[good] * 600, RawBuffer(1 << 20, 0, good.memory)], 601)  # more than 1023 words
    answers["chain whose 601st run is none"] = ended(npu, context, long)[0]
    answers["context as it is told"] = told(npu, context)
    npu.require(DESTROY_CONTEXT, struct.pack("<II", context, 0))
    return answers


def of_codes(npu: RawNpu, context: int, pdi: bytes) -> dict[str, Any]:
    """Control code that loads a configuration from within a buffer, up to its end and beyond, or another in a chain."""
    held = npu.holding(pdi, at=64)
    answers, code = {}, npu.buffer(4096)
    for name, opcode, more in (
        ("to the end of its buffer", CODE, 0), ("a byte more", CODE, 1), ("preemptible", PREEMPTIBLE, 0),
        ("of an ELF", ELF, 0), ("of opcode 23", 23, 0),
    ):  # fmt: skip
        words = encode(
            [LoadPdi(1, len(pdi) + more, held.address + 64), Noop()], mlir_device_named("npu2_2col")
        ).tobytes()
        code.memory[: len(words)] = words
        saved = bytes(16) if opcode in (PREEMPTIBLE, ELF) else b""
        packet = npu.command(opcode, (1,), struct.pack("<Q", code.address) + saved + struct.pack("<I", len(words)))
        answers[f"control code with a configuration {name}"] = ended(npu, context, packet)
    whole = npu.command(CODE, (1,), struct.pack("<QI", code.address, len(words)))
    for name, size in (("alone", len(pdi)), ("cut short", len(pdi) - 4)):
        words = encode([LoadPdi(1, size, held.address + 64)], mlir_device_named("npu2_2col")).tobytes()
        lone = npu.holding(words, 4096)
        packet = npu.command(CODE, (1,), struct.pack("<QI", lone.address, len(words)))
        answers[f"configuration {name}, then the whole"] = ended(npu, context, chain_of(npu, [packet, whole], 2))[0]
        answers[f"configuration {name}"] = ended(npu, context, packet)
    return answers


def told(npu: RawNpu, context: int) -> list[list[int]]:
    """The context's entry by get_array and by get_info, its handle and the process as 1; then how many entries and
    bytes are told where there is room for one, and for two halves."""
    room, found = ctypes.create_string_buffer(1 << 12), []
    own = {context: 1, os.getpid(): 1}
    asked = struct.pack("<IIIIQ", 0, 64, 1 << 6, 0, ctypes.addressof(room))
    (count,) = struct.unpack_from("<I", npu.require(GET_ARRAY, asked), 8)
    for number, content in ((GET_ARRAY, asked), (GET_INFO, struct.pack("<IIQ", 5, 1 << 12, ctypes.addressof(room)))):
        npu.require(number, content)
        entries = [struct.unpack_from("<4Iq5Q", room, 64 * i) for i in range(count)]
        (entry,) = (entry for entry in entries if entry[0] == context)
        found.append([own.get(value, value) if i in (0, 3, 4) else value for i, value in enumerate(entry)])
    for size, most in ((64, 1), (32, 2)):
        room[:] = b"\xff" * len(room)
        answer = npu.require(GET_ARRAY, struct.pack("<IIIIQ", 0, size, most, 0, ctypes.addressof(room)))
        found.append([struct.unpack_from("<I", answer, 8)[0], room.raw.find(b"\xff" * 32)])
    return found


def of_requests(npu: RawNpu, pdi: bytes, context: int) -> dict[str, int]:
    """Requests that no part of the device answers, in a context that has its units."""
    code, room = npu.holding(pdi), ctypes.create_string_buffer(1 << 12)
    table = ctypes.create_string_buffer(struct.pack("<QIIII", 2, code.handle, 0, code.handle, 0), 24)
    place, there = ctypes.addressof(table), ctypes.addressof(room)
    fresh = npu.require(CREATE_CONTEXT, bytes(36) + struct.pack("<5I", 8, 0, 0, 7, 7))
    other, sync = struct.unpack_from("<II", fresh, 48)
    cases = {
        "units that are 8 bytes too long for their size": (CONFIGURE, struct.pack("<IIQII", other, 0, place, 16, 0)),
        "units in the size that they have": (CONFIGURE, struct.pack("<IIQII", other, 0, place, 24, 0)),
        "units once more": (CONFIGURE, struct.pack("<IIQII", other, 0, place, 24, 0)),
        "configuration of kind 1": (CONFIGURE, struct.pack("<IIQII", other, 1, place, 24, 0)),
        "units of no context": (CONFIGURE, struct.pack("<IIQII", 1 << 20, 0, place, 24, 0)),
        "destroyed": (DESTROY_CONTEXT, struct.pack("<II", other, 0)),
        "destroyed again": (DESTROY_CONTEXT, struct.pack("<II", other, 0)),
        "facts of kind 99": (GET_INFO, struct.pack("<IIQ", 99, 4, there)),
        "array of kind 1": (GET_ARRAY, struct.pack("<IIIIQ", 1, 64, 1, 0, there)),
        "number 0x48": (0x48, bytes(16)), "number 0x4b": (0x4B, bytes(64)), "number 0x3f": (0x3F, bytes(64)),
        "structure nowhere": (GET_INFO, struct.pack("<IIQ", 8, 4, 16)),
    }  # fmt: skip
    answers = {name: npu.call(*case)[0] for name, case in cases.items()}
    answers["handle of a sync object"] = sync
    answers["bytes of the firmware's version"] = struct.unpack_from(
        "<I", npu.require(GET_INFO, struct.pack("<IIQ", 8, 0, 0)), 4
    )[0]
    return answers


def of_endless(npu: RawNpu, pdi: bytes, packet: RawBuffer) -> dict[str, Any]:
    """A run that does not end, before and after its context does; its kernels' image is the last that was opened."""
    context, room = npu.context(pdi), ctypes.create_string_buffer(1 << 12)
    number = npu.execute(context, packet)
    answers: dict[str, Any] = {"wait of 1 ms": npu.call(WAIT, struct.pack("<IIQ", context, 1, number))[0]}
    npu.require(GET_ARRAY, struct.pack("<IIIIQ", 0, 64, 64, 0, ctypes.addressof(room)))
    entries = [struct.unpack_from("<4Iq5Q", room, 64 * i) for i in range(64)]
    answers["submissions and completions of a run that goes on"] = next(e[5:7] for e in entries if e[0] == context)
    npu.require(DESTROY_CONTEXT, struct.pack("<II", context, 0))
    return answers | {"run of a context that is destroyed": state(packet)}


def table_of(memory: mmap.mmap, pieces: int = 1, place: int | None = None) -> ctypes.Array[ctypes.c_char]:
    """What CREATE_BO's address leads to: so many pieces of memory of the program's own, at its place or another."""
    start = place_of(memory) if place is None else place
    content = struct.pack("<iI", -1, pieces) + struct.pack("<QQ", start, len(memory)) * 2
    return ctypes.create_string_buffer(content, len(content))


def place_of(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def own_buffer(npu: RawNpu, size: int) -> RawBuffer:
    """A buffer object of the program's own memory."""
    memory = mmap.mmap(-1, size)
    table = table_of(memory)
    handle, _, _, there = npu.made(wanted(0, SHARE, ctypes.addressof(table)))
    return RawBuffer(handle, there, memory)


def of_memory() -> dict[str, Any]:
    """What BO_INFO says of each kind of buffer, and which pieces of memory make none; on a device of their own."""
    npu, memory, nowhere, answers = RawNpu(), mmap.mmap(-1, 4096), (1 << 64) - 1, {}
    for _ in range(2):  # a heap may follow another
        heap = npu.made(wanted(1 << 20, HEAP))[0]
        npu.require(GEM_CLOSE, struct.pack("<II", heap, 0))
    npu.require(CREATE_BO, wanted(1 << 20, HEAP))
    tables = {f"memory in {pieces} pieces": table_of(memory, pieces) for pieces in (0, 1, 2)}
    for name, table in (tables | {"memory at 0": table_of(memory, place=0)}).items():
        answers[name], _ = npu.call(CREATE_BO, wanted(0, SHARE, ctypes.addressof(table)))
    own = table_of(memory)
    for name, content in {
        "shared": wanted(4096, SHARE), "of the heap": wanted(4096, DEVICE), "command": wanted(4096, COMMAND),
        "the program's own": wanted(0, SHARE, ctypes.addressof(own)),
    }.items():  # fmt: skip
        _, offset, host, there = npu.made(content)
        answers[f"buffer {name}"] = [
            "no offset" if offset == nowhere else "offset of the address" if there == offset + (1 << 32) else offset,
            "its own" if host == place_of(memory) else "mapped" if host else "not mapped",
            "in the heap" if there < 1 << 32 else "behind the heap",
        ]  # fmt: skip
    return answers


def of_heaps() -> dict[str, int]:
    """Sizes of heaps and of buffers that take all of the machine's memory, each of a device of its own."""
    machine = os.sysconf("SC_PHYS_PAGES") * 4096
    cases = {
        "largest heap": (LARGEST_HEAP, HEAP), "heap and a page": (LARGEST_HEAP + 4096, HEAP),
        "all memory": (machine, SHARE), "all memory and a page": (machine + 4096, SHARE), "no heap": (4096, DEVICE),
    }  # fmt: skip
    answers = {}
    for name, (size, kind) in cases.items():
        npu = RawNpu()
        answers[name], _ = npu.call(CREATE_BO, wanted(size, kind))
        os.close(npu.file)
    return answers
