"""What describes a kernel for scheduling: its product, the traffic of C, or a pass over C."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from bdforge.devices import Generation
from bdforge.devices.types import TYPES
from bdforge.perf.kernels.blocks import Block, Chain
from bdforge.perf.kernels.loop import Loop, Operation
from bdforge.perf.kernels.scheduled_forms import ACCUMULATOR_TILES, VECTOR_REGISTERS, timed_form

Traffic = tuple[tuple[Chain, ...], tuple[Chain, ...]]
"""Loads and stores of one micro-tile of C."""


@dataclass(frozen=True)
class Product:
    """How one iteration multiplies: `rows` x `columns` micro-tiles of `r` x `s` times `s` x `t`.

    `operands` makes the operations that bring the tiles a0, a1, … and b0, b1, … into registers, `mac` multiplies two of
    them. `parts` names the registers of a tile of A and of B. `transposed` says which of A and B arrive column by
    column within their micro-tiles. `temporaries` are accumulators that `operands` uses in place, `reserved` how many
    whole accumulators those are. `accumulator_bits` is the size of one micro-tile of C, `group` the column blocks of B
    that share their bytes, `run` the steps of K that one iteration takes where they divide k / s.
    """

    generation: Generation
    r: int
    s: int
    t: int
    mac: str
    operands: "Callable[[Product], list[Operation]]"
    rows: int = 2
    columns: int = 2
    group: int = 1
    run: int = 1
    transposed: frozenset[str] = frozenset()
    parts: tuple[tuple[str, ...], tuple[str, ...]] = (("",), ("",))
    registers: int = VECTOR_REGISTERS
    temporaries: tuple[str, ...] = ()
    reserved: int = 0
    accumulator_bits: int = 2048

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one iteration."""
        return self.rows * self.columns * self.r * self.s * self.t * self.run

    def operand(self, side: str, index: int, step: int) -> str:
        """Name of a tile of A or B (`a`, `b`) at one of the iteration's steps."""
        return f"{side}{index}" + "'" * step

    def loop(self, name: str) -> Loop:
        """One iteration of the inner loop."""
        body = (*self.operands(self), *self._products())
        return Loop(name, body, frozenset((*self.tiles(), *self.temporaries)), self.registers)

    def tiles(self) -> tuple[str, ...]:
        """Names of the accumulators, row by row."""
        return tuple(f"c{i}.{j}" for i in range(self.rows) for j in range(self.columns))

    def _products(self) -> list[Operation]:
        mac = timed_form(self.generation, self.mac)
        return [
            Operation((mac,), (("acc1", f"c{i}.{j}"), *self._sides(i, j, step)), (f"c{i}.{j}",))
            for step in range(self.run)
            for i in range(self.rows)
            for j in range(self.columns)
        ]

    def _sides(self, i: int, j: int, step: int) -> tuple[tuple[str, str], ...]:
        (left, right), a, b = self.parts, self.operand("a", i, step), self.operand("b", j, step)
        return (*(("s1", f"{a}{p}") for p in left), *(("s2", f"{b}{p}") for p in right))


@dataclass(frozen=True, eq=False)
class MatrixKernel:
    """A kernel C += A · B on one core tile, by the types of A, B and C."""

    a: str
    b: str
    c: str
    product: Product
    traffic: Callable[[Generation, bool], Traffic]

    @property
    def symbol(self) -> str:
        """The entry point's name: mm_ and the three types."""
        return "_".join(("mm", *(TYPES[name].code for name in (self.a, self.b, self.c))))

    @property
    def generation(self) -> Generation:
        """The generation it is written for."""
        return self.product.generation

    @property
    def multiples(self) -> tuple[int, int, int]:
        """What m, k, n must be multiples of: micro-tiles, and column blocks that share their bytes."""
        p = self.product
        return p.r, p.s, p.t * p.group

    def run(self, steps: int) -> int:
        """Steps of K in one iteration of a loop over `steps` of them."""
        return self.product.run if steps % self.product.run == 0 else 1

    @cache  # noqa: B019, one entry per kernel and shape of block for the life of the process
    def block(self, rows: int, columns: int, transposed: frozenset[str] = frozenset(), run: int = 1) -> Block:
        """The inner loop of blocks of `rows` x `columns` micro-tiles, `run` steps of K at a time, and C's transfers."""
        p = replace(self.product, rows=rows, columns=columns, transposed=transposed, run=run)
        load, store = self.traffic(self.generation, "c" in transposed)
        free = ACCUMULATOR_TILES[self.generation.name, p.accumulator_bits] - p.reserved
        return Block(p.loop(self.symbol), p.tiles(), load, store, free)


@dataclass(frozen=True, eq=False)
class ElementKernel:
    """A kernel that passes over one core tile of C: `elements` per iteration of its loop.

    `registers` is how many values it may hold; more than there are, where load and store slots have room to spill.
    `option` is a macro of the kernel with which it costs this; without one it is the cost of all other builds.
    """

    symbol: str
    generation: Generation
    elements: int
    body: Callable[[Generation], tuple[Operation, ...]]
    registers: int = VECTOR_REGISTERS
    option: str = ""

    def loop(self) -> Loop:
        """One iteration of the pass."""
        return Loop(self.symbol, self.body(self.generation), registers=self.registers)
