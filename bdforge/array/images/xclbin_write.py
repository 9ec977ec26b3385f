"""xclbins (axlf) as xclbinutil writes them for an NPU: partition, kernels, memories.

Source: XRT 2.25 (`xrt/detail/xclbin.h`, xclbinutil), mlir-aie 5ff2ab97 (what aiecc gives it); rebuilt byte for byte
from a file of xclbinutil but for the uuid, which here follows from the content, and the time, which here is given.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bdforge.array.images.xclbin import (
    MAGIC,
    HostKernels,
    SectionKind,
    XclbinKernel,
    connectivity,
    ip_layout,
    marked,
    mem_topology,
    metadata,
    npu_kernel,
)
from bdforge.array.images.xclbin_mirror import mirror

_HEADER_BYTES, _SECTION_BYTES, _ALIGN_BYTES = 456, 40, 8
_VERSION = (0, 2, 25)  # patch, major, minor
_UUID_AT = 416


class XclbinSection(NamedTuple):
    """A section: its kind, its name (that of xclbinutil's input file; nobody reads it), its bytes."""

    kind: SectionKind
    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Partition:
    """Columns that a context gets, and its configuration."""

    columns: int
    pdi: bytes
    pdi_uuid: bytes
    operations_per_cycle: int = 2048  # what aiecc writes, on any device


def xclbin(
    pdi: bytes,
    columns: int,
    kernel: XclbinKernel | None = None,
    seconds: int = 0,
    host_kernels: HostKernels | None = None,
) -> bytes:
    """An xclbin with one PDI for a partition of so many columns, and one kernel; aiecc's where none is given.

    `seconds` since 1970 are its time stamp. The uuid is a hash of everything else. `host_kernels` mark it as one for
    the emulated array only.
    """
    kernel = kernel or npu_kernel()
    uuid = hashlib.sha256(pdi).digest()[:16]
    marks = [XclbinSection(SectionKind.USER_METADATA, "host_kernels", marked(host_kernels))] if host_kernels else []
    return assembled(Partition(columns, pdi, uuid), kernel, seconds, marks=marks)


def assembled(
    partition: Partition,
    kernel: XclbinKernel,
    seconds: int,
    uuid: bytes | None = None,
    marks: Sequence[XclbinSection] = (),
) -> bytes:
    """The file of a partition and a kernel, and more sections behind theirs; `uuid` instead of the hash."""
    links = connectivity(kernel)
    sections = [
        XclbinSection(SectionKind.MEM_TOPOLOGY, "mem", mem_topology()),
        XclbinSection(SectionKind.AIE_PARTITION, "part", aie_partition(partition, kernel)),
        XclbinSection(SectionKind.EMBEDDED_METADATA, "", metadata(kernel)),
        XclbinSection(SectionKind.IP_LAYOUT, "", ip_layout(kernel)),
        XclbinSection(SectionKind.CONNECTIVITY, "", links),
        XclbinSection(SectionKind.GROUP_CONNECTIVITY, "", connectivity(kernel, times=2)),
        XclbinSection(SectionKind.GROUP_TOPOLOGY, "", mem_topology()),
        *marks,
    ]
    if uuid is None:
        uuid = hashlib.sha256(_file(sections, kernel, seconds, bytes(16))).digest()[:16]
    return _file(sections, kernel, seconds, uuid)


def _file(sections: Sequence[XclbinSection], kernel: XclbinKernel, seconds: int, uuid: bytes) -> bytes:
    table, body = b"", b""
    start = _HEADER_BYTES + _SECTION_BYTES * len(sections)
    places = []
    for section in sections:
        body += bytes(-(start + len(body)) % _ALIGN_BYTES)
        places.append(start + len(body))
        table += struct.pack("<I20sQQ", section.kind, section.name.encode(), places[-1], len(section.content))
        body += section.content
    body += bytes(-(start + len(body)) % _ALIGN_BYTES)
    copy = mirror([(*s[:2], at, len(s.content)) for s, at in zip(sections, places, strict=True)], kernel, seconds, uuid)
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


def aie_partition(partition: Partition, kernel: XclbinKernel) -> bytes:
    """The section with the configuration of an array's columns."""
    heap = _Heap(_PARTITION_BYTES)
    name, commit = heap.add(b"\0"), heap.add(b"\0")
    columns = heap.add(struct.pack("<H", 0))
    image = heap.add(partition.pdi)
    label, ids = heap.add(b"DPU\0"), heap.add(struct.pack("<Q", kernel.id))
    before = heap.add(struct.pack("<I", _PRE_GROUP))
    group = heap.add(struct.pack("<IB3xQ4I64x", label, _PRIMARY, _PDI_ID, 1, ids, 1, before))
    record = heap.add(partition.pdi_uuid + struct.pack("<4I64x", len(partition.pdi), image, 1, group))
    header = struct.pack("<B3xII4xQQH6xII", 0, name, partition.operations_per_cycle, _INFERENCE, _PRE_POST,
                         partition.columns, 1, columns)  # fmt: skip
    header += bytes(120 - len(header)) + struct.pack("<III", 1, record, commit)
    return header + bytes(_PARTITION_BYTES - len(header)) + heap.data
