"""Designs on the emulated array without any sequence in their text: words of one problem after the other run there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bdforge.array.emulator import Result, emulate
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import mlir_device_named
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Patch
from bdforge.operators import Plan, Problem, operator_of, render
from support.built_designs import kernels_of

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class LoadedArray:
    """A plan's array, and what its cores call."""

    plan: Any
    mlir: str
    kernels: Mapping[str, Callable[..., Any]]

    @classmethod
    def of(cls, plan: Plan, kernels: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """With the plan's own kernels, compiled for this host, or others."""
        return cls(plan, render(plan, []), kernels_of(plan) if kernels is None else kernels)

    def problem(self, sizes: Sequence[int]) -> Problem:
        return operator_of(self.plan.spec).problem(sizes)

    def run(
        self, sizes: Sequence[int], inputs: Arrays, words: np.ndarray | None = None, **options: Any
    ) -> tuple[Arrays, Result]:
        """Outputs by name, and the rest of a run of a problem's words, or of others; inputs stay as they were."""
        planned = self.plan.sequence(self.problem(sizes))
        buffers = arguments(planned, placed(planned, inputs))
        before = [buffer.copy() for buffer in buffers]
        words = planned.words() if words is None else words
        result = emulate(self.mlir, buffers, self.kernels, instructions=words, **options)
        assert "timing" in options or result.warnings == ()
        written = {operand.argument for operand in planned.program.operands if operand.direction == "out"}
        kept = [i for i in range(len(buffers)) if i not in written]
        assert all(np.array_equal(buffers[i].view(np.uint8), before[i].view(np.uint8)) for i in kept)
        return fetched(planned, buffers), result

    def run_in_turn(self, problems: Sequence[tuple[Sequence[int], Arrays]], **options: Any) -> list[Arrays]:
        """Outputs of several streams that run as one: cores keep their turns from one problem to the next."""
        sequences, operations, buffers = [], [], []
        for sizes, inputs in problems:
            planned = self.plan.sequence(self.problem(sizes))
            first = len(buffers)
            operations += [
                replace(op, argument=op.argument + first) if isinstance(op, Patch) else op
                for op in planned.operations()
            ]
            buffers += arguments(planned, placed(planned, inputs))
            sequences.append((planned, first))
        words = encode(operations, mlir_device_named(self.plan.mlir_device))
        emulate(self.mlir, buffers, self.kernels, instructions=words, permissive=["buffer-arguments"], **options)
        return [fetched(planned, buffers[first:]) for planned, first in sequences]
