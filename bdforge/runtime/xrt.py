"""The NPU by way of pyxrt.

pyxrt skips arguments that it does not understand and crashes on too many, so arity and types are fixed here; a run
whose end was not seen must stay alive, or XRT aborts the process (XRT 2.25).
"""

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bdforge.common.messages import Fault, warn_once
from bdforge.core.isa.meaning import Approximated
from bdforge.design.manifest import XCLBIN_KERNEL
from bdforge.design.sequences import PlannedSequence
from bdforge.design.sequences.buffers import outputs_of
from bdforge.devices import Device
from bdforge.devices.timing import JOB_TIMEOUT_SECONDS, RUNLIST_COMMANDS_MAX, timing_of
from bdforge.runtime.built_design import BuildError, BuiltDesign
from bdforge.runtime.npu import first_missing
from bdforge.runtime.npu_memory import ResidentBuffers
from bdforge.runtime.npu_runlist import Runlist
from bdforge.runtime.run_queue import ListedRun

OPCODE_TRANSACTION = 3  # "run the instruction stream of argument 1"
NAME_PARTS = {
    "npu1": ("npu1", "phoenix", "hawk point"),
    "npu2": ("npu4", "npu5", "npu6", "strix", "krackan"),
}
"""Parts of the names that the driver amdxdna gives to devices, by their array; host/src/device.cpp has the same."""

SPARE_MAX = 32
"""Buffers that are kept for later runs: a model has four shapes of three arguments, for a prompt and for a token."""
STREAMS_MAX = 256
"""Instruction streams that are kept in the NPU's memory: those of the sizes used last."""
_ABANDONED: list[Any] = []
"""Runs that timed out, with all that they use."""


class StreamRun(NamedTuple):
    """A run of a list: what it is called, its stream, the host arrays of its arguments and which of them it writes."""

    what: str
    stream: tuple[Any, int]
    arguments: Sequence[np.ndarray]
    written: Collection[int]


class NpuError(Fault, RuntimeError):
    """The NPU or its driver refused, failed or did not answer in time."""


