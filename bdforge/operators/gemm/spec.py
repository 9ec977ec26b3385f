"""Design specs: TOML in `designs/`, checked at the edge, plain dataclasses inside."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as table

from bdforge.common.files import read_toml
from bdforge.design.sequences import DEFAULT_OPTIONS, SequenceOptions
from bdforge.operators.specs import (
    STACK_BYTES,
    STRICT,
    WHOLE,
    ArraySection,
    Count,
    MatrixProblem,
    Problem,
    Rounding,
    Section,
    Shift,
    Size,
    Spec,
    SpecError,
    SpecForm,
    validated,
)

KIND = "gemm"
COLUMNS = 8  # of specs that do not say
AXES = ("M", "K", "N")


@dataclass(frozen=True, eq=False, init=False)
class GemmProblem(Problem):
    """One GEMM: C (M x N) = A (M x K) · B (K x N)."""

    def __init__(self, M: int, K: int, N: int, name: str = ""):
        super().__init__(KIND, {"M": M, "K": K, "N": N}, name)

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "GemmProblem":
        """The GEMM of sizes by axis."""
        return cls(sizes["M"], sizes["K"], sizes["N"])

    @property
    def M(self) -> int:  # noqa: N802
        """Rows of A and C."""
        return self.sizes["M"]

    @property
    def K(self) -> int:  # noqa: N802
        """Columns of A, rows of B."""
        return self.sizes["K"]

    @property
    def N(self) -> int:  # noqa: N802
        """Columns of B and C."""
        return self.sizes["N"]

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the answer needs."""
        return self.M * self.K * self.N


@table(frozen=True, slots=True, config=STRICT)
class TileSizes:
    """A core's tile: C m x n, A m x k, B k x n.

    With `m_used` only so many of the m rows hold data, for problems with few rows: memtiles pad A with zeros and send
    only these rows of C, so that no host has to. 0 stands for all.
    """

    m: Size
    k: Size
    n: Size
    m_used: Count = 0

    @property
    def rows(self) -> int:
        """Rows that hold data."""
        return self.m_used or self.m


@table(frozen=True, slots=True, config=STRICT)
class Layouts:
    """The order of each operand in host memory."""

    a: Literal["row", "column"] = "row"
    b: Literal["packed", "row", "column"] = "packed"
    c: Literal["row", "column"] = "row"


