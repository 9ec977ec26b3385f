"""Configurations of small designs as the real tools write them: text, lowered text, operations and words of files."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

from bdforge.array.lower import StaticConfiguration, configuration
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.isa.elf import CoreSegment, core_segments
from bdforge.devices import Generation
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write

_FILE = Path(__file__).parents[1] / "lower" / "data" / "configurations.jsonl"
PARTS = ("elfs", "init", "enable")


@dataclass(frozen=True)
class Vector:
    """One design: `mlir` as it was written, `lowered` with ids, addresses and switches."""

    name: str
    mlir: str
    lowered: str
    elf_files: dict[str, str]
    cdo: dict[str, dict[str, list]]

    def operations(self, part: str) -> list[Operation]:
        """What the real tool writes in one of its files."""
        return [_operation(*fields) for fields in self.cdo[part]["operations"]]

    def file(self, part: str) -> bytes:
        """The bytes of one of its files."""
        words = [int(word, 16) for line in self.cdo[part]["words"] for word in line.split()]
        return struct.pack(f"<{len(words)}I", *words)

    def configuration(self, text: str | None = None) -> StaticConfiguration:
        """Our lowering of the lowered text, or of another one."""
        module = parse(self.lowered if text is None else text, self.name)
        return configuration(next(op for op in module.walk() if isinstance(op, DeviceOp)), self.program)

    def program(self, path: Path, generation: Generation) -> list[CoreSegment]:
        """The program that a core of the text names."""
        assert generation.name == "AIE2P"
        return core_segments(bytes.fromhex(self.elf_files[path.name]))[0]


def _operation(kind: str, address: str, *values: str) -> Operation:
    at = int(address, 16)
    if kind == "block":
        return BlockWrite(at, tuple(int(word, 16) for word in values[0].split()))
    if kind == "mask":
        return MaskWrite(at, mask=int(values[0], 16), value=int(values[1], 16))
    return Write(at, int(values[0], 16))


def _read(line: str) -> Vector:
    found = json.loads(line)
    return Vector(*(found[name] for name in ("name", "mlir", "lowered", "elf_files", "cdo")))


VECTORS = {vector.name: vector for vector in map(_read, _FILE.read_text().splitlines())}
