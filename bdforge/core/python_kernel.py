"""What a kernel written in Python may ask of its core, as compiled kernels do: locks, cascade, streams.

A kernel that waits is a generator function. It yields requests; a yield ends when the core goes on, with the value that
was asked for:

    from bdforge.core.python_kernel import acquire, get_cascade, put_stream, release

    def add(tile, full, empty):
        yield acquire(full)
        above = yield get_cascade(np.int32)
        tile[:16] += above
        yield put_stream(0, tile[0])
        yield release(empty)

Locks are numbers as the core counts them: 0 to 15 those of the tile to the south, 16 to 31 west, 32 to 47 north, 48 to
63 its own. An `aie.lock` that is passed to a kernel arrives as that number.
"""

from dataclasses import dataclass

import numpy as np

from bdforge.common.arrays import host_array
from bdforge.common.messages import InputError

__all__ = ["acquire", "acquire_equal", "get_cascade", "get_stream", "put_cascade", "put_stream", "release"]


class Request:
    """Something that a kernel waits for, or does where others see it."""


@dataclass(frozen=True, slots=True)
class AcquireLock(Request):
    """Wait for a lock and lower it by `value`."""

    lock: int
    value: int
    equal: bool


@dataclass(frozen=True, slots=True)
class ReleaseLock(Request):
    """Raise a lock by `value`."""

    lock: int
    value: int


@dataclass(frozen=True, slots=True)
class GetCascade(Request):
    """The next 512 bits of the cascade, as elements of `dtype`."""

    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class PutCascade(Request):
    """512 bits for the next core."""

    data: bytes


@dataclass(frozen=True, slots=True)
class GetStream(Request):
    """The next word of a stream port, as a number of `dtype`; without `wait` None if none is there."""

    port: int
    dtype: np.dtype
    wait: bool = True


@dataclass(frozen=True, slots=True)
class PutStream(Request):
    """A word for a stream port; `last` ends a packet (TLAST). Without `wait` the answer is whether it went."""

    port: int
    data: bytes
    last: bool
    wait: bool = True


def acquire(lock: int, value: int = 1) -> AcquireLock:
    """Wait until the lock is at least `value`, then lower it by as much."""
    return AcquireLock(int(lock), int(value), False)


def acquire_equal(lock: int, value: int) -> AcquireLock:
    """Wait until the lock is exactly `value`, then set it to 0."""
    return AcquireLock(int(lock), int(value), True)


def release(lock: int, value: int = 1) -> ReleaseLock:
    """Raise the lock by `value`."""
    return ReleaseLock(int(lock), int(value))


def get_cascade(dtype: np.typing.DTypeLike = np.int32) -> GetCascade:
    """Ask for the next value of the cascade: an array of 64 bytes."""
    return GetCascade(np.dtype(dtype))


def put_cascade(value: np.ndarray | bytes) -> PutCascade:
    """Hand a value of 64 bytes to the core behind this one; InputError for an array of other things than numbers."""
    if isinstance(value, bytes | bytearray):
        return PutCascade(bytes(value))
    return PutCascade(host_array(np.asarray(value), "a value of the cascade", InputError).tobytes())


def get_stream(port: int = 0, dtype: np.typing.DTypeLike = np.int32) -> GetStream:
    """Ask for the next word of a stream: a number of `dtype`, of 4 bytes."""
    return GetStream(int(port), np.dtype(dtype))


def put_stream(port: int, word: int | float | np.generic, last: bool = False) -> PutStream:
    """Send a word: an integer of 32 bits, a float (as float32), or a numpy number of 4 bytes; `last` is TLAST.

    ValueError for a word that is no 32 bits, or no number.
    """
    return PutStream(int(port), _word(word), last)


def _word(word: int | float | np.generic) -> bytes:
    if isinstance(word, np.generic) and word.nbytes == 4:
        return host_array(np.asarray(word), "a word of a stream", InputError).tobytes()
    if isinstance(word, float | np.floating):
        return np.float32(word).tobytes()
    if isinstance(word, int | np.integer) and -(1 << 31) <= word < 1 << 32:
        return (int(word) & 0xFFFFFFFF).to_bytes(4, "little")
    raise ValueError(f"{word!r} is no word of 32 bits")
