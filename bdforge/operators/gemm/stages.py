"""What a host stages, as expressions of a sequence program: sizes and leading dimensions that the shims then walk."""

from typing import NamedTuple

from bdforge.common.messages import listed
from bdforge.design.sequences import Builder, Expr, all_of, any_of, ceildiv, largest, select
from bdforge.design.sequences.expressions import Operand
from bdforge.devices import TileLimits
from bdforge.operators.gemm.grid import Storage, Tiling


def operand_axes(tiling: Tiling) -> dict[str, tuple[str, str]]:
    """What runs along the axes of A, B and C, or of the arrays that take C's columns, each along an axis of its own."""
    outputs = {one.name: ("M", one.name) for one in tiling.outputs} or {"c": ("M", "N")}
    return {"a": ("M", "K"), "b": ("K", "N"), **outputs}


def walked_extent(tiling: Tiling, axis: str, size: Operand) -> Expr:
    """A size along "M", "K" or "N" as it is walked: whole granules, and at least a tile."""
    granule = tiling.granules[axis]
    return largest(ceildiv(size, granule) * granule, tiling.least[axis])


def walked_size(tiling: Tiling, axis: str, size: int) -> int:
    """`walked_extent` of a number."""
    walked = walked_extent(tiling, axis, size).constant
    assert walked is not None
    return walked


class StagingReason(NamedTuple):
    """A reason to stage an operand where `when` is not 0: text with {} for `value`."""

    when: Expr
    text: str
    value: Expr


