"""`python -m support.npu_limits FOLDER ENDLESS`: what the software NPU answers at its limits as JSON: errno, of runs
the state.

FOLDER holds what `support.raw_npu` runs, ENDLESS the same with kernels that do not end.
"""

import ctypes
import json
import struct
import sys
from pathlib import Path

from bdforge.array.images.xclbin import pdis
from support.npu_packets import chain_of, ended, of_endless, of_heaps, of_memory, of_packets, of_requests
from support.raw_npu import (
    COMMAND,
    CREATE_BO,
    CREATE_CONTEXT,
    DESTROY_CONTEXT,
    DEVICE,
    EXECUTE,
    GEM_CLOSE,
    GET_INFO,
    HEAP,
    SHARE,
    SYNC_BO,
    WAIT,
    RawBuffer,
    RawNpu,
    wanted,
)


def main(folder: Path, endless: Path) -> None:
    npu = RawNpu()
    npu.buffer(64 << 20, HEAP)
    pdi = pdis((folder / "design.xclbin").read_bytes())[0]
    answers = {f"{count} units": configured(npu, [pdi] * count) for count in (0, 1, 32, 33)}
    for more in (0, 1):
        answers[f"64 MiB and {more} of configuration"] = configured(npu, [pdi.ljust((64 << 20) + more)])
    context = npu.context(pdi)
    words, operands = npu.loaded(folder)
    packet = npu.packet(words, len(words.memory) // 4, operands)
    for count in (4096, 4097):
        handles = (ctypes.c_uint32 * count)(*[operands[0].handle] * count)
        wanted = struct.pack("<IIQQIIQ", context, 0, packet.handle, ctypes.addressof(handles), 1, count, 0)
        answers[f"{count} handles"], done = npu.call(EXECUTE, bytes(16) + wanted)
        if not answers[f"{count} handles"]:
            npu.wait(context, struct.unpack_from("<Q", done, 48)[0])
    for count in (0, 2, 3):
        answers[f"{count} of 2 runs in a chain"] = ended(npu, context, chain_of(npu, [packet, packet], count))[0]
    answers |= of_buffers(npu) | of_contexts(npu, context) | of_packets(npu, pdi, words, operands)
    answers |= of_requests(npu, pdi, context)
    answers |= of_images(npu, pdi, folder, packet) | of_memory() | of_heaps()
    (endless / "design.xclbin").read_bytes()
    answers |= of_endless(npu, pdi, packet)
    print(json.dumps(answers))


def of_buffers(npu: RawNpu) -> dict[str, int]:
    """Sizes and kinds of buffers, and what lies within one."""
    made = {f"buffer of {size} bytes": (size, SHARE) for size in (0, 1)} | {
        f"buffer of type {kind}": (4096, kind) for kind in (0, SHARE, HEAP, DEVICE, COMMAND, 5)
    }
    made |= {"heap but a page": ((64 << 20) - 4096, DEVICE), "more than the last page": (4097, DEVICE)}
    answers = {name: npu.call(CREATE_BO, wanted(size, kind))[0] for name, (size, kind) in made.items()}
    buffer = npu.buffer(4096)
    parts = {
        "whole buffer": (0, 0, 4096), "to its end": (1, 4096, 0), "behind its end": (1, 4097, 0),
        "a byte too much": (0, 1, 4096), "no direction": (2, 0, 4096),
    }  # fmt: skip
    for name, (way, offset, size) in parts.items():
        answers[f"sync {name}"], _ = npu.call(SYNC_BO, struct.pack("<IIQQ", buffer.handle, way, offset, size))
    npu.close(buffer)
    answers["closed twice"], _ = npu.call(GEM_CLOSE, struct.pack("<II", buffer.handle, 0))
    return answers


def of_contexts(npu: RawNpu, context: int) -> dict[str, int]:
    """Columns of contexts, commands to wait for, room for what is told of contexts."""
    answers = {
        f"context of {tiles} tiles": npu.call(CREATE_CONTEXT, bytes(36) + struct.pack("<5I", tiles, 0, 0, 0, 0))[0]
        for tiles in (0, 4, 6, 32, 36)
    }
    for number in (2, 3):  # two submissions ran
        answers[f"wait for command {number}"], _ = npu.call(WAIT, struct.pack("<IIQ", context, 1, number))
    room = ctypes.create_string_buffer(1 << 12)
    for size in (3 * 64 - 1, 3 * 64):  # this context, and those of 4 and 32 tiles
        told = struct.pack("<IIQ", 5, size, ctypes.addressof(room))
        answers[f"contexts in {size} bytes"], _ = npu.call(GET_INFO, told)
    return answers


def of_images(npu: RawNpu, pdi: bytes, folder: Path, packet: RawBuffer) -> dict[str, int]:
    """How a run ends whose image is the last but so many that were opened: what it configures is known by its image."""
    answers, others = {}, [folder / f"other{number}.elf" for number in range(32)]
    for other in others:
        other.touch()
    for count in (31, 32):
        for image in (folder / "design.xclbin", *others[:count]):
            image.read_bytes()
        context = npu.context(pdi)
        npu.wait(context, npu.execute(context, packet))
        answers[f"run behind {count} other images"] = packet.memory[0] & 15
    return answers


def configured(npu: RawNpu, pdis: list[bytes]) -> int:
    """errno of a new context's configuration."""
    context = npu.created()
    answer = npu.configure(context, pdis)
    npu.require(DESTROY_CONTEXT, struct.pack("<II", context, 0))
    return answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
