"""Functions whose bits are published in part or not at all: exponentials, tanh, reciprocals and roots.

VEXP2 is known where its number is below 2: 2^n (1 + f) for a number n + f of 7 bits behind the point, which a number
beyond -2 reaches from its eight leading bits, with ones behind them (a public dump on [-40, 10], whose errors are those
that AMD measured on AIE2P below 0). The others are approximations. Whoever runs a program chooses what becomes of them
(`Approximation`); `data/approximations.csv` says of each function how far a result may be off, which numbers it is told
of, and its range: a measured table is a row there and an operation here.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np

from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning.semantics import Partly, joined, lanes, open_if, operation, signed

_COUNT, _SMALLEST = 16, float(np.finfo(np.float32).tiny)
_BIAS, _FRACTION = 127, 7  # of bf16
_KNOWN_BELOW, _LAST_EXPONENT = 1, -126
_SIGNIFICAND, _INFINITE = 24, 255
_MOST_SCALE = 31


class Approximation(IntEnum):
    """What becomes of an approximation: it stops a core, or gives the nearest value or one at a bound of its error."""

    OFF = 0
    NEAREST = 1
    LOW = 2
    HIGH = 3


@dataclass(frozen=True, slots=True)
class Approximated:
    """How far results of a function may be off, by `absolute` and `relative` of them, for numbers from `low` to `high`.

    They stay from `least` to `greatest`.
    """

    function: str
    form: str
    absolute: float
    relative: float
    low: float
    high: float
    least: float
    greatest: float

    @property
    def reason(self) -> str:
        """Why a result may be otherwise, for a warning."""
        parts = [f"{self.absolute:.2g}"] * bool(self.absolute) + [f"{self.relative:.2g} of it"] * bool(self.relative)
        return f"{self.form}, |e| <= {' + '.join(parts)}, bits unpublished"

    def allowed(self, values: np.ndarray) -> np.ndarray:
        """How far each of some results may be off."""
        return self.absolute + self.relative * np.abs(values)

    def bounded(self, value: float, how: int) -> float:
        """The value, or that at the lower or upper bound of its error."""
        error = float(self.allowed(np.array(value)))
        error *= (how == Approximation.HIGH) - (how == Approximation.LOW)
        return min(max(value + error, self.least), self.greatest)


@cache
def approximated() -> tuple[Approximated, ...]:
    """All functions, in the order of their numbers."""
    return tuple(
        Approximated(row["function"], row["form"], *(float(row[name]) for name in list(row)[2:]))
        for row in rows("approximations")
    )


_TANH, _EXP2, *_SCALARS = range(5)
_FUNCTIONS = (math.tanh, math.exp2, lambda x: 1 / x, math.sqrt, lambda x: 1 / math.sqrt(x))


_NOT_ALLOWED = "is an approximation here, whose bits are not published"


def is_approximation(error: Exception) -> bool:
    """Whether a core stopped at an approximation that may be allowed."""
    return str(error).endswith(_NOT_ALLOWED)


def _check_told(which: int, how: int) -> None:
    open_if(not how, f"{approximated()[which].form} {_NOT_ALLOWED}")


@operation("exp2")
def exp2(_: tuple[int, ...], source: int, how: int) -> int | Partly:
    """bf16 powers of two of 16 fp32 numbers."""
    words = lanes(source, 32, _COUNT)
    found = [_power(word, how) for word in words]
    assumed = (approximated()[_EXP2].reason,) if any(map(_is_approximate, words)) else ()
    return Partly(joined(found, 16), 0, assumed) if assumed else joined(found, 16)


def _is_approximate(word: int) -> bool:
    """Whether a number is one of those of which nobody told the bits."""
    value = float(np.uint32(word).view(np.float32))
    return value >= 1 << _KNOWN_BELOW or value < _LAST_EXPONENT


def _power(word: int, how: int) -> int:
    """2^x; its bits are n + f in 128ths with the exponent's bias."""
    exponent, negative = (word >> 23 & _INFINITE) - _BIAS, word >> 31
    value = float(np.uint32(word).view(np.float32))
    open_if(not value < approximated()[_EXP2].high, "a power of two of no number, or beyond 128, is open")
    if _is_approximate(word):
        _check_told(_EXP2, how)
    if value < _LAST_EXPONENT:
        return 1 << _FRACTION if how == Approximation.HIGH else 0
    significand = (word & 0x7FFFFF | (exponent != -_BIAS) << 23) * (-1 if negative else 1)
    if exponent < _KNOWN_BELOW:
        return (significand >> min(23 - _FRACTION - exponent, _SIGNIFICAND)) + (_BIAS << _FRACTION)
    ones = 0 if how == Approximation.LOW and not negative else (1 << exponent) - 1
    return ((significand >> 23 - _FRACTION) << exponent) + ones + (_BIAS << _FRACTION)


@operation("tanh")
def tanh(_: tuple[int, ...], source: int, how: int) -> Partly:
    """bf16 hyperbolic tangents of 16 fp32 numbers."""
    _check_told(_TANH, how)
    row = approximated()[_TANH]
    values = np.array(lanes(source, 32, _COUNT), np.uint32).view(np.float32).tolist()
    open_if(not all(row.low <= value <= row.high for value in values), "a hyperbolic tangent of no number is open")
    found = [_nearest_bf16(row.bounded(math.tanh(value), how)) for value in values]
    return Partly(joined(found, 16), 0, (row.reason,))


def _nearest_bf16(value: float) -> int:
    """bf16 of a value in fp32's range, to nearest even; of what fp32 makes of it."""
    word = int(np.float32(value).view(np.uint32))
    return word + 0x7FFF + (word >> 16 & 1) >> 16


@operation("approximate")
def approximate(options: tuple[int, ...], source: int, up: int, down: int, how: int) -> Partly:
    """A function of an fp32 number; options: (number of the function, whether of an integer, whether to an integer).

    An integer has `up` bits behind the point, a result `down`; [assumption] it is rounded to nearest even.
    """
    which, of_integer, to_integer = options
    _check_told(which, how)
    row = approximated()[which]
    scales = up * of_integer, down * to_integer
    open_if(max(scales) > _MOST_SCALE, f"a scale by {max(scales)} is open: known are 0 to {_MOST_SCALE}")
    value = float(np.float32(math.ldexp(signed(source, 32), -up))) if of_integer else _float(source)
    open_if(not row.low <= value <= row.high, f"{row.form} is open but of positive normal numbers")
    made = row.bounded(_FUNCTIONS[which](value), how)
    if to_integer:
        whole = round(math.ldexp(made, down))
        open_if(not -(1 << 31) <= whole < 1 << 31, "floats beyond the range of integers are open")
        return Partly(whole & 0xFFFFFFFF, 0, (row.reason,))
    open_if(made < _SMALLEST, f"{row.form} that gives no normal number is open")
    return Partly(int(np.float32(made).view(np.uint32)), 0, (row.reason,))


def _float(word: int) -> float:
    return float(np.uint32(word).view(np.float32))
