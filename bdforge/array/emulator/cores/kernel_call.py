"""Calls of kernels: functions that end at once, and generators that ask for locks, cascade and streams."""

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import GeneratorType
from typing import Any, cast

import numpy as np

import bdforge.core.python_kernel
from bdforge.array.emulator.cores.core import EmulatedCore
from bdforge.array.emulator.errors import EmulationError, KernelError
from bdforge.array.emulator.poison import PoisonedView, mark_written
from bdforge.array.emulator.red_zones import kept
from bdforge.common import watched
from bdforge.core.python_kernel import AcquireLock, GetCascade, GetStream, PutCascade, PutStream, ReleaseLock
from bdforge.devices.limits import CASCADE_BITS, CORE_STREAM_PORTS, GRANULE_BYTES

_CASCADE_BYTES = CASCADE_BITS // 8


def waits(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel is a generator function, which may release locks."""
    while isinstance(kernel, partial):
        kernel = kernel.func
    kernel = inspect.unwrap(kernel)
    return inspect.isgeneratorfunction(kernel) or inspect.isgeneratorfunction(type(kernel).__call__)


class KernelCall:
    """The callable behind a func.call: its answer is None, or what `finish` makes the result of."""

    def __init__(self, kernel: Callable[..., Any], core: EmulatedCore, name: str, place: str, returns: bool):
        self._kernel, self._core, self._name, self._place, self._returns = kernel, core, name, place, returns
        self._where = f"{place}: {name} on {core.name}"
        self._note = watched.note_of(self._where)

    def __call__(self, *arguments: Any) -> Any:
        """Begin; KernelError with the place for whatever the kernel raises."""
        core = self._core
        core.note("begin", self._name)
        core.notify("kernel", self._name, arguments)
        views = [a for a in arguments if isinstance(a, PoisonedView)]
        given = [a.view(np.ndarray) if isinstance(a, PoisonedView) else a for a in arguments]
        with self._running(), kept(core.array.tiles, views, self._where):
            returned = self._kernel(*given)
        mark_written(views)
        if inspect.isgenerator(returned):
            return self._drive(cast("GeneratorType[Any, Any, Any]", returned), views)
        core.note("end", self._name)
        if not self._returns and any(isinstance(a, np.ndarray) and returned is a for a in given):
            return None  # numpy's functions return what they were told to write: nothing is lost
        return returned

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Around the kernel's own code: KernelError for whatever it raises, but for Ctrl-C."""
        watched.begin(self._note)
        try:
            yield
        except (KeyboardInterrupt, EmulationError):
            raise
        except BaseException as error:  # exit() and GeneratorExit, too: commands ended without a word
            raise KernelError(f"{self._where}: {watched.described(error)}") from error
        finally:
            watched.end()

    def finish(self, returned: Any) -> Generator[None, None, Any]:
        """Steps of the core that end with the result; KernelError for one that the design does not declare."""
        if inspect.isgenerator(returned):
            returned = yield from cast("GeneratorType[None, None, Any]", returned)
            self._core.note("end", self._name)
        if inspect.iscoroutine(returned):
            returned.close()
            raise KernelError(f"{self._where}: async functions are no kernels; one that waits is a generator function")
        if returned is not None and not self._returns:
            raise KernelError(
                f"{self._where} returned {_short(returned)}, but the design declares it without results; "
                "write into an argument, or declare a result"
            )
        return returned

    def _drive(self, steps: "GeneratorType[Any, Any, Any]", views: list[PoisonedView]) -> Generator[None, None, Any]:
        answer: Any = None
        while True:
            try:
                with self._running(), kept(self._core.array.tiles, views, self._where):
                    ended, request = _sent(steps, answer)
            finally:
                mark_written(views)
            if ended:
                return request
            line = _line(steps)
            where = partial(str, f" ({self._name} at {line}; {self._place})")
            self._core.spend(where)
            try:
                answer = yield from perform(self._core, request, where)
            except (KernelError, ValueError) as error:
                raise KernelError(f"{self._where}: {line}: {error}") from None


def _sent(steps: "GeneratorType[Any, Any, Any]", answer: Any) -> tuple[bool, Any]:
    """Whether a generator has ended, and its next request, or what it returned."""
    try:
        return False, steps.send(answer)
    except StopIteration as stop:
        return True, stop.value


def _line(steps: "GeneratorType[Any, Any, Any]") -> str:
    """File and line where a suspended generator stands, or the innermost one that it delegates to."""
    while inspect.isgenerator(inner := steps.gi_yieldfrom):
        steps = cast("GeneratorType[Any, Any, Any]", inner)
    return f"{Path(steps.gi_code.co_filename).name}:{steps.gi_frame.f_lineno if steps.gi_frame else '?'}"


def _short(value: Any) -> str:
    text = watched.text_of(value)
    return text if len(text) < 80 else f"{text[:76]} ..."


def perform(core: EmulatedCore, request: Any, where: Callable[[], str]) -> Generator[None, None, Any]:
    """Steps of the core that serve a request and end with its answer; KernelError for what is none."""
    match request:
        case AcquireLock(number, value, equal):
            core.check_acquire(value, equal, where)
            if not core.lock(number).take(core, value, equal or value == 0, where):
                yield
        case ReleaseLock(number, value):
            core.releases(core.lock(number))
            core.lock(number).add(value, where, core)
        case GetCascade(dtype):
            if (cascade := core.cascade_in) is None:
                raise KernelError(f"gets from the cascade, but no aie.cascade_flow leads to {core.name}")
            if _CASCADE_BYTES % dtype.itemsize:
                raise KernelError(f"a cascade moves {_CASCADE_BYTES} bytes, no whole number of {dtype}")
            if not cascade.ready(where):
                yield
            return np.frombuffer(cascade.take(), dtype).copy()
        case PutCascade(data):
            if core.cascade_out is None:
                raise KernelError(f"puts on the cascade, but no aie.cascade_flow leads away from {core.name}")
            if len(data) != _CASCADE_BYTES:
                raise KernelError(f"a cascade moves {_CASCADE_BYTES} bytes at a time, not {len(data)}")
            if not core.cascade_out.put(data, where):
                yield
        case GetStream(port, dtype, wait):
            _check_stream(port, dtype.itemsize)
            if not wait and not core.input.held:
                return (yield from _later(core))
            data = yield from core.get_words(1, where)
            return np.frombuffer(data, dtype)[0].item()
        case PutStream(port, data, last, wait):
            _check_stream(port, len(data))
            if not wait and not core.output.room():
                return (yield from _later(core))
            core.pressed = core.pressed or not wait
            yield from core.output.push(np.frombuffer(data, np.uint32), where, last)
            return None if wait else True
        case _:
            known = ", ".join(bdforge.core.python_kernel.__all__)
            raise KernelError(
                f"yielded {_short(request)}; a kernel yields requests of bdforge.core.python_kernel ({known})"
            )
    return None


def _later(core: EmulatedCore) -> Generator[None, None, None]:
    """Nothing now: others run before the core tries again."""
    core.array.scheduler.wake(core)
    yield


def _check_stream(port: int, size: int) -> None:
    if not 0 <= port < CORE_STREAM_PORTS:
        raise KernelError(f"a core has {CORE_STREAM_PORTS} stream port each way; there is no {port}")
    if size != GRANULE_BYTES:
        raise KernelError(f"a stream moves words of {GRANULE_BYTES} bytes, not {size}")
