"""Element-wise operators y = f(a, b): what a spec says, its plan for a product, numpy reference and cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.design import Design, told_cores
from bdforge.devices import Device
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.types import TYPES, ElementType
from bdforge.formats import shifted
from bdforge.operators.elementwise.mapping import (
    LARGEST_LENGTH,
    Tiling,
    elementwise_program,
    map_elementwise,
)
from bdforge.operators.operator import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import (
    STACK_BYTES,
    ArraySection,
    Problem,
    Rounding,
    Section,
    SequenceSection,
    Shift,
    Size,
    Spec,
    SpecError,
    array_reasons,
    design_reasons,
    stack_reasons,
    validated,
)
from bdforge.sequences import DEFAULT_OPTIONS, Program, SequenceOptions

KIND = "elementwise"
AXES = ("length",)


@dataclass(frozen=True, slots=True)
class Function:
    """f by its name in specs: exact on int64, and on bfloat16 with `round_` after each operation.

    Cycles are a core's for one vector of each type, as many as the busiest slot of the kernel's loop has on AIE2P.
    """

    of: Callable[[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]], np.ndarray]
    bf16_cycles: int
    int8_cycles: int


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(lambda a, b, round_: round_(a + b), 2, 2),
    "mul": Function(lambda a, b, round_: round_(a * b), 1, 1),
    "relu2_gate": Function(lambda a, b, round_: round_(round_(np.where(np.signbit(a), 0, a) ** 2) * b), 2, 3),
}
"""Functions by name; relu2_gate is BitNet's relu(a)^2 * b."""


