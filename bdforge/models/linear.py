"""Linear layers of ternary weights on one array configuration: weights stay packed, any shape runs on what is loaded.

Where a product runs is `Split`'s decision. The CPU computes the same integers, of the same packed weights, and rounds
its results as the array does, so that a split does not change a model.
"""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np

from bdforge.arrays import host_array
from bdforge.devices.types import TYPES
from bdforge.models.errors import ModelError
from bdforge.models.split import Ledger, Split
from bdforge.operators import plan_of
from bdforge.operators.gemm import GemmSpec
from bdforge.operators.gemm.reference import product
from bdforge.runtime import Loaded, Packed, Prepared, load
from bdforge.weights import TernaryMatrix

_KEPT_BYTES = 64 << 20  # of weights that the CPU has unpacked; the others are unpacked for each product
_PROBLEMS_MAX = 8  # a model has four shapes, for a prompt and for its last part
_PLACES = {"emulated": "emulated array", "xrt": "NPU"}


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A matrix K x N as the array reads it, and a scale (float32) for each of its N columns."""

    name: str
    packed: Packed
    scales: np.ndarray


@dataclass
class Products:
    """Products of int8 rows with ternary matrices by one loaded design; each is an entry of the ledger.

    Any thread may call: on the array one product is made at a time.
    """

    loaded: Loaded
    split: Split
    ledger: Ledger = field(default_factory=Ledger)
    _problems: dict[tuple[int, int, int], Prepared] = field(default_factory=dict, repr=False)
    _unpacked: dict[Linear, np.ndarray] = field(default_factory=dict, repr=False)
    _on_array: Lock = field(default_factory=Lock, repr=False)
    _on_cpu: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        spec = self.split.plan.spec
        if not isinstance(spec, GemmSpec) or (spec.a, spec.b) != ("int8", "int2") or spec.c not in ("bf16", "int32"):
            raise ModelError(
                f"design {self.loaded.design.name} is no GEMM of int8 with int2 to bf16 or int32; "
                "designs/gemm_i8_i2_bf16.toml is one"
            )
        self._scaled, self._dtype = spec.epilogue.scale, TYPES[spec.c].dtype
        if spec.epilogue.relu or spec.epilogue.bias or self._scaled != (spec.c == "bf16"):
            raise ModelError(f"design {self.loaded.design.name}: its epilogue must scale bf16, and do no more")

    @classmethod
    def of(cls, folder: Path | str, device: str | None = None, rule: str = "estimate") -> "Products":
        """By the design built in a folder; `device` as of `bdforge.load`, `rule` as of `Split`."""
        loaded = load(folder, device)
        return cls(loaded, Split(plan_of(loaded.design.manifest), rule))

    def resident(self, name: str, matrix: TernaryMatrix) -> Linear:
        """The matrix, packed for the array; `name` is what the ledger calls it."""
        scales = matrix.column_scales()
        more = {"column_scales": scales} if self._scaled else {}
        return Linear(name, self.loaded.pack(B=matrix.weights, **more), scales)

    def __call__(self, linear: Linear, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """codes @ weights, times a scale for each row and for each column: float32 of M x N.

        ModelError for codes other than int8.
        """
        codes, scales = (host_array(given, linear.name, ModelError) for given in (codes, scales))
        if codes.dtype != np.int8:
            raise ModelError(f"{linear.name}: codes are int8, {codes.dtype} was given; quantise the rows")
        K, N = linear.packed.sizes.values()
        decision = self.split(len(codes), K, N)
        if not decision.array:
            with self.ledger.timed(linear.name, "CPU", decision.why):
                return self._rounded(linear, self._sums_on_cpu(linear, codes), scales)
        where = _PLACES[self.loaded.device]
        with self._on_array, self.ledger.timed(linear.name, where, decision.why, decision.npu_us):
            problem = self._problem(len(codes), K, N).take()
            problem.arrays["A"][...] = codes
            if self._scaled:
                problem.arrays["row_scales"][...] = scales
                return problem(B=linear.packed).astype(np.float32)
            return self._rounded(linear, problem(B=linear.packed), scales)

    def _problem(self, M: int, K: int, N: int) -> Prepared:
        """Memory for products of these sizes, that of the last few sizes."""
        found = self._problems.pop((M, K, N), None) or self.loaded.prepared(M=M, K=K, N=N)
        if len(self._problems) == _PROBLEMS_MAX:
            del self._problems[next(iter(self._problems))]
        self._problems[M, K, N] = found
        return found

    def _sums_on_cpu(self, linear: Linear, codes: np.ndarray) -> np.ndarray:
        return product(codes, self._weights(linear))

    def _rounded(self, linear: Linear, sums: np.ndarray, scales: np.ndarray) -> np.ndarray:
        y = sums.astype(np.float32) * scales[:, None] * linear.scales
        return y.astype(self._dtype).astype(np.float32) if self._scaled else y

    def _weights(self, linear: Linear) -> np.ndarray:
        """int8 of K x N; kept while there is room."""
        with self._on_cpu:
            if (known := self._unpacked.get(linear)) is not None:
                return known
            found = self.loaded.unpack(linear.packed)["B"]
            if sum(array.nbytes for array in self._unpacked.values()) + found.nbytes <= _KEPT_BYTES:
                self._unpacked[linear] = found
            return found
