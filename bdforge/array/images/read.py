"""What an image of any kind holds: configurations as register writes, and the partition and kernels around them."""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from bdforge.array.images.cdo import MAGIC as CDO_MAGIC
from bdforge.array.images.cdo import operations
from bdforge.array.images.pdi import cdos, embedded_pdis, is_pdi
from bdforge.array.images.xclbin import MAGIC, HostKernels, SectionKind, host_kernels_of, pdis, sections
from bdforge.common.binary import ImageError, unpack
from bdforge.core.isa.elf import is_elf
from bdforge.devices.txn_format.operations import Operation

_UUID, _TIME = 416, 312
_IP_BYTES = 80
_MOST = 1024


class KernelEntry(NamedTuple):
    """A kernel by its name with instance, and the id by which a partition's groups name it."""

    name: str
    id: int


@dataclass(frozen=True, slots=True)
class Container:
    """What an xclbin says around its configurations; `section_kinds` with their sizes in bytes.

    `host_kernels`, where there are any, mark it as one for the emulated array only.
    """

    uuid: str
    seconds: int
    section_kinds: tuple[tuple[str, int], ...]
    columns: tuple[int, ...]
    kernels: tuple[KernelEntry, ...]
    host_kernels: HostKernels


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A file: its kind, its configurations in order, and for an xclbin what stands around them."""

    kind: str
    configurations: tuple[tuple[Operation, ...], ...]
    container: Container | None = None


def is_image(data: bytes) -> bool:
    """Whether the data starts like an xclbin, a PDI, a CDO or an ELF."""
    return data[: len(MAGIC)] == MAGIC or is_pdi(data) or _is_cdo(data) or is_elf(data)


def _is_cdo(data: bytes) -> bool:
    return data[4:8] == struct.pack("<I", CDO_MAGIC)


def configurations(data: bytes) -> tuple[str, list[list[bytes]]]:
    """What kind of image a file is, and the CDOs of each of its configurations; ImageError as `read_image`."""
    if data[: len(MAGIC)] == MAGIC:
        return "xclbin", [cdos(pdi) for pdi in pdis(data)]
    if is_pdi(data):
        return "PDI", [cdos(data)]
    if _is_cdo(data):
        return "CDO", [[data]]
    if is_elf(data):
        return "full ELF", [cdos(pdi) for pdi in embedded_pdis(data)]
    raise ImageError(f"no xclbin, PDI, CDO or full ELF: the file starts with {data[:8].hex() or 'nothing'}")


def read_image(data: bytes) -> ImageContent:
    """The file's configurations; ImageError where it is cut short or wrong, or is none of the kinds."""
    kind, found = configurations(data)
    writes = tuple(tuple(operation for cdo in parts for operation in operations(cdo)) for parts in found)
    return ImageContent(kind, writes, _container(data) if kind == "xclbin" else None)


def _container(data: bytes) -> Container:
    (seconds,) = unpack(data, "<Q", _TIME, "time stamp")
    (uuid,) = unpack(data, "16s", _UUID, "uuid")
    kinds, columns, kernels = [], [], []
    for kind, content in sections(data):
        kinds.append((_name(kind), len(content)))
        if kind == SectionKind.AIE_PARTITION:
            columns += unpack(content, "<H", 32, "column width")
        elif kind == SectionKind.IP_LAYOUT:
            kernels += _kernels(content)
    return Container(uuid.hex(), seconds, tuple(kinds), tuple(columns), tuple(kernels), host_kernels_of(data))


def _name(kind: int) -> str:
    return SectionKind(kind).name if kind in set(SectionKind) else f"section {kind}"


def _kernels(content: bytes) -> list[KernelEntry]:
    (count,) = unpack(content, "<I", 0, "number of kernels")
    if count > _MOST:
        raise ImageError(f"the IP layout counts {count} kernels; at most {_MOST} are read")
    found = []
    for i in range(count):
        number, name = unpack(content, "<6xH8x64s", 8 + _IP_BYTES * i, f"kernel {i}")
        found.append(KernelEntry(name.split(b"\0")[0].decode(errors="replace"), number))
    return found
