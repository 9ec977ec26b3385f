"""xclbins (axlf) as xclbinutil writes them for an NPU: partition, kernels, memories.

Source: XRT 2.25 (`xrt/detail/xclbin.h`, xclbinutil), mlir-aie 5ff2ab97 (what aiecc gives it); rebuilt byte for byte
from a file of xclbinutil but for the uuid, which here follows from the content, and the time, which here is given.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

from bdforge.array.images.xclbin import (
    KERNEL_ID,
    MAGIC,
    Arguments,
    HostKernels,
    SectionKind,
    connectivity,
    ip_layout,
    kernel_arguments,
    mem_topology,
    metadata,
)
from bdforge.array.images.xclbin_mirror import mirror
from bdforge.devices.limits import HOST_BUFFERS

_HEADER_BYTES, _SECTION_BYTES, _ALIGN_BYTES = 456, 40, 8
_VERSION = (0, 2, 25)  # patch, major, minor
_UUID_AT = 416


class XclbinSection(NamedTuple):
    """A section: its kind, its name (that of xclbinutil's input file; nobody reads it), its bytes."""

    kind: SectionKind
    name: str
    content: bytes


def xclbin(
    pdi: bytes,
    columns: int,
    seconds: int = 0,
    host_kernels: HostKernels | None = None,
    buffers: int = HOST_BUFFERS,
    pdi_uuid: bytes | None = None,
    uuid: bytes | None = None,
    marks: Sequence[XclbinSection] = (),
) -> bytes:
    """An xclbin with one PDI for a partition of so many columns, and aiecc's kernel of so many buffers.

    `seconds` since 1970 are its time stamp. Unless given, `pdi_uuid` is a hash of the PDI and `uuid` one of everything
    else. `host_kernels` mark it as one for the emulated array only; `marks` are more sections behind all others.
    """
    arguments = kernel_arguments(buffers)
    mark = [_mark(host_kernels)] if host_kernels else []
    sections = [
        XclbinSection(SectionKind.MEM_TOPOLOGY, "mem", mem_topology()),
        XclbinSection(SectionKind.AIE_PARTITION, "part", aie_partition(pdi, columns, pdi_uuid or _hash(pdi))),
        XclbinSection(SectionKind.EMBEDDED_METADATA, "", metadata(arguments)),
        XclbinSection(SectionKind.IP_LAYOUT, "", ip_layout()),
        XclbinSection(SectionKind.CONNECTIVITY, "", connectivity(arguments)),
        XclbinSection(SectionKind.GROUP_CONNECTIVITY, "", connectivity(arguments, times=2)),
        XclbinSection(SectionKind.GROUP_TOPOLOGY, "", mem_topology()),
        *mark,
        *marks,
    ]
    return _file(sections, arguments, seconds, uuid or _hash(_file(sections, arguments, seconds, bytes(16))))


def _mark(host_kernels: HostKernels) -> XclbinSection:
    from bdforge.array.images.xclbin_mark import marked  # needs pydantic, which designs without images do not

    return XclbinSection(SectionKind.USER_METADATA, "host_kernels", marked(host_kernels))


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:16]


def _file(sections: Sequence[XclbinSection], arguments: Arguments, seconds: int, uuid: bytes) -> bytes:
    table, body = b"", b""
    start = _HEADER_BYTES + _SECTION_BYTES * len(sections)
    places = []
    for section in sections:
        body += bytes(-(start + len(body)) % _ALIGN_BYTES)
        places.append(start + len(body))
        table += struct.pack("<I20sQQ", section.kind, section.name.encode(), places[-1], len(section.content))
        body += section.content
    body += bytes(-(start + len(body)) % _ALIGN_BYTES)
    headers = [(*s[:2], at, len(s.content)) for s, at in zip(sections, places, strict=True)]
    copy = mirror(headers, arguments, seconds, uuid)
    size = start + len(body) + len(copy)
    return _header(len(sections), size, seconds, uuid) + table + body + copy


def _header(count: int, size: int, seconds: int, uuid: bytes) -> bytes:
    data = MAGIC + struct.pack("<i", -1) + b"\xff" * 284
    data += struct.pack("<QQQQ", seconds, size, seconds, 0)
    data += struct.pack("<HBB", *_VERSION)
    data += bytes(_UUID_AT - len(data)) + uuid + bytes(16)
    return data + struct.pack("<II", count, 0)


class _Heap:
    """What follows the header of a partition: items on multiples of 8."""

    def __init__(self, start: int) -> None:
        self.start, self.data = start, b""

    def add(self, item: bytes) -> int:
        """The offset of an item, which is appended."""
        offset = self.start + len(self.data)
        self.data += item + bytes(-len(item) % _ALIGN_BYTES)
        return offset


_PARTITION_BYTES = 184
_INFERENCE, _PRE_POST = 23423, 12345  # fingerprints that aiecc gives; nobody reads them
_PRE_GROUP, _PDI_ID, _PRIMARY = 0xC1, 1, 1
_OPERATIONS_PER_CYCLE = 2048  # what aiecc writes, on any device


def aie_partition(pdi: bytes, columns: int, uuid: bytes) -> bytes:
    """The section with the configuration of the columns that a context gets."""
    heap = _Heap(_PARTITION_BYTES)
    name, commit = heap.add(b"\0"), heap.add(b"\0")
    first = heap.add(struct.pack("<H", 0))
    image = heap.add(pdi)
    label, ids = heap.add(b"DPU\0"), heap.add(struct.pack("<Q", KERNEL_ID))
    before = heap.add(struct.pack("<I", _PRE_GROUP))
    group = heap.add(struct.pack("<IB3xQ4I64x", label, _PRIMARY, _PDI_ID, 1, ids, 1, before))
    record = heap.add(uuid + struct.pack("<4I64x", len(pdi), image, 1, group))
    header = struct.pack("<B3xII4xQQH6xII", 0, name, _OPERATIONS_PER_CYCLE, _INFERENCE, _PRE_POST, columns, 1, first)
    header += bytes(120 - len(header)) + struct.pack("<III", 1, record, commit)
    return header + bytes(_PARTITION_BYTES - len(header)) + heap.data
