"""The copy of an xclbin's headers in JSON that xclbinutil appends, oddities included. XRT reads files without it."""

import json
from collections.abc import Sequence
from typing import Any

from bdforge.array.images.xclbin import INSTANCE, KERNEL_ID, MEMORIES, NAME, Arguments, SectionKind, links

_START, _END = b"XCLBIN_MIRROR_DATA_START", b"XCLBIN_MIRROR_DATA_END"


def mirror(
    sections: Sequence[tuple[SectionKind, str, int, int]], arguments: Arguments, seconds: int, uuid: bytes
) -> bytes:
    """The copy; a section is (kind, name, offset, size). Its key "section_header" repeats, so parts are joined here."""
    parts = [
        ("schema_version", {"major": "1", "minor": "0", "patch": "0"}),
        ("header", _header(seconds, uuid)),
        *(("section_header", _section(*section, arguments)) for section in sections),
    ]
    texts = (f'"{name}":{json.dumps(value, separators=(",", ":"))}' for name, value in parts)
    return _START + ("{" + ",".join(texts) + "}").encode() + _END


def _header(seconds: int, uuid: bytes) -> dict[str, str]:
    return {
        "Magic": "xclbin2", "SignatureLength": "ffffffff", "KeyBlock": "ff" * 256,
        "UniqueID": seconds.to_bytes(8, "little").hex(), "TimeStamp": str(seconds), "FeatureRomTimeStamp": "0",
        "Version": "\2.\x19.0", "Mode": "0", "InterfaceUUID": "00" * 16, "PlatformVBNV": "", "XclBinUUID": uuid.hex(),
        "DebugBin": "",
    }  # fmt: skip


def _section(kind: SectionKind, name: str, offset: int, size: int, arguments: Arguments) -> dict[str, Any]:
    header = {"Kind": str(int(kind)), "Name": name, "Offset": hex(offset), "Size": hex(size)}
    payload = _payload(kind, arguments)
    return header | ({} if payload is None else {"payload": payload})


def _payload(kind: SectionKind, arguments: Arguments) -> dict[str, Any] | None:
    match kind:
        case SectionKind.MEM_TOPOLOGY | SectionKind.GROUP_TOPOLOGY:
            name = "mem_topology" if kind is SectionKind.MEM_TOPOLOGY else "group_topology"
            items = [
                {"m_type": "MEM_DRAM", "m_used": "1", "m_sizeKB": hex(memory.kib), "m_tag": memory.tag,
                 "m_base_address": hex(memory.base)}
                for memory in MEMORIES
            ]  # fmt: skip
            return {name: {"m_count": str(len(items)), "m_mem_data": items}}
        case SectionKind.IP_LAYOUT:
            item = {
                "m_type": "IP_PS_KERNEL", "m_subtype": "DPU", "m_functional": "DPU", "m_kernel_id": hex(KERNEL_ID),
                "m_base_address": "not_used", "m_name": f"{NAME}:{INSTANCE}",
            }  # fmt: skip
            return {"ip_layout": {"m_count": "1", "m_ip_data": [item]}}
        case SectionKind.CONNECTIVITY | SectionKind.GROUP_CONNECTIVITY:
            group = kind is SectionKind.GROUP_CONNECTIVITY
            items = [
                {"arg_index": str(a), "m_ip_layout_index": str(i), "mem_data_index": str(m)}
                for a, i, m in links(arguments, 2 if group else 1)
            ]
            name = "group_connectivity" if group else "connectivity"
            return {name: {"m_count": str(len(items)), "m_connection": items}}
        case _:
            return None
