"""Memory of an NPU that the host sees as arrays."""

import weakref
from typing import Any

import numpy as np


class ResidentBuffers:
    """Buffers by the arrays that show them. They outlive the hardware context of what runs there."""

    def __init__(self, directions: Any):
        """`directions` are pyxrt's, of `sync`."""
        self._directions = directions
        self._buffers: dict[int, Any] = {}

    def shown(self, buffer: Any, array: np.ndarray) -> np.ndarray:
        """A buffer's bytes as an array like another one, which keeps the buffer."""
        made = np.frombuffer(buffer.map(), np.uint8)[: array.nbytes].view(array.dtype)
        self._buffers[id(made)] = buffer
        weakref.finalize(made, self._buffers.pop, id(made), None)
        return made

    def __len__(self) -> int:
        return len(self._buffers)

    def of(self, array: np.ndarray) -> Any | None:
        """The buffer that an array shows; None: it is other memory."""
        return self._buffers.get(id(array))

    def send(self, array: np.ndarray) -> None:
        """Make what the host wrote visible to the NPU."""
        self._buffers[id(array)].sync(self._directions.XCL_BO_SYNC_BO_TO_DEVICE)

    def receive(self, array: np.ndarray) -> None:
        """Make what the NPU wrote visible to the host."""
        self._buffers[id(array)].sync(self._directions.XCL_BO_SYNC_BO_FROM_DEVICE)
