"""What one core can do: stream and compute bounds, efficiencies. Pure functions of sizes.

Sizes m, k, n are those of a core's tile in elements, a, b, c the bytes of an element, times are in array cycles.
Source: *S0* Taka et al.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


def stream_in_cycles(m: int, k: int, n: int, a: float, b: float, stream_bytes: float) -> float:
    """Cycles to bring a step's A and B: max(m·k·a, k·n·b) / stream bytes per cycle; each has its own channel (S0)."""
    return np.maximum(m * k * a, k * n * b) / stream_bytes


def stream_out_cycles(m: int, n: int, c: float, stream_bytes: float) -> float:
    """Cycles to send a tile of C: m·n·c / stream bytes per cycle (S0)."""
    return m * n * c / stream_bytes


@dataclass(frozen=True, slots=True)
class CoreCycles:
    """Cycles of a core for one tile of C: `steps` times the slowest of kernel and streams, its ends, the drain of C.

    Numbers, or arrays for many designs.
    """

    steps: Any
    kernel: Any  # one step, with its switch overhead
    stream_in: Any  # one step
    drain: Any  # one tile, while the core waits
    ends: Any = 0.0  # one tile: zeroing C before the first step, finishing it after the last

    @property
    def step(self) -> Any:
        """Cycles from one step to the next."""
        return np.maximum(self.kernel, self.stream_in)

    @property
    def tile(self) -> Any:
        """Cycles of one tile of C."""
        return self.steps * self.step + self.ends + self.drain

    @property
    def compute(self) -> Any:
        """Cycles of one tile of C if streams were free."""
        return self.steps * self.kernel + self.ends

    @property
    def computes(self) -> Any:
        """Whether kernels limit the core, not streams: A and B on their way, or C."""
        return (self.kernel >= self.stream_in) & (self.compute >= self.drain)

    @property
    def bound(self) -> str:
        """What limits the core: "compute", or "L1 stream" when it mostly waits for A and B to come or C to leave."""
        return "compute" if self.computes else "L1 stream"


def core_cycles(
    m: Any, k: Any, n: Any, a: float, b: float, c: float, *,
    depth: Any, kernel: Any, overhead: Any, stream_bytes: float, resume: float = 0.0, c_buffers: Any = 1,
    ends: Any = 0.0, c_parts: Any = 1,
) -> CoreCycles:  # fmt: skip
    """A core's cycles for one tile of C over `depth` (K, padded), `ends` those of zeroing and finishing it.

    A and B are double-buffered, so a step takes max(kernel + overhead, stream in) (S0, the DMA constraint). A single
    buffer of C makes the core wait m·n·c / stream + `resume` at the end of each tile; with two, C leaves during the
    next tile and binds only when it takes longer than that tile. In p parts C leaves from the end of the last step's
    first part until the next tile wants the last one, all but one part of both steps.
    """
    steps, out = depth / k, stream_out_cycles(m, n, c, stream_bytes)
    step, stream = kernel + overhead, stream_in_cycles(m, k, n, a, b, stream_bytes)
    hidden = np.maximum(0.0, out - steps * np.maximum(step, stream) - ends)
    beside = 2 * (1 - 1 / np.asarray(c_parts)) * np.maximum(step, stream)
    drain = np.where(np.asarray(c_buffers) == 1, np.maximum(out + resume - beside, 0.0), hidden)[()]
    return CoreCycles(steps, step, stream, drain, ends)