class Stages:
    """Of one design, for M, K, N and leading dimensions (lda, ldb, ldc) of the user's operands; one of 0: no gap.

    An operand is staged, copied into a buffer of the host's without gaps, where a tile is larger than it is, where its
    lines do not start at whole words, or where these are farther apart than a BD can step. A is staged in whole slabs
    where K is no whole number of them and B is not packed. Packed B never is: packing makes it fit.

    `panels` of rows, the `depth` of whole slabs, `n_tiles` and column `steps` are what is walked.
    """

    def __init__(self, build: Builder, tiling: Tiling, limits: TileLimits):
        self.build, self.tiling, self.limits = build, tiling, limits
        self.axes_of, columns = operand_axes(tiling), {one.name: build.constant(one.columns) for one in tiling.outputs}
        self.given = {name: build.parameter(name) for name in "MKN"} | columns
        self.lines = {name: build.named(f"line_{name}", self.line(name)) for name in self.axes_of}
        walked = {name: walked_extent(tiling, name, self.given[name]) for name in "MKN"}
        self.walked = {name: build.named(f"{name}_walked", extent) for name, extent in walked.items()} | columns
        self.packed = tiling.b.order == "packed"
        self.a_in_slabs = ~(self.walked["K"] % tiling.k_mt).equals(0) if not self.packed else build.constant(0)
        staged = {name: any_of(0, *(r.when for r in self.reasons(name))) for name in self.axes_of}
        self.staged = {name: build.named(f"{name}_staged", found) for name, found in staged.items()}
        M, K, N = self.sizes
        self.panels = build.named("panels", ceildiv(M, tiling.panel_rows))
        self.depth = build.named("depth", ceildiv(K, tiling.k_mt) * tiling.k_mt)
        self.n_tiles = build.named("n_tiles", ceildiv(N, tiling.n))
        self.steps = build.named("steps", ceildiv(self.n_tiles, tiling.columns))

    def line(self, name: str) -> Expr:
        """Positions from line to line of a user's operand; where 0 is given there is no gap."""
        given, along = self.build.parameter(f"ld{name}"), 0 if self.storage(name).order == "column" else 1
        axis = self.axes_of[name][along]
        return select(given.equals(0), self.given[axis], given)

    def storage(self, name: str) -> Storage:
        return {"a": self.tiling.a, "b": self.tiling.b}.get(name, self.tiling.c)

    def reasons(self, name: str) -> list[StagingReason]:
        """Why an operand cannot be reached where it is, in the order in which people are told."""
        store, leading, axes = self.storage(name), self.lines[name], self.axes_of[name]
        if store.order == "packed":
            return []
        tile, given = {"M": "m", "K": "k_mt", "N": "n"}, self.given
        least = [(axis, self.tiling.least[axis]) for axis in axes if axis in tile]
        small = [StagingReason(given[x] < n, f"{x} = {{}} is below {tile[x]} = {n}", given[x]) for x, n in least]
        slabs = f"K = {{}} is no multiple of k_mt = {self.tiling.k_mt} and B is not packed"
        step = store.words(leading * store.run)  # type: ignore[arg-type]
        far = f"ld{name} = {{}} is more than {self.limits.step_max} words, a BD's longest step"
        return [
            *small,
            *self.odd(name),
            StagingReason(step > self.limits.step_max, far, leading),  # type: ignore[operator]
            *([StagingReason(self.a_in_slabs, slabs, self.walked["K"])] if name == "a" else []),
        ]

    def odd(self, name: str) -> list[StagingReason]:
        """Sizes that are no whole granules; each is told only where those before it are."""
        store, axes, granules = self.storage(name), self.axes_of[name], self.tiling.granules
        along = axes[0 if store.order == "column" else 1]
        sizes = [(axis, self.given[axis], granules[axis]) for axis in axes if axis in granules]
        found: list[StagingReason] = []
        for what, value, multiple in (*sizes, (f"ld{name}", self.lines[name], store.granule)):
            lines = "lines" if what in (along, f"ld{name}") else "tiles"
            text = f"{what} = {{}} is no multiple of {multiple}, so that {lines} do not start at whole words"
            odd = ~(value % multiple).equals(0)
            found.append(StagingReason(all_of(odd, *(~other.when for other in found)), text, value))
        return found

    def shape(self, name: str) -> tuple[Expr, Expr]:
        """Rows and columns of what is walked of an operand."""
        rows, columns = (self.walked[axis] for axis in self.axes_of[name])
        if name == "a":
            k_mt = self.tiling.k_mt
            columns = select(self.a_in_slabs, ceildiv(columns, k_mt) * k_mt, columns)
        return rows, columns

    def axes(self, name: str) -> list[tuple[Expr, Expr, Expr | None, bool]]:
        """(positions of the user's, positions walked, slab, whether a slab's zeros stand for what came before)."""
        axes = []
        for axis in self.axes_of[name]:
            slabs = name == "a" and axis == "K" and not self.packed
            tile = select(self.a_in_slabs, self.tiling.k_mt, self.walked["K"]) if slabs else None
            axes.append((self.given[axis], self.walked[axis], tile, slabs))
        return axes

    def dense(self, name: str) -> Expr:
        """Positions of a line without gaps."""
        rows, columns = self.shape(name)
        return rows if self.storage(name).order == "column" else columns

    @property
    def sizes(self) -> tuple[Expr, Expr, Expr]:
        """M, K, N as the shims walk them."""
        return self.walked["M"], self.walked["K"], self.walked["N"]

    @property
    def leading(self) -> tuple[Expr, ...]:
        """lda, ldb, ldc as the shims walk them; of several outputs one each."""
        a, b, *c = (select(self.staged[name], self.dense(name), self.lines[name]) for name in self.axes_of)
        return a, self.build.constant(0) if self.packed else b, *c

    @property
    def elements(self) -> list[Expr]:
        """Memory elements of A, B and C from the first to the last that the shims may touch, whole lines."""
        return [self.extent(name, leading) for name, leading in zip(self.axes_of, self.leading, strict=True)]

    def extent(self, name: str, leading: Expr) -> Expr:
        store, (rows, columns) = self.storage(name), self.shape(name)
        lines = columns if store.order == "column" else rows // store.block
        return lines * leading * store.run

    def require(self, largest_size: int, depth_limit: int) -> None:
        """Refuse sizes out of range, sums that could overflow, and lines that overlap."""
        for axis in "MKN":
            size = self.given[axis]
            outside = any_of(size < 1, size > largest_size)
            self.build.require(~outside, f"{axis} = {{}} is outside 1 to {largest_size}", size)
        K = self.given["K"]
        self.build.require(depth_limit >= K, f"K = {{}} could overflow the sums; at most {depth_limit}", K)
        self.require_columns()
        for name, axes in self.axes_of.items():
            store, leading = self.storage(name), self.lines[name]
            if store.order != "packed":
                axis = axes[0 if store.order == "column" else 1]
                size = axis if axis in ("M", "K", "N") else f"{axis}'s columns"
                text = f"ld{name} = {{}} is below {size} = {{}}; lines would overlap"
                self.build.require(leading >= self.given[axis], text, leading, self.given[axis])

    def require_columns(self) -> None:
        """Refuse another N than the columns of the arrays that take C's."""
        if outputs := self.tiling.outputs:
            total, names = sum(one.columns for one in outputs), listed([one.name for one in outputs])
            text = f"N = {{}} is not {total}, the columns of {names} together"
            self.build.require(self.given["N"].equals(total), text, self.given["N"])
