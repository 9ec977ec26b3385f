"""Design specs: TOML in `designs/`, checked at the edge, plain dataclasses inside."""

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class SpecError(ValueError):
    """A design spec that cannot be read or cannot be built; the message lists every reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One GEMM: C (M x N) = A (M x K) · B (K x N)."""

    M: int
    K: int
    N: int
    name: str = field(default="", compare=False)

    @property
    def sequence(self) -> str:
        """Name of its runtime sequence."""
        return f"gemm_{self.M}x{self.K}x{self.N}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the answer needs."""
        return self.M * self.K * self.N

    def __str__(self) -> str:
        return f"{self.M}x{self.K}x{self.N}"


@dataclass(frozen=True, slots=True)
class TileSizes:
    """A core's tile: C m x n, A m x k, B k x n."""

    m: int
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """A GEMM design: types, array, tiles, buffering and the problems that are built in.

    `k_mt` is the depth of A's slab in a memtile (elements), a multiple of k; `c_buffers` 1 or 2.
    """

    name: str
    a: str
    b: str
    c: str
    rows: int
    columns: int
    tile: TileSizes
    k_mt: int
    c_buffers: int
    stack_bytes: int
    problems: tuple[Problem, ...]

    @property
    def content(self) -> dict[str, Any]:
        """The spec as its TOML file would hold it; `spec_from` reads it back."""
        return {
            "kind": "gemm",
            "types": {"a": self.a, "b": self.b, "c": self.c},
            "array": {"rows": self.rows, "columns": self.columns},
            "tile": asdict(self.tile),
            "buffers": {"k_mt": self.k_mt, "c_buffers": self.c_buffers, "stack_bytes": self.stack_bytes},
            "problems": [asdict(problem) for problem in self.problems],
        }

    @property
    def hash(self) -> str:
        """Identity of everything that decides the array configuration (not the problems)."""
        facts = {key: value for key, value in self.content.items() if key != "problems"}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


LARGEST_SIZE = 1 << 20  # of a tile, a buffer or a problem, in elements
_Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE, strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Types(_Section):
    a: Literal["int8"]
    b: Literal["int2"]
    c: Literal["int32"]


class _ArrayFile(_Section):
    rows: Annotated[int, Field(ge=1, le=4, strict=True)] = 4
    columns: Annotated[int, Field(ge=1, le=8, strict=True)] = 8


class _TileFile(_Section):
    m: _Size
    k: _Size
    n: _Size


class _Buffers(_Section):
    k_mt: _Size | None = None
    c_buffers: Literal[1, 2] = 1
    stack_bytes: _Size = 1024


class _ProblemFile(_Section):
    name: str = field(default="", compare=False)
    M: _Size
    K: _Size
    N: _Size


class _GemmFile(_Section):
    kind: Literal["gemm"]
    types: _Types
    array: _ArrayFile = _ArrayFile()
    tile: _TileFile
    buffers: _Buffers = _Buffers()
    problems: list[_ProblemFile] = Field(default_factory=list)


def load_spec(path: Path | str) -> GemmSpec:
    """Read a design spec; SpecError says which file and lists every problem, one to a line."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{path}: cannot read this design: {error}") from None
    return spec_from(content, path.stem, str(path))


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> GemmSpec:
    """A spec from TOML content; `where` heads every message."""
    try:
        file = _GemmFile.model_validate(content)
    except ValidationError as error:
        raise SpecError("\n".join(f"{where}: {_sentence(e)}" for e in error.errors())) from None
    return GemmSpec(
        name=name,
        a=file.types.a,
        b=file.types.b,
        c=file.types.c,
        rows=file.array.rows,
        columns=file.array.columns,
        tile=TileSizes(file.tile.m, file.tile.k, file.tile.n),
        k_mt=file.buffers.k_mt or file.tile.k,
        c_buffers=file.buffers.c_buffers,
        stack_bytes=file.buffers.stack_bytes,
        problems=tuple(Problem(p.M, p.K, p.N, p.name) for p in file.problems),
    )


def _sentence(error) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: unexpected key; remove it or check its spelling"
    if error["type"] == "missing":
        return f"{place}: missing; add it"
    return f"{place}: {error['msg'][0].lower()}{error['msg'][1:]}, got {error['input']!r}"