class LoadedXclbin:
    """An xclbin in a hardware context of the first NPU, which must have the array called `array` in MLIR.

    `owner` says whose it is when it is not: what must be built for another device. Buffers of runs are kept for the
    next one of their size, since allocating takes milliseconds. One run at a time, whichever threads ask.
    """

    def __init__(self, xclbin: Path, kernel: str, array: str, owner: str):
        self.pyxrt = _pyxrt()
        with _named(f"loading {xclbin}"):
            self._device = self.pyxrt.device(0)
            _check_array(array, owner, self._device.get_info(self.pyxrt.xrt_info_device.name))
            image = self.pyxrt.xclbin(str(xclbin))
            self._device.register_xclbin(image)  # load_xclbin is not supported on NPUs
            self._context = self.pyxrt.hw_context(self._device, image.get_uuid())
            self._kernel = self.pyxrt.kernel(self._context, kernel)
        self.residents = ResidentBuffers(self.pyxrt.xclBOSyncDirection)
        self._spare: dict[tuple[int, int], Any] = {}  # by argument and size, the one used last at the end
        self._lock = Lock()

    def stream(self, words: np.ndarray) -> tuple[Any, int]:
        """An instruction stream in the NPU's memory, and its length."""
        buffer = self.pyxrt.bo(self._device, words.nbytes, self.pyxrt.bo.cacheable, self._kernel.group_id(1))
        return self._filled(np.ascontiguousarray(words), buffer), len(words)

    def run(
        self, what: str, stream: tuple[Any, int], arguments: Sequence[np.ndarray], timeout_seconds: float,
        written: Collection[int],
    ) -> None:  # fmt: skip
        """Run a stream on host arrays; those whose index is in `written` get what the NPU wrote.

        NpuError when it fails or takes longer than `timeout_seconds`.
        """
        with self._lock:
            with _named(f"running {what}"):
                buffers = [self._placed(i, array) for i, array in enumerate(arguments)]
                run = self._kernel(OPCODE_TRANSACTION, *stream, *buffers)
                state = run.wait(int(1000 * timeout_seconds))
            states = self.pyxrt.ert_cmd_state
            if state != states.ERT_CMD_STATE_COMPLETED:
                _ABANDONED.append((run, stream, buffers, self))
                self._spare.clear()  # it may still write to them
                late = state == states.ERT_CMD_STATE_TIMEOUT
                reason = f"did not end within {timeout_seconds:g} s" if late else f"ended as {state}"
                raise NpuError(f"{what} {reason}; see dmesg, and reload amdxdna if the NPU stays stuck")
            for index in written:
                self._read_back(buffers[index], arguments[index])

    def run_list(self, runs: Sequence["StreamRun"]) -> None:
        """Run streams on host arrays as `run`, in order, `RUNLIST_COMMANDS_MAX` of them a submission.

        An array has one buffer in all of them, which is written before the first and read behind the last one.
        NpuError tells the number of the run that failed, or those of its submission where XRT does not tell.
        """
        with self._lock:
            buffers: dict[tuple[int, int], Any] = {}
            with _named("placing the arrays of a list"):
                for i, array in ((i, array) for run in runs for i, array in enumerate(run.arguments)):
                    if (i, id(array)) not in buffers:
                        buffers[i, id(array)] = self._placed(i, array, alone=True)
            for first in range(0, len(runs), RUNLIST_COMMANDS_MAX):
                self._submit(runs, first, buffers)
            arrays = {(i, id(run.arguments[i])): run.arguments[i] for run in runs for i in run.written}
            for key, array in arrays.items():
                self._read_back(buffers[key], array)

    def _submit(self, runs: Sequence["StreamRun"], first: int, buffers: Mapping[tuple[int, int], Any]) -> None:
        """Run those from `first` on that go into one submission."""
        part = runs[first : first + RUNLIST_COMMANDS_MAX]
        what = f"runs {first + 1} to {first + len(part)} of {len(runs)}, {part[0].what}"
        placed = [[buffers[i, id(array)] for i, array in enumerate(run.arguments)] for run in part]
        commands = [(OPCODE_TRANSACTION, *run.stream, *each) for run, each in zip(part, placed, strict=True)]
        with _named(f"preparing {what}"):
            submission = Runlist(self.pyxrt, self._context, self._kernel, commands)
        try:
            submission.run()
        except RuntimeError as error:
            _ABANDONED.append((submission, commands, self))
            self._spare.clear()
            bad, reason = submission.failed(), " ".join(str(error).split())
            one = f"one of {what}" if bad is None else f"run {first + bad[0] + 1} of {len(runs)}, {part[bad[0]].what},"
            ended = "failed" if bad is None else f"ended as {bad[1]}"
            raise NpuError(
                f"{one} {ended}, and those behind it did not run (XRT: {reason}); see dmesg, and reload amdxdna if the "
                "NPU stays stuck"
            ) from error

    def resident(self, argument: int, array: np.ndarray) -> np.ndarray:
        """The array's bytes in the NPU's memory, as an array: runs neither copy nor synchronise it again."""
        with _named("placing what stays from run to run"):
            buffer = self._filled(array, self._new(argument, array.nbytes))
        return self.residents.shown(buffer, array)

    def _placed(self, argument: int, array: np.ndarray, *, alone: bool = False) -> Any:
        """The buffer that an array is, or one that it is copied to, which no other run has when it is `alone`."""
        if (buffer := self.residents.of(array)) is not None:
            return buffer
        return self._filled(array, (self._new if alone else self._buffer)(argument, array.nbytes))

    def _buffer(self, argument: int, size_bytes: int) -> Any:
        """The buffer of an argument of this size, of an earlier run if there is one."""
        key = argument, size_bytes
        buffer = self._spare.pop(key, None) or self._new(argument, size_bytes)
        if len(self._spare) == SPARE_MAX:
            del self._spare[next(iter(self._spare))]
        self._spare[key] = buffer
        return buffer

    def _new(self, argument: int, size_bytes: int) -> Any:
        group = self._kernel.group_id(3 + argument)  # behind opcode, instructions and their count
        return self.pyxrt.bo(self._device, size_bytes, self.pyxrt.bo.host_only, group)

    def _filled(self, array: np.ndarray, buffer: Any) -> Any:
        np.frombuffer(buffer.map(), np.uint8)[: array.nbytes] = array.reshape(-1).view(np.uint8)
        buffer.sync(self.pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE)
        return buffer

    def _read_back(self, buffer: Any, array: np.ndarray) -> None:
        if self.residents.of(array) is not None:
            return
        buffer.sync(self.pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(buffer.map(), np.uint8)[: array.nbytes]


def run_words(
    xclbin: Path, array: str, file: str, words: np.ndarray, arguments: Sequence[np.ndarray],
    timeout_seconds: float = 10.0,
) -> None:  # fmt: skip
    """Run an xclbin of any design on its host arrays, in place; `array` and `words` are of the text in `file`.

    BuildError for a device of another array, NpuError as `LoadedXclbin.run`.
    """
    loaded = LoadedXclbin(xclbin, XCLBIN_KERNEL, array, f"{file}: the design is for {array}")
    loaded.run(xclbin.name, loaded.stream(words), arguments, timeout_seconds, range(len(arguments)))


def difference(
    emulated: Sequence[np.ndarray], measured: Sequence[np.ndarray], approximated: Sequence[Approximated] = ()
) -> str:
    """The first element, bit by bit, that the NPU gave otherwise than the emulated array; "" when there is none.

    Of floats by more than what functions that were `approximated` may be off, together.
    """
    for index, (wanted, got) in enumerate(zip(emulated, measured, strict=True)):
        elements = [array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize) for array in (wanted, got)]
        differs = (elements[0] != elements[1]).any(axis=1)
        if approximated and wanted.dtype.kind in "fV":
            exact, found = (array.reshape(-1).astype(np.float64) for array in (wanted, got))
            differs &= ~(np.abs(found - exact) <= sum(row.allowed(exact) for row in approximated))
        wrong = np.flatnonzero(differs)
        if len(wrong):
            at = int(wrong[0])
            return (
                f"host buffer {index}, element {at} is {got.reshape(-1)[at]} on the NPU and {wanted.reshape(-1)[at]} "
                f"emulated; {len(wrong)} of {wanted.size} elements differ"
            )
    return ""


