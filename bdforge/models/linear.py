"""Linear layers of ternary weights on one array configuration: weights stay packed, any shape runs on what is loaded.

Where a product runs is `Split`'s decision. The CPU computes the same integers, of the same packed weights, and rounds
its results as the array does, so that a split does not change a model.

Designs beside make some matrices' products otherwise: one whose epilogue gates makes a gate's product and up's one
(float32 of half as many columns, scaled behind the gate), one of several outputs gives them as one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np

from bdforge.common.arrays import host_array
from bdforge.models.errors import ModelError
from bdforge.models.split import PLACES, Ledger, Split
from bdforge.models.weights import TernaryMatrix
from bdforge.operators import Plan, plan_of
from bdforge.operators.gemm import GemmSpec
from bdforge.operators.gemm.operands import COLUMN_SCALES, MATRICES
from bdforge.runtime import Loaded, PackedOperands, Prepared, load

_PROBLEMS_MAX = 8  # a model has four shapes, for a prompt and for its last part


@dataclass(slots=True, eq=False)
class TernaryLinear:
    """A matrix, K x N, and a scale (float32) for each of its N columns: `packed` as the array of `by` reads it, and
    `codes` as the CPU does, each where it is wanted."""

    name: str
    shape: tuple[int, int]
    scales: np.ndarray
    packed: PackedOperands | None = None
    codes: np.ndarray | None = None
    by: "Products | None" = None

    @property
    def nbytes(self) -> int:
        """Of all that is packed."""
        buffers = [] if self.packed is None else [*self.packed.buffers.values()]
        return sum(array.nbytes for array in (*buffers, self.codes) if array is not None)


@dataclass
class Products:
    """Products of int8 rows with ternary matrices by one loaded design; each is an entry of the ledger.

    Any thread may call: on the array one product is made at a time.
    """

    loaded: Loaded
    split: Split
    ledger: Ledger = field(default_factory=Ledger)
    _problem: Callable[[int, int, int], Prepared] = field(init=False, repr=False)
    """Memory for products of M, K, N, that of the last few sizes."""
    _on_array: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self._spec = spec = self.split.plan.spec
        if not isinstance(spec, GemmSpec) or (spec.a, spec.b) != ("int8", "int2") or spec.c not in ("bf16", "int32"):
            raise ModelError(
                f"design {self.loaded.design.name} is no GEMM of int8 with int2 to bf16 or int32; "
                "designs/gemm_i8_i2_bf16.toml is one"
            )
        self._scaled, self._rounds_sums = spec.epilogue.scale, spec.c == "bf16" and not spec.epilogue.scale
        if spec.epilogue.relu or spec.epilogue.bias or (self._scaled and spec.c != "bf16"):
            raise ModelError(f"design {self.loaded.design.name}: its epilogue may scale bf16, and do no more")
        loaded = self.loaded
        self._problem = lru_cache(_PROBLEMS_MAX)(lambda M, K, N: loaded.prepared(M=M, K=K, N=N))

    @classmethod
    def of(cls, folder: Path | str, device: str | None = None, rule: str = "estimate") -> "Products":
        """By the design built in a folder; `device` as of `bdforge.load`, `rule` as of `Split`."""
        loaded = load(folder, device)
        made = cls(loaded, Split(plan_of(loaded.design.manifest), rule))
        if made.special:
            raise ModelError(f"design {loaded.design.name} is for some matrices alone; put it behind one for all")
        return made

    @property
    def special(self) -> bool:
        """Whether the design is for some of a model's matrices alone: it gates, or makes several outputs."""
        return self._spec.matrices > 1 or bool(self._spec.outputs)

    def beside(self, loaded: Loaded, plan: Plan) -> "Products":
        """Products by another design, by the same rule and in the same ledger."""
        return Products(loaded, Split(plan, self.split.rule, self.split.processor), self.ledger)

    def resident(self, name: str, matrix: TernaryMatrix) -> TernaryLinear:
        """The matrix, packed for where its products may run by the rule; `name` is what the ledger calls it."""
        rule, named = self.split.rule, f"{name} by {self.loaded.design.name}" if self.special else name
        made = TernaryLinear(named, matrix.shape, matrix.column_scales(), by=self)
        if rule != "cpu":
            made.packed = self.loaded.pack(**self._operands(matrix.weights, made.scales))
        if rule != "array":
            made.codes = self.split.processor.pack(matrix.weights)
        return made

    def _operands(self, weights: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """What the design takes of a matrix, by operand."""
        matrices = self._spec.matrices
        made = dict(zip(MATRICES[matrices], np.split(weights, matrices, axis=1), strict=True))
        if self._scaled:
            made |= zip(COLUMN_SCALES[matrices], np.split(scales, matrices), strict=True)
        return made

    def __call__(self, linear: TernaryLinear, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """codes @ weights, times a scale for each row and for each column: float32 of M x N. Of a gate and up beside
        each other f(gate) * up, M x N / 2, where the array of a design that gates makes it.

        ModelError for codes that are not int8 of M x K, or another number of scales than M.
        """
        if linear.by is not None and linear.by is not self:
            return linear.by(linear, codes, scales)
        K, N = linear.shape
        codes, scales = (host_array(given, linear.name, ModelError) for given in (codes, scales))
        if codes.dtype != np.int8:
            raise ModelError(f"{linear.name}: codes are int8, {codes.dtype} was given; quantise the rows")
        if codes.ndim != 2 or codes.shape[1] != K or scales.shape != codes.shape[:1]:
            raise ModelError(
                f"{linear.name}: codes {codes.shape} and scales {scales.shape}, expected (M, {K}) and (M,)"
            )
        decision = self.split(len(codes), K, N // self._spec.matrices)
        if not decision.array:
            with self.ledger.timed(linear.name, "CPU", decision.why):
                return self._as_array(linear, codes, scales)
        where = PLACES[self.loaded.device]
        with self._on_array, self.ledger.timed(linear.name, where, decision.why, decision.npu_us):
            packed, problem = _of_array(linear), self._problem(len(codes), K, N // self._spec.matrices).take()
            problem.arrays["A"][...] = codes
            if self._scaled:
                problem.arrays["row_scales"][...] = scales
            made = problem(B=packed)
            found = np.concatenate([*made.values()], axis=1) if isinstance(made, dict) else made
            return found.astype(np.float32) if self._scaled else self._factored(found, linear, scales)

    def _factored(self, sums: np.ndarray, linear: TernaryLinear, scales: np.ndarray) -> np.ndarray:
        """Sums times their scales; of a square of the gate times up, whose scale is a factor of that."""
        if self._spec.matrices == 1:
            return sums.astype(np.float32) * scales[:, None] * linear.scales
        gate, up = np.split(linear.scales, 2)
        return sums.astype(np.float32) * (scales * scales * scales)[:, None] * (gate * gate * up)

    def _as_array(self, linear: TernaryLinear, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The product on the CPU, rounded where the design rounds."""
        if not self._rounds_sums:
            return self.on_cpu(linear, codes, scales, narrow=self._scaled)
        ones, (K, _) = np.ones_like(scales), linear.shape
        packed, columns = self.codes_of(linear), np.ones_like(linear.scales)
        sums = self.split.processor.scaled(packed, K, codes, ones, columns, narrow=True)
        return sums * scales[:, None] * linear.scales

    def on_cpu(self, linear: TernaryLinear, codes: np.ndarray, scales: np.ndarray, *, narrow: bool) -> np.ndarray:
        """The product on the CPU whatever the split says, with results in float32, or rounded to bfloat16."""
        packed, (K, _) = self.codes_of(linear), linear.shape
        return self.split.processor.scaled(packed, K, codes, scales, linear.scales, narrow=narrow)

    def codes_of(self, linear: TernaryLinear) -> np.ndarray:
        """The matrix as the CPU reads it, packed now where it was made for the array alone."""
        if linear.codes is None:
            by = linear.by or self
            made = by.loaded.unpack(_of_array(linear))
            weights = [made[name] for name in MATRICES[by._spec.matrices]]
            linear.codes = self.split.processor.pack(np.concatenate(weights, axis=1))
        return linear.codes


def _of_array(linear: TernaryLinear) -> PackedOperands:
    if linear.packed is None:
        raise ModelError(f"{linear.name}: was packed for the CPU alone; load it anew by another rule than cpu")
    return linear.packed
