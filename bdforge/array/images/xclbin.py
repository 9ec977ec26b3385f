"""xclbin (axlf): the PDIs of its AIE partition; sections that say what a host may call: memories, kernels, operands."""

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from html import escape
from typing import NamedTuple

from bdforge.common.binary import ImageError, piece, unpack
from bdforge.devices.limits import HOST_BUFFERS

MAGIC = b"xclbin2\0"
_SECTION_COUNT, _SECTIONS, _SECTION_SIZE = 448, 456, 40
_PDI_TABLE, _PDI_SIZE = 120, 96
_MOST = 1024


class SectionKind(IntEnum):
    """Sections that an NPU's xclbin has (XRT, `xclbin.h`)."""

    EMBEDDED_METADATA = 2
    MEM_TOPOLOGY = 6
    CONNECTIVITY = 7
    IP_LAYOUT = 8
    USER_METADATA = 16
    GROUP_TOPOLOGY = 26
    GROUP_CONNECTIVITY = 27
    AIE_PARTITION = 32


def sections(data: bytes) -> list[tuple[int, bytes]]:
    """(kind, content) of all sections; ImageError for a wrong magic or offset."""
    if data[:8] != MAGIC:
        raise ImageError(f"the file does not start with {MAGIC!r}")
    (count,) = unpack(data, "<I", _SECTION_COUNT, "number of sections")
    if count > _MOST:
        raise ImageError(f"the header counts {count} sections; at most {_MOST} are read")
    found = []
    for i in range(count):
        kind, offset, size = unpack(data, "<I20xQQ", _SECTIONS + _SECTION_SIZE * i, f"header of section {i}")
        found.append((kind, piece(data, offset, size, f"section {i} of kind {kind}")))
    return found


def pdis(data: bytes) -> list[bytes]:
    """The PDIs of every AIE partition, in order; ImageError if there is none."""
    partitions = [content for kind, content in sections(data) if kind == SectionKind.AIE_PARTITION]
    found = [pdi for partition in partitions for pdi in _pdis(partition)]
    if not found:
        raise ImageError("the xclbin has no AIE partition with a PDI")
    return found


def _pdis(partition: bytes) -> list[bytes]:
    count, table = unpack(partition, "<II", _PDI_TABLE, "PDI table")
    if count > _MOST:
        raise ImageError(f"the AIE partition counts {count} PDIs; at most {_MOST} are read")
    found = []
    for i in range(count):
        size, offset = unpack(partition, "<16xII", table + _PDI_SIZE * i, f"record of PDI {i}")
        found.append(piece(partition, offset, size, f"PDI {i}"))
    return found


HostKernels = Mapping[tuple[int, int], tuple[str, ...]]
"""Functions that run on the host in the place of cores (column, row) without machine code."""


def host_kernels_of(data: bytes) -> HostKernels:
    """What the mark of an xclbin says; nothing where it has none. ImageError as `sections`."""
    from bdforge.array.images.xclbin_mark import mark_of  # needs pydantic, which designs without images do not

    marks = (mark_of(content) for kind, content in sections(data) if kind == SectionKind.USER_METADATA)
    return next((mark for mark in marks if mark is not None), {})


KERNEL_ID = 0x901  # aiecc's
NAME, INSTANCE = "MLIR_AIE", "MLIRAIE"
_PS_KERNEL, _DPU_SUBTYPE = 7, 1
_DRAM, _USED = 2, 1


class MemoryBank(NamedTuple):
    """A memory that buffers are placed in: its tag, KiB and base address, as aiecc gives them."""

    tag: str
    kib: int
    base: int


MEMORIES = (MemoryBank("HOST", 0x10000, 0x4000000), MemoryBank("SRAM", 0xC000, 0x4000000))


class KernelArgument(NamedTuple):
    """A kernel argument; `memory` indexes MEMORIES, None for a scalar."""

    name: str
    type: str
    size: int
    offset: int
    memory: int | None = None


Arguments = Sequence[KernelArgument]


def kernel_arguments(buffers: int = HOST_BUFFERS) -> tuple[KernelArgument, ...]:
    """Of the kernel that aiecc declares: opcode, instructions with their number of words, and so many buffers."""
    fixed = (
        KernelArgument("opcode", "uint64_t", 8, 0x00),
        KernelArgument("instr", "char *", 8, 0x08, 1),
        KernelArgument("ninstr", "uint32_t", 4, 0x10),
    )
    return fixed + tuple(KernelArgument(f"bo{i}", "void*", 8, 0x14 + 8 * i, 0) for i in range(buffers))


def mem_topology() -> bytes:
    """The memories."""
    items = (
        struct.pack("<BB6xQQ16s", _DRAM, _USED, memory.kib, memory.base, memory.tag.encode()) for memory in MEMORIES
    )
    return struct.pack("<i4x", len(MEMORIES)) + b"".join(items)


def ip_layout() -> bytes:
    """The kernel with its instance and id."""
    return struct.pack("<i4xIHHq64s", 1, _PS_KERNEL, _DPU_SUBTYPE, KERNEL_ID, -1, f"{NAME}:{INSTANCE}".encode())


def links(arguments: Arguments, times: int = 1) -> list[tuple[int, int, int]]:
    """(argument, kernel, memory) of each argument in memory, all so many times: as groups they stand twice."""
    found = [(index, 0, argument.memory) for index, argument in enumerate(arguments) if argument.memory is not None]
    return found * times


def connectivity(arguments: Arguments, times: int = 1) -> bytes:
    """The `links`."""
    items = links(arguments, times)
    return struct.pack("<i", len(items)) + b"".join(struct.pack("<3i", *item) for item in items)


def metadata(arguments: Arguments) -> bytes:
    """The kernel in XML."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    outer = ["project", "platform", "device", "core"]
    lines += [f"{'  ' * depth}<{tag}>" for depth, tag in enumerate(outer)]
    lines.append(f'        <kernel name="{NAME}" language="c" type="dpu">')
    lines.append(f'          <extended-data subtype="1" functional="0" dpu_kernel_id="{KERNEL_ID:#x}"/>')
    lines += [f"          {_argument(index, argument)}" for index, argument in enumerate(arguments)]
    lines.append(f'          <instance name="{INSTANCE}"/>')
    lines.append("        </kernel>")
    lines += [f"{'  ' * depth}</{tag}>" for depth, tag in reversed(list(enumerate(outer)))]
    return ("\n".join(lines) + "\n").encode()


def _argument(index: int, argument: KernelArgument) -> str:
    return (
        f'<arg name="{escape(argument.name)}" addressQualifier="{int(argument.memory is not None)}" id="{index}" '
        f'size="{argument.size:#x}" offset="0x{argument.offset:02x}" hostOffset="0x0" hostSize="{argument.size:#x}" '
        f'type="{escape(argument.type)}"/>'
    )