class Xrt:
    """A design on the NPU: loaded once, each size brings its instruction stream."""

    def __init__(self, design: BuiltDesign):
        owner = f"{design.folder / 'manifest.json'}: design {design.name} is for device {design.device.name}"
        owner += f" ({design.manifest.mlir_device})"
        self._product, self._streams, self._lock = design.device, {}, Lock()
        _pyxrt()  # before the design's files: what is missing first
        self._loaded = LoadedXclbin(design.image("xclbin"), design.manifest.kernel, design.device.mlir, owner)
        self._residents = self._loaded.residents  # which stay readable

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        """Run on the NPU; NpuError when it fails or takes longer than `timeout_seconds`."""
        with _named(f"running {planned.shape}"):
            stream = self._stream(planned)
        self._loaded.run(planned.shape, stream, buffers, timeout_seconds, _written(planned))
        return ()

    def run_list(self, runs: Sequence[ListedRun], timeout_seconds: float) -> tuple[str, ...]:
        """Run them as lists; runs of one shape share their stream. NpuError as of `LoadedXclbin.run_list`."""
        del timeout_seconds  # pyxrt has none for lists, the driver has
        with _named(f"preparing {len(runs)} runs"):
            streams = [StreamRun(one.shape, self._stream(one), buffers, _written(one)) for one, buffers in runs]
        self._loaded.run_list(streams)
        return ()

    def resident(self, argument: int, buffer: np.ndarray) -> np.ndarray:
        """The same bytes where the NPU finds them."""
        return self._loaded.resident(argument, buffer)

    def send(self, buffer: np.ndarray) -> None:
        """Make what the host wrote in such bytes visible to the NPU."""
        with _named("writing what stays from run to run"):
            self._residents.send(buffer)

    def receive(self, buffer: np.ndarray) -> None:
        """Make what the NPU wrote there visible to the host."""
        with _named("reading what stays from run to run"):
            self._residents.receive(buffer)

    def ready(self) -> None:
        """The array is loaded already."""

    def close(self) -> None:
        """Give back the hardware context; arrays that lie in the NPU's memory stay readable."""
        with self._lock:
            self._streams.clear()
            del self._loaded

    def _stream(self, planned: PlannedSequence) -> tuple[Any, int]:
        """The instruction stream of a program's sizes in the NPU's memory, written once.

        The program stays beside, so that its id is its own.
        """
        key = id(planned.program), tuple(planned.parameters[name] for name in planned.program.parameters)
        with self._lock:
            found = self._streams.pop(key, None)
            if found is None:
                warn_of_late(planned, self._product)
                found = planned.program, self._loaded.stream(planned.words())
            while len(self._streams) >= STREAMS_MAX:
                del self._streams[next(iter(self._streams))]
            self._streams[key] = found
            return found[1]


def _written(planned: PlannedSequence) -> set[int]:
    """The arguments in which outputs are: of any design that runs on the array, not of that alone that was loaded."""
    return {operand.argument for operand in outputs_of(planned.program)}


def warn_of_late(planned: PlannedSequence, product: Device) -> None:
    """Tell once of a run that a driver may end before it is done, by what it moves alone."""
    moved = planned.traffic()
    seconds = timing_of(product).port_ns(moved.read_bytes, moved.write_bytes) / 1e9
    if seconds >= JOB_TIMEOUT_SECONDS:
        warn_once(
            f"{planned.shape}: its transfers alone take {seconds:.1f} s (modelled), more than "
            f"{JOB_TIMEOUT_SECONDS:g} s, after which drivers stop a command; split the problem"
        )


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Turns pyxrt's RuntimeErrors into NpuErrors that say what was being done and what this machine lacks.

    "No such device" is all that XRT says of most causes.
    """
    try:
        yield
    except NpuError:
        raise
    except RuntimeError as error:
        text, missing = " ".join(str(error).split()), first_missing()
        reason = f"{missing} (XRT: {text})" if missing else text
        raise NpuError(f"{what}: {reason}; bdforge doctor shows the machine") from error


def _pyxrt() -> Any:
    try:
        return importlib.import_module("pyxrt")
    except ImportError as error:
        reason = first_missing() or f"pyxrt: {error}"
        raise NpuError(f"device=xrt cannot be used: {reason}; bdforge doctor shows the machine") from None


def _check_array(array: str, owner: str, name: str) -> None:
    """BuildError when the device called `name` has another array."""
    whole = array.partition("_")[0]  # npu2_1col is a column of npu2
    if any(part in name.lower() for part in NAME_PARTS[whole]):
        return
    raise BuildError(f'{owner}, this one is "{name}"; build it with scons device=...')