@dataclass(frozen=True, slots=True)
class ElementwiseSpec(Spec):
    """An element-wise design. Cores take `tile` elements at a time; no `columns`: all of the product's.

    int8 results are f / 2^shift, rounded as `rounding` says and saturated.
    """

    kind: ClassVar[str] = KIND
    name: str
    function: str
    type: str
    tile: int
    rows: int
    columns: int | None
    array: str | None
    shift: int
    rounding: str
    stack_bytes: int
    problems: tuple[Problem, ...]
    sequence: SequenceOptions = DEFAULT_OPTIONS

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides the array configuration, as a TOML file would hold it."""
        array = {"device": self.array, "rows": self.rows, "columns": self.columns}
        return {
            "function": self.function,
            "type": self.type,
            "tile": self.tile,
            "array": {key: value for key, value in array.items() if value is not None},
            "narrowing": {"shift": self.shift, "rounding": self.rounding},
            "stack_bytes": self.stack_bytes,
        }


class _Narrowing(Section):
    shift: Shift = 0
    rounding: Rounding = "conv_even"


class _ProblemFile(Section):
    name: str = ""
    length: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class _File(Section):
    kind: Literal["elementwise"]
    function: Literal["add", "mul", "relu2_gate"]
    type: Literal["int8", "bf16"]
    tile: Size
    array: ArraySection = ArraySection()
    narrowing: _Narrowing = _Narrowing()
    stack_bytes: Size = STACK_BYTES
    sequence: SequenceSection = SequenceSection()
    problems: list[_ProblemFile] = Field(default_factory=list)


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> ElementwiseSpec:
    """A spec from TOML content; SpecError lists every fault, `where` heads each."""
    file = validated(_File, content, where)
    return ElementwiseSpec(
        name=name,
        function=file.function,
        type=file.type,
        tile=file.tile,
        rows=file.array.rows,
        columns=file.array.columns,
        array=file.array.device,
        shift=file.narrowing.shift,
        rounding=file.narrowing.rounding,
        stack_bytes=file.stack_bytes,
        problems=tuple(Problem(KIND, {"length": p.length}, p.name) for p in file.problems),
        sequence=file.sequence.options(where),
    )


@dataclass(frozen=True, slots=True, repr=False)
class ElementwisePlan(Plan):
    """Every number of an element-wise design."""

    spec: ElementwiseSpec
    device: Device
    design: Design
    tiling: Tiling

    @property
    def program(self) -> Program:
        """The runtime sequence of any length."""
        return elementwise_program(self.tiling, told_cores(self.design), self.spec.sequence.steps)

    @property
    def kernels(self) -> Kernels:
        """The one function of a tile."""
        symbol, spec = _symbol(self.tiling.type), self.spec
        narrowing = (f"SHIFT={spec.shift}", f"ROUNDING={spec.rounding}") if self.tiling.type.integer else ()
        defines = (f"FUNCTION={spec.function}", f"TILE_ELEMENTS={spec.tile}", *narrowing)
        return Kernels((symbol,), (f"kernels/{symbol}.cc",), defines, {symbol: self._cycles})

    @property
    def _cycles(self) -> int:
        function, type_ = FUNCTIONS[self.spec.function], self.tiling.type
        vectors = self.spec.tile * type_.bits // (BYTE_BITS * self.device.generation.vector_align_bytes)
        return vectors * (function.int8_cycles if type_.integer else function.bf16_cycles)

    def random(self, problem: Problem, seed: int) -> dict[str, np.ndarray]:
        """A and B: all int8, or bfloat16 around 0."""
        rng, type_ = np.random.default_rng(seed), self.tiling.type
        shape = 2, problem.sizes["length"]
        values = rng.integers(-128, 128, shape) if type_.integer else rng.normal(size=shape)
        return dict(zip("AB", values.astype(type_.dtype), strict=True))

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y of the inputs' shape, exact. Of bfloat16 that is so where no subnormal occurs, which the device flushes."""
        function, spec, dtype = FUNCTIONS[self.spec.function].of, self.spec, self.tiling.type.dtype
        a, b = inputs["A"], inputs["B"]
        if self.tiling.type.integer:
            exact = function(a.astype(np.int64), b.astype(np.int64), lambda x: x)
            return {"Y": Expected(shifted(exact, spec.shift, spec.rounding, dtype).astype(dtype))}
        with np.errstate(over="ignore", invalid="ignore"):  # as IEEE 754 has it
            y = function(a.astype(np.float32), b.astype(np.float32), lambda x: x.astype(dtype).astype(np.float32))
            return {"Y": Expected(y.astype(dtype))}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the first column's cores, which have the most tiles."""
        sequence = self.sequence(problem)
        tiles = -(-sequence.elements[0] // (self.tiling.panel * self.tiling.columns))
        return Cost.of(sequence, problem.sizes["length"], tiles * self._cycles)


def _symbol(type_: ElementType) -> str:
    return f"elementwise_{type_.code}"


def fits(spec: ElementwiseSpec, device: Device) -> bool:
    """Whether the spec names the array, or no more columns than it has."""
    return spec.array in (None, device.mlir) and (spec.columns or 0) <= device.columns


def plan_elementwise(spec: ElementwiseSpec, device: Device) -> ElementwisePlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    tiling = Tiling(TYPES[spec.type], spec.tile, spec.rows, spec.columns or device.columns)
    if reasons := list(_reasons(spec, tiling, device)):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    comment = (
        f"{spec.name}: y = {spec.function}(a, b), {spec.type}, tile of {spec.tile} elements, "
        f"{tiling.rows} x {tiling.columns} cores (rows x columns)."
    )
    design = map_elementwise(
        spec.name, device.part(tiling.columns), tiling, _symbol(tiling.type), spec.stack_bytes, comment
    )
    if reasons := design_reasons(design, {"memory": "a smaller tile or stack_bytes"}):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    return ElementwisePlan(spec, device, design, tiling)


def _reasons(spec: ElementwiseSpec, tiling: Tiling, device: Device) -> Iterator[str]:
    yield from array_reasons(spec.array, tiling.rows, tiling.columns, device)
    yield from stack_reasons("stack_bytes", spec.stack_bytes, device)
    if not tiling.type.integer and (spec.shift, spec.rounding) != (0, "conv_even"):
        yield "narrowing is of integers; leave it out, bf16 is rounded to nearest even"


OPERATOR = Operator(KIND, AXES, spec_from, plan_elementwise, fits)
