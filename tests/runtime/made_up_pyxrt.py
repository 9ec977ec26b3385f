"""A made-up pyxrt, whose NPU is the emulated array."""

import types
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.operators import render


class State(Enum):
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5
    ERT_CMD_STATE_ABORT = 6
    ERT_CMD_STATE_TIMEOUT = 8


class Buffer:
    """Host and device each see what was synchronised."""

    host_only, cacheable = "host only", "cacheable"
    made: ClassVar[list[int]] = []

    def __init__(self, device: Any, size: int, flags: str, group: int):
        self.memory, self.flags, self.group, self.device = bytearray(size), flags, group, bytearray(size)
        self.made.append(size)

    def map(self) -> memoryview:
        return memoryview(self.memory)

    def sync(self, direction: str) -> None:
        host, device = memoryview(self.memory), memoryview(self.device)
        to, source = (device, host) if direction == "to device" else (host, device)
        to[:] = source


class Kernel:
    """Runs the stream it is given on the emulated array, as the NPU would."""

    design: ClassVar[Any] = None
    state: ClassVar[State] = State.ERT_CMD_STATE_COMPLETED

    def __init__(self, context: Any, name: str):
        assert name == "MLIR_AIE"

    def group_id(self, argument: int) -> int:
        return 65536 + argument

    def __call__(self, opcode: int, stream: Buffer, words: int, *buffers: Buffer) -> Any:
        assert opcode == 3
        assert stream.flags == Buffer.cacheable
        assert 4 * words == len(stream.device)
        assert [buffer.group for buffer in buffers] == [65539, 65540, 65541]
        arrays = [np.frombuffer(buffer.device, np.uint8) for buffer in buffers]
        instructions = np.frombuffer(stream.device, np.uint32)
        if self.state is State.ERT_CMD_STATE_COMPLETED:
            emulate(render(self.design.plan, []), arrays, self.design.kernels, instructions=instructions)
        return types.SimpleNamespace(wait=lambda milliseconds: self.state)


class Run:
    """A command with arguments by number; `ends` are how the next ones of lists end, well when there are no more."""

    ends: ClassVar[list[State]] = []

    def __init__(self, kernel: Kernel):
        self.kernel, self.given = kernel, {}
        self.ended: State | None = None

    def set_arg(self, index: int, argument: Any) -> None:
        self.given[index] = argument

    def state(self) -> State | None:
        return self.ended


class Runlist:
    """Runs in order until one does not end well; the others are aborted. Real ones promise no states of their runs."""

    lists: ClassVar[list[list[Run]]] = []

    def __init__(self, context: Any):
        self.runs: list[Run] = []

    def add(self, run: Run) -> None:
        self.runs.append(run)

    def execute(self) -> None:
        self.lists.append(self.runs)
        for run in self.runs:
            run.ended = Run.ends.pop(0) if Run.ends else State.ERT_CMD_STATE_COMPLETED
            if run.ended is not State.ERT_CMD_STATE_COMPLETED:
                return
            run.kernel(*(run.given[index] for index in sorted(run.given)))

    def wait(self) -> None:
        if any(run.ended is not State.ERT_CMD_STATE_COMPLETED for run in self.runs):
            raise RuntimeError("runlist failed execution")


class Npu:
    """A device, by its name; holds what was registered."""

    name: ClassVar[str] = "NPU Strix Halo"
    registered: ClassVar[list[str]] = []

    def __init__(self, index: int):
        assert index == 0

    def get_info(self, key: str) -> str:
        assert key == "name"
        return self.name

    def register_xclbin(self, xclbin: Any) -> None:
        self.registered.append(xclbin.path)


def image(path: str) -> Any:
    return types.SimpleNamespace(path=path, get_uuid=lambda: "uuid")
