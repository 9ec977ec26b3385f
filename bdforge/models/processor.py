"""Products on this machine's processor: ternary ones by code that is compiled when it is first needed, or by numpy.

`native/` has the code: the widest integer products that the processor has, on all its threads. `rates` says how long
a product takes here, from a few that are timed once.
"""

import ctypes
import logging
import time
from functools import cache, cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bdforge.common.compilers import COMPILER, compiled, processors
from bdforge.models.errors import ModelError
from bdforge.models.weights import QuantisedRows
from bdforge.models.weights.ggml_blocks import Q8_0
from bdforge.models.weights.matrix import decode

_SOURCE = Path(__file__).parent / "native" / "products.cpp"
_FIELDS, _PANEL = 4, 1024  # codes in a byte; columns, or rows of a table, that numpy unpacks at a time
_LINE = 64  # bytes of the cache's lines, at which weights begin
_EXACT, _LARGEST = 1 << 24, 128  # integers up to there are exact in float32; of codes
_FEW = 16  # rows up to which the table of floats is what takes time
_TURNS = 5  # of a product that is timed
_ZEROS = 0x55  # four codes of weights that are 0
_KINDS = {np.dtype("<f4"): 0, np.dtype("<f2"): 1, np.dtype(ml_dtypes.bfloat16): 2, Q8_0: 3}
_log = logging.getLogger("bdforge.models")


