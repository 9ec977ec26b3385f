"""The NPU by way of pyxrt.

pyxrt skips arguments that it does not understand and crashes on too many, so arity and types are fixed here; a run
whose end was not seen must stay alive, or XRT aborts the process (XRT 2.25).
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bdforge.plan import GemmSequence
from bdforge.plan.sequence import ARGUMENTS
from bdforge.runtime.design import BuildError, BuiltDesign

OPCODE_TRANSACTION = 3  # "run the instruction stream of argument 1"
NAME_PARTS = {
    "npu1": ("npu1", "phoenix", "hawk point"),
    "npu2": ("npu4", "npu5", "npu6", "strix", "krackan"),
}
"""Parts of the names that the driver amdxdna gives to devices, by their array; host/src/device.cpp has the same."""

_ABANDONED: list[Any] = []
"""Runs that timed out, with all that they use."""


class NpuError(RuntimeError):
    """The NPU or its driver refused, failed or did not answer in time."""


class Xrt:
    """A design on the NPU: xclbin and hardware context are loaded once, each size brings its instruction stream."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._pyxrt = _pyxrt()
        self._xclbin = design.image("xclbin")
        self._streams: dict[tuple[int, ...], tuple[Any, int]] = {}
        with _named(f"loading {self._xclbin}"):
            self._device = self._pyxrt.device(0)
            _check_device(design, self._device.get_info(self._pyxrt.xrt_info_device.name))
            xclbin = self._pyxrt.xclbin(str(self._xclbin))
            self._device.register_xclbin(xclbin)
            self._context = self._pyxrt.hw_context(self._device, xclbin.get_uuid())
            self._kernel = self._pyxrt.kernel(self._context, design.manifest.kernel)

    def run(self, planned: GemmSequence, arguments: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        """Run on the NPU; NpuError when it fails or takes longer than `timeout_seconds`."""
        with _named(f"running {planned.problem}"):
            stream, words = self._stream(planned)
            buffers = [self._buffer(array, 3 + i) for i, array in enumerate(arguments)]
            run = self._kernel(OPCODE_TRANSACTION, stream, words, *buffers)
            state = run.wait(int(1000 * timeout_seconds))
        states = self._pyxrt.ert_cmd_state
        if state != states.ERT_CMD_STATE_COMPLETED:
            _ABANDONED.append((run, stream, buffers, self))
            late = state == states.ERT_CMD_STATE_TIMEOUT
            reason = f"did not end within {timeout_seconds:g} s" if late else f"ended as {state}"
            raise NpuError(f"{planned.problem} {reason}; see dmesg, and reload amdxdna if the NPU stays stuck")
        c = ARGUMENTS["C"]
        self._read_back(buffers[c], arguments[c])
        return ()

    def _stream(self, planned: GemmSequence) -> tuple[Any, int]:
        """The instruction stream of a size in the NPU's memory, written once."""
        sizes, problem = planned.sizes, planned.problem
        key = (problem.M, problem.K, problem.N, sizes.lda, sizes.ldb, sizes.ldc)
        if key not in self._streams:
            words = np.ascontiguousarray(planned.words())
            flags, group = self._pyxrt.bo.cacheable, self._kernel.group_id(1)
            self._streams[key] = self._filled(words, flags, group), len(words)
        return self._streams[key]

    def _buffer(self, array: np.ndarray, argument: int) -> Any:
        return self._filled(array, self._pyxrt.bo.host_only, self._kernel.group_id(argument))

    def _filled(self, array: np.ndarray, flags: Any, group: int) -> Any:
        buffer = self._pyxrt.bo(self._device, array.nbytes, flags, group)
        np.frombuffer(buffer.map(), np.uint8)[: array.nbytes] = array.reshape(-1).view(np.uint8)
        buffer.sync(self._pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE)
        return buffer

    def _read_back(self, buffer: Any, array: np.ndarray) -> None:
        buffer.sync(self._pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(buffer.map(), np.uint8)[: array.nbytes]


class _named:  # noqa: N801  reads as a word in `with`
    """Turns pyxrt's RuntimeErrors, which all look alike, into NpuErrors that say what was being done."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, RuntimeError) and not isinstance(error, NpuError):
            text = " ".join(str(error).split())
            raise NpuError(f"{self._what}: {text}; bdforge doctor tells what is missing") from error


def _pyxrt() -> Any:
    try:
        return importlib.import_module("pyxrt")
    except ImportError as error:
        raise NpuError(f"device=xrt needs pyxrt: {error}; bdforge doctor tells how to get it") from None


def _check_device(design: BuiltDesign, name: str) -> None:
    """BuildError when the device called `name` has another array than the design."""
    array = design.plan.device.mlir
    if any(part in name.lower() for part in NAME_PARTS[array]):
        return
    raise BuildError(
        f"{design.folder / 'manifest.json'}: design {design.plan.spec.name} is for device {design.plan.device.name} "
        f'({design.plan.mlir_device}), this one is "{name}"; build it with scons device=...'
    )