@table(frozen=True, slots=True, config=STRICT)
class Buffers:
    """Depths and counts of buffers.

    `k_mt`: depth of A's slab in a memtile (and of B's where B is not packed), elements, a multiple of k. `c_buffers`
    and `c_memtile_buffers`: tiles of C in a core, and for each core in a memtile, 1 or 2. `rho`: parts in which a
    core's A tile arrives, m/rho rows each (asymmetric tile buffering). `a_shims`: 2 where both shims of a pair of
    columns, and both memtiles, bring one core row's A. `stack_bytes`: of each core; its overflow is silent and lands in
    the buffers above. `residency`: "b" where panels of B stay in memtiles while rows of A pass, in `pool_bytes` of each
    (0: in all that A and C leave). `c_pieces`: blocks of rows in which a tile of C passes a memtile.
    `c_in_parts`: a core finishes, sends and clears C in its rho parts, while it multiplies with the others.
    """

    k_mt: Size = 0  # that of a tile, until the tile is known
    c_buffers: Annotated[Literal[1, 2], WHOLE] = 1
    c_memtile_buffers: Annotated[Literal[1, 2], WHOLE] = 2
    rho: Size = 1
    a_shims: Annotated[Literal[1, 2], WHOLE] = 1
    stack_bytes: Size = STACK_BYTES
    residency: Literal["none", "b"] = "none"
    pool_bytes: Count = 0
    c_pieces: Size = 1
    c_in_parts: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What a TOML file would hold; what came later stands there only where a design uses it."""
        later = {"residency": "none", "pool_bytes": 0, "c_pieces": 1, "c_in_parts": False}
        return {name: value for name, value in asdict(self).items() if later.get(name) != value}


@table(frozen=True, slots=True, config=STRICT)
class Epilogue:
    """What happens to a tile of C after the last step of K, in this order.

    `shift`: sums are divided by 2^shift, with `rounding` and saturation, on their way into narrower integers. `scale`:
    times one float32 for each row of A and one for each column of B. `bias`: plus one float32 for each column.
    `gate`: B is two matrices, and C = f(A gate) * (A up), with f the square of what is above 0, or SiLU.
    """

    shift: Shift = 0
    rounding: Rounding = "conv_even"
    scale: bool = False
    bias: bool = False
    relu: bool = False
    gate: Literal["none", "relu2", "silu"] = "none"

    @property
    def fed(self) -> bool:
        """Whether numbers of the host's take part."""
        return self.scale or self.bias

    @property
    def facts(self) -> dict[str, Any]:
        """What a TOML file would hold; what came later stands there only where a design uses it."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("gate", "none")}


@table(frozen=True, slots=True, config=STRICT)
class Output:
    """An array of its own for the next `columns` columns of C."""

    name: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
    columns: Size


@dataclass(frozen=True, slots=True)
class GemmSpec(Spec):
    """A GEMM design: types, layouts, array, tiles, buffering, epilogue and the problems that are built in.

    `accumulator` is the type in which cores keep C from step to step of K. Layouts are "row" or "column" for A and C,
    for B also "packed". `outputs` are the arrays that take C's columns, from the first on; none: one, C. `array` is the
    array that the tiles are made for, as MLIR names it; None for any.
    """

    kind: ClassVar[str] = KIND
    name: str
    a: str
    b: str
    c: str
    accumulator: str
    layouts: Layouts
    rows: int
    columns: int
    tile: TileSizes
    buffers: Buffers
    epilogue: Epilogue
    problems: tuple[GemmProblem, ...]
    outputs: tuple[Output, ...] = ()
    array: str | None = None
    sequence: SequenceOptions = DEFAULT_OPTIONS

    @property
    def matrices(self) -> int:
        """Matrices in B, of N columns each: two where one gates the other."""
        return 1 if self.epilogue.gate == "none" else 2

    @property
    def c_columns(self) -> int:
        """Columns of C that a core's tile of B makes."""
        return self.tile.n // self.matrices

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides the array configuration, as a TOML file would hold it."""
        made_for = {"device": self.array} if self.array else {}
        return {
            "types": {"a": self.a, "b": self.b, "c": self.c, "accumulator": self.accumulator},
            "layouts": asdict(self.layouts),
            "array": {**made_for, "rows": self.rows, "columns": self.columns},
            "tile": asdict(self.tile),
            "buffers": self.buffers.facts,
            "epilogue": self.epilogue.facts,
            **({"outputs": [asdict(one) for one in self.outputs]} if self.outputs else {}),
        }


class _Types(Section):
    a: Literal["int8", "bf16", "bfp16"]
    b: Literal["int8", "int4", "int2", "bf16", "bfp16"]
    c: Literal["int8", "int16", "int32", "bf16", "f32", "bfp16"]
    accumulator: Literal["int8", "int16", "int32", "bf16", "f32", "bfp16"] | None = None


class _GemmFile(SpecForm[MatrixProblem]):
    kind: Literal["gemm"]
    types: _Types
    layouts: Layouts = Layouts()
    array: ArraySection = ArraySection()
    tile: TileSizes
    buffers: Buffers = Buffers()
    epilogue: Epilogue = Epilogue()
    outputs: tuple[Output, ...] = ()


def load_spec(path: Path | str) -> GemmSpec:
    """Read a design spec; SpecError says which file and lists every problem, one to a line."""
    path = Path(path)
    return spec_from(read_toml(path, SpecError), path.stem, str(path))


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> GemmSpec:
    """A spec from TOML content; `where` heads every message."""
    file = validated(_GemmFile, content, where)
    types, buffers = file.types, file.buffers
    return GemmSpec(
        name=name,
        a=types.a,
        b=types.b,
        c=types.c,
        accumulator=types.accumulator or _default_accumulator(types),
        layouts=file.layouts,
        rows=file.array.rows,
        columns=file.array.columns or COLUMNS,
        tile=file.tile,
        buffers=replace(buffers, k_mt=buffers.k_mt or file.tile.k),
        epilogue=file.epilogue,
        problems=tuple(GemmProblem(p.M, p.K, p.N, p.name) for p in file.problems),
        outputs=file.outputs,
        array=file.array.device,
        sequence=file.sequence.options(where),
    )


def _default_accumulator(types: _Types) -> str:
    """C's own type, as published designs have it, unless sums would not survive it."""
    if types.b == "int2" or (types.a == "int8" and types.c == "bf16"):
        return "int32"
    return types.c
