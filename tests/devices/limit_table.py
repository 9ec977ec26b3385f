"""What a limit's pair of cases is made of: its name, its number written a second time, and who enforces it how."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir import MlirError, parse
from bdforge.array.mlir.device_ops import DeviceOp

Case = Callable[[int], object]
"""Uses a value, and raises where that is too much."""


@dataclass(frozen=True)
class Place:
    """Where a limit is enforced: the error beyond it, which holds `words`; `below` where the limit itself is beyond."""

    case: Case
    words: str
    error: type[Exception] = MlirError
    below: bool = False


@dataclass(frozen=True)
class Limit:
    """A named limit: a module of bdforge and a constant in it or a field of one, its value by hand, and a place."""

    name: str
    number: int
    place: Place

    @property
    def last(self) -> int:
        """The last accepted value; the first refused one is next to it."""
        return self.number - self.place.below


def read(text: str, device: str = "npu2") -> ModuleOp:
    """A design of this text, where %s, %m and %c are a shim, a memtile and a core tile."""
    tiles = "%s = aie.tile(0, 0)\n%m = aie.tile(0, 1)\n%c = aie.tile(0, 2)\n"
    return parse(f"aie.device({device}) {{\n{tiles}{text}\n}}")


def reads(text: str) -> Case:
    """A case that reads such a design; `{n}` stands for the value."""
    return lambda n: read(text.replace("{n}", str(n)))


def device_of(module: ModuleOp) -> DeviceOp:
    """The only device of a module."""
    return next(op for op in module.walk() if isinstance(op, DeviceOp))


def refuses(problems: Callable[[int], list[str]]) -> Case:
    """A case of a function that returns what is wrong."""

    def case(value: int) -> None:
        if found := problems(value):
            raise ValueError("\n".join(found))

    return case


def dma_program(tile: str, starts: int, blocks: list[str], elements: int = 64) -> str:
    """%b, and the DMA program of %s, %m or %c with so many channels that start at ^b0."""
    kind = {"%s": "shim_dma", "%m": "memtile_dma", "%c": "mem"}[tile]
    memory = (
        f"aie.external_buffer : memref<{elements}xi32>"
        if tile == "%s"
        else f"aie.buffer({tile}) : memref<{elements}xi32>"
    )
    first = [f"%{i} = aie.dma_start(S2MM, {i}, ^b0, ^s{i})\n^s{i}:" for i in range(starts)]
    return "\n".join([f"%b = {memory}", f"aie.{kind}({tile}) {{", *first, "aie.end", *blocks, "}"])
