"""Valid designs to mutate, with the element types and sizes of their host arrays."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oracle.array_text import mlir
from oracle.random_designs import random_design
from support.small_designs import core, loopback

FILES = Path(__file__).parent / "data"
RANDOM_SEEDS = range(40, 52)
LOOPS = """%n = memref.load %data[%c2] : memref<8xi32>
      %big = arith.constant 1000 : index
      scf.for %i = %c0 to %big step %c1 {
        %odd = arith.remui %i, %c2 : index
        %is = arith.cmpi eq, %odd, %c1 : index
        scf.if %is {
          %x = memref.load %data[%odd] : memref<8xi32>
          %y = arith.divsi %x, %n : i32
          memref.store %y, %data[%c7] : memref<8xi32>
        }
      }
      func.call @probe(%data, %n) : (memref<8xi32>, i32) -> ()
      aie.end"""


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    text: str
    arguments: list[tuple[str, int]]


@cache
def samples() -> tuple[Sample, ...]:
    """Hand-written designs, two that a real aie-opt accepts, and some random ones."""
    found = [
        Sample("loopback", loopback(), [("i32", 96), ("i32", 96)]),
        Sample("core", core(LOOPS), []),
        Sample("chain", (FILES / "chain.mlir").read_text(), [("i8", 4096), ("i8", 2048)]),
        Sample("packets_pad", (FILES / "packets_pad.mlir").read_text(), [("i32", 32), ("i32", 61)]),
    ]
    for seed in RANDOM_SEEDS:
        design = random_design(seed)
        found.append(Sample(f"random_{seed}", mlir(design), [(a.element, a.elements) for a in design.arguments]))
    return tuple(sorted(found, key=lambda s: len(s.text))[:10])
