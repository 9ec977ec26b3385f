"""Stacks of cores: the frames of kernels, where an object file or the kernel itself tells them.

Peano leaves the frame of every function in a section `.stack_sizes` when it compiles with `-fstack-size-section`. What
a kernel calls comes on top and is not followed, so a stack that passes may still be too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bdforge.array.emulator.errors import ArgumentError
from bdforge.common.binary import ImageError
from bdforge.common.files import FileError, read_bytes
from bdforge.core.isa.stack_sizes import frame_bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """What a function keeps on the stack, and who says so."""

    size_bytes: int
    source: str


def frames_of(path: Path) -> dict[str, Frame]:
    """Frames of an object's functions by symbol, none without the section; ArgumentError for no ELF file."""
    try:
        return {name: Frame(size, path.name) for name, size in frame_bytes(read_bytes(path)).items()}
    except FileError as error:
        raise ArgumentError(str(error)) from None
    except ImageError as error:
        raise ArgumentError(f"{path}: {error}") from None


def largest(frames: Sequence[tuple[str, Frame]], stack_size: int, kept_bytes: int) -> str | None:
    """What is wrong with a stack of `stack_size` bytes that holds `kept_bytes` when kernels are called, if anything."""
    if not frames:
        return None
    name, frame = max(frames, key=lambda named: named[1].size_bytes)
    if kept_bytes + frame.size_bytes <= stack_size:
        return None
    beside = f" beside {kept_bytes} of memref.alloca" if kept_bytes else ""
    return (
        f"its stack has {stack_size} bytes, but {name} takes {frame.size_bytes}{beside} ({frame.source}), without what "
        "it calls; on the array that overwrites the buffer behind the stack: raise stack_size of the aie.core"
    )
