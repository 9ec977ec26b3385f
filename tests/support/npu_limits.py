"""`python -m support.npu_limits FOLDER`: what the software NPU answers at its limits, an errno to each, as JSON.

FOLDER holds what `support.raw_npu` runs.
"""

import ctypes
import json
import struct
import sys
from pathlib import Path

from bdforge.images.xclbin import pdis
from support.raw_npu import CONFIGURE, CREATE_CONTEXT, DESTROY_CONTEXT, EXECUTE, HEAP, RawNpu


def main(folder: Path) -> None:
    npu = RawNpu()
    npu.buffer(64 << 20, HEAP)
    pdi = pdis((folder / "design.xclbin").read_bytes())[0]
    answers = {f"{count} units": configured(npu, pdi, count) for count in (0, 1, 32, 33)}
    context = npu.context(pdi, 8)
    contents = [path.read_bytes() for path in (folder / "words.bin", *sorted(folder.glob("[0-9].bin")))]
    words, *operands = [npu.buffer(len(content)) for content in contents]
    for buffer, content in zip([words, *operands], contents, strict=True):
        buffer.memory[:] = content
    packet = npu.packet(words, len(contents[0]) // 4, operands)
    for count in (4096, 4097):
        handles = (ctypes.c_uint32 * count)(*[operands[0].handle] * count)
        wanted = struct.pack("<IIQQIIQ", context, 0, packet.handle, ctypes.addressof(handles), 1, count, 0)
        answers[f"{count} handles"], done = npu.call(EXECUTE, bytes(16) + wanted)
        if not answers[f"{count} handles"]:
            npu.wait(context, struct.unpack_from("<Q", done, 48)[0])
    print(json.dumps(answers))


def configured(npu: RawNpu, pdi: bytes, count: int) -> int:
    """A new context with so many units of one configuration."""
    made = npu.require(CREATE_CONTEXT, bytes(36) + struct.pack("<5I", 8, 0, 0, 0, 0))
    (context,) = struct.unpack_from("<I", made, 48)
    code = npu.buffer(len(pdi))
    code.memory[:] = pdi
    table = struct.pack("<Q", count) + struct.pack("<II", code.handle, 0) * count
    units = ctypes.create_string_buffer(table, len(table))
    answer, _ = npu.call(CONFIGURE, struct.pack("<IIQII", context, 0, ctypes.addressof(units), len(table), 0))
    npu.close(code)
    npu.require(DESTROY_CONTEXT, struct.pack("<II", context, 0))
    return answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