class Numpy:
    """Products by numpy. Objects of this class have no state that changes: any thread may call."""

    name = "numpy"
    _timed: tuple[int, int, int] = (2560, 2048, 1024)  # K, and N for one row and for more, that are timed

    def pack(self, weights: np.ndarray) -> np.ndarray:
        """Ternary weights (int8, K x N) as `scaled` takes them, four to a byte."""
        rows = np.pad(weights + np.int8(1), ((0, -len(weights) % _FIELDS), (0, 0)), constant_values=1).view(np.uint8)
        first, second, third, fourth = np.split(rows, _FIELDS)
        return first | second << 2 | third << 4 | fourth << 6

    def scaled(
        self, packed: np.ndarray, K: int, codes: np.ndarray, rows: np.ndarray, columns: np.ndarray, *, narrow: bool
    ) -> np.ndarray:
        """codes (int8, M x K) @ weights in integers, times a scale for each row and each column: float32 of M x N.

        With `narrow` results are rounded to bfloat16.
        """
        exact = np.float32 if K <= _EXACT // _LARGEST else np.float64
        rows_of_codes, sums = codes.astype(exact), np.empty((len(codes), len(columns)), np.float32)
        for first in range(0, len(columns), _PANEL):
            part = packed[:, first : first + _PANEL]
            weights = np.concatenate([decode(part, 2 * field) for field in range(_FIELDS)])[:K]
            sums[:, first : first + _PANEL] = rows_of_codes @ weights.astype(exact)
        y = sums * rows[:, None] * columns
        return y.astype(ml_dtypes.bfloat16).astype(np.float32) if narrow else y

    def floats(self, x: np.ndarray, table: np.ndarray | QuantisedRows) -> np.ndarray:
        """x (float32, M x K) @ table^T, of N rows of floats: float32 of M x N."""
        out = np.empty((len(x), len(table)), np.float32)
        for first in range(0, len(table), _PANEL):
            rows = slice(first, first + _PANEL)
            out[:, rows] = x @ table[rows].astype(np.float32).T
        return out

    @cached_property
    def rates(self) -> tuple[float, float, float]:
        """Microseconds of any product, of each weight, and of each weight and row. Timed here, in some 0.1 s.

        Few rows wait for weights, of which all that are timed do not fit into caches; many rows wait for products.
        """
        K, N, part = self._timed
        return self._us(1, K, 1), self._us(1, K, N) / (K * N), self._us(_FEW, K, part) / (_FEW * K * part)

    def us(self, M: int, K: int, N: int) -> float:
        """Microseconds that an M x K x N product takes on this machine, by its `rates`."""
        any_, weight, row = self.rates
        return any_ + K * N * max(weight, M * row)

    def _us(self, M: int, K: int, N: int) -> float:
        """The least time of a few products, of weights that are all 0."""
        packed, codes = self._zeros(K, N), np.ones((M, K), np.int8)
        rows, columns, best = np.ones(M, np.float32), np.ones(N, np.float32), float("inf")
        for _ in range(_TURNS):
            start = time.perf_counter()
            self.scaled(packed, K, codes, rows, columns, narrow=True)
            best = min(best, time.perf_counter() - start)
        return best * 1e6

    def _zeros(self, K: int, N: int) -> np.ndarray:
        return np.full((-(-K // _FIELDS), N), _ZEROS, np.uint8)


class Native(Numpy):
    """Products by the library; each runs on all processors of this process."""

    _timed = (2560, 102_400, 10_240)  # 64 MiB of weights: those of a model come from memory

    def __init__(self, library: ctypes.CDLL, kernel: int = 0):
        self._library, self._kernel = library, kernel
        self.name = f"{library.products_kernel(kernel).decode()} on {processors()} threads"

    def pack(self, weights: np.ndarray) -> np.ndarray:
        """Ternary weights (int8, K x N) as `scaled` takes them."""
        packed, weights = self._zeros(*weights.shape), np.ascontiguousarray(weights, np.int8)
        self._library.products_pack(weights, *weights.shape, packed)
        return packed

    def scaled(
        self, packed: np.ndarray, K: int, codes: np.ndarray, rows: np.ndarray, columns: np.ndarray, *, narrow: bool
    ) -> np.ndarray:
        """As numpy's; ModelError without memory for the rows."""
        codes = np.ascontiguousarray(codes, np.int8)
        rows, columns = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(columns, np.float32)
        M, N = len(codes), len(columns)
        out = np.empty((M, N), np.float32)
        if not self._library.products_scaled(self._kernel, packed, codes, M, K, N, rows, columns, narrow, out):
            raise ModelError(f"no memory for a product of {M} x {K} x {N} on the CPU")
        return out

    def floats(self, x: np.ndarray, table: np.ndarray | QuantisedRows) -> np.ndarray:
        """As numpy's, which has more rows and other types."""
        memory = table.blocks if isinstance(table, QuantisedRows) else table
        if len(x) > _FEW or table.dtype not in _KINDS or not memory.flags.c_contiguous:
            return super().floats(x, table)
        x, out = np.ascontiguousarray(x, np.float32), np.empty((len(x), len(table)), np.float32)
        self._library.products_floats(_KINDS[table.dtype], memory.ctypes.data, x, *x.shape, len(table), out)
        return out

    def _zeros(self, K: int, N: int) -> np.ndarray:
        size = self._library.products_packed_bytes(K, N)
        memory = np.full(size + _LINE, _ZEROS, np.uint8)
        return memory[-memory.ctypes.data % _LINE :][:size]


@cache
def processor() -> Numpy:
    """What makes products here: the library with the widest integer products there are; numpy, told once, without a
    C++ compiler."""
    try:
        kernels = natives()
    except ModelError as error:
        _log.warning("products on the CPU are made by numpy, slowly: %s", error)
        return Numpy()
    if not kernels:
        _log.warning("products on the CPU are made by numpy, slowly: there is no C++ compiler %s", COMPILER)
    return kernels[0] if kernels else Numpy()


def natives() -> list[Native]:
    """The library with each of its kernels that run here, the best first; none without a C++ compiler.

    ModelError where it cannot be compiled.
    """
    path = compiled(_SOURCE, ("-pthread",), ModelError)
    if path is None:
        return []
    library = _declared(ctypes.CDLL(str(path)))
    numbers = takewhile(library.products_kernel, count())
    return [Native(library, number) for number in numbers]


def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """Argument and result types of the library's functions."""
    size, whole = ctypes.c_size_t, "C_CONTIGUOUS"
    int8, uint8, float32 = (np.ctypeslib.ndpointer(type_, flags=whole) for type_ in (np.int8, np.uint8, np.float32))
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "products_kernel": (ctypes.c_char_p, [ctypes.c_int]),
        "products_packed_bytes": (size, [size, size]),
        "products_pack": (None, [int8, size, size, uint8]),
        "products_scaled": (
            ctypes.c_bool, [ctypes.c_int, uint8, int8, size, size, size, float32, float32, ctypes.c_bool, float32],
        ),
        "products_floats": (None, [ctypes.c_int, ctypes.c_void_p, float32, size, size, size, float32]),
    }  # fmt: skip
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found
