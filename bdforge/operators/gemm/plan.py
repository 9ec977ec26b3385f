"""A GEMM design: a spec becomes a GemmPlan, or every reason why it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from bdforge.design.sequences import PlannedSequence, Program
from bdforge.devices import Device, TileKind
from bdforge.operators.gemm.finish import finish_for
from bdforge.operators.gemm.kernels import Finish, kernel_for
from bdforge.operators.gemm.mapping import MappedGemm, map_gemm, tiling_of
from bdforge.operators.gemm.met_banks import meets
from bdforge.operators.gemm.reference import Reference, by_output, k_steps, random_inputs
from bdforge.operators.gemm.resident import pool_reasons
from bdforge.operators.gemm.resident_program import gemm_program
from bdforge.operators.gemm.sequence import GemmSequence
from bdforge.operators.gemm.spec import AXES, GemmSpec
from bdforge.operators.gemm.spec_check import design_problems, spec_problems
from bdforge.operators.operator_api import Cost, Expected, Kernels, Plan
from bdforge.operators.specs import Problem, refuse


@dataclass(frozen=True, repr=False)
class GemmPlan(MappedGemm, Plan):
    """Every number of a GEMM design."""

    finish: Finish | None

    @property
    def summary(self) -> str:
        """The design in a line: name, types, tile, array."""
        spec, tile = self.spec, self.spec.tile
        types, sizes = f"{spec.a} x {spec.b} -> {spec.c}", f"{tile.m}x{tile.k}x{tile.n}"
        return f"{spec.name}: {types}, tile {sizes} on {spec.rows} x {spec.columns} cores of {self.device.name}"

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any M, K, N."""
        return gemm_program(self)

    @property
    def kernels(self) -> Kernels:
        """What zeroes a tile of C, adds to it and finishes it."""
        spec, finish = self.spec, self.finish
        symbols = (self.kernel.multiply, self.kernel.zero, *((finish.symbol,) if finish else ()))
        defines = [f"DIM_{axis.upper()}={getattr(spec.tile, axis)}" for axis in "mkn"]
        defines += [f"DIM_RHO={spec.buffers.rho}"] if spec.buffers.rho > 1 else []
        defines += ["C_IN_PARTS"] if spec.buffers.c_in_parts else []
        defines += [f"{name.upper()}_TRANSPOSED" for name in self.transposed]
        defines += [f"SHIFT={spec.epilogue.shift}"] if spec.epilogue.shift else []
        defines += [f"ROUNDING={spec.epilogue.rounding}"] if spec.epilogue.rounding != "conv_even" else []
        defines += [f"MEETS={','.join(map(str, self.met))}"] if any(self.met) else []
        return Kernels.ours(symbols, (*defines, *(finish.defines if finish else ())))

    @property
    def met(self) -> tuple[int, ...]:
        """How much A, B and C share the banks of a core, in percent (`met_banks.meets`)."""
        core = next(tile for tile in self.design.tiles if tile.core)
        return meets(self.spec, core, self.device.generation.limits(TileKind.CORE))

    @property
    def transposed(self) -> str:
        """Operands whose micro-tiles cores see transposed: their memory runs across the kernel's rows."""
        layouts = self.spec.layouts
        return "".join(name for name in "abc" if getattr(layouts, name) == "column")

    def note(self, sequence: PlannedSequence) -> str:
        """The product, and what happens at the edges."""
        M, K, N = (sequence.parameters[axis] for axis in AXES)
        edges = GemmSequence.of(self, sequence).edges()
        parts = ", ".join(f"{one.name} ({M} x {one.columns})" for one in self.spec.outputs) or f"C ({M} x {N})"
        if (gate := self.spec.epilogue.gate) != "none":
            return f"{parts} = {gate} (A ({M} x {K}) gate ({K} x {N})) * A up ({K} x {N}), edges: {edges}"
        return f"{parts} = A ({M} x {K}) B ({K} x {N}), edges: {edges}"

    def padding(self, sequence: PlannedSequence) -> str:
        """Sizes that grow to whole tiles, and operands that are staged; packing is no staging."""
        found = GemmSequence.of(self, sequence)
        pairs = zip(AXES, found.problem.sizes.values(), found.processed, strict=True)
        grown = [f"{axis} {size}→{whole}" for axis, size, whole in pairs if size != whole]
        staged = [name for name in "ABC" if getattr(found.staging, name.lower())]
        grown += [f"{' and '.join(staged)} staged"] if staged else []
        return ", ".join(grown) or "none"

    def random(self, problem: Problem, seed: int) -> dict[str, np.ndarray]:
        """A and B over the whole range of integers, floats as small integers; scales and biases as it takes them."""
        return random_inputs(self.spec, problem, seed)

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """C, exact for integers, with a bound for floats; or its columns by output."""
        found = Reference(self.spec, self.kernel, self.tiling).expected(inputs)
        return by_output(found, self.spec.outputs) if self.spec.outputs else {"C": found}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the MACs of cores at the peak of their types; `bdforge.perf` models kernels closer."""
        sequence, tile, (M, K, N) = self.sequence(problem), self.spec.tile, problem.sizes.values()
        panels, columns = -(-M // self.tiling.panel_rows), -(-N // self.tiling.step_columns)
        steps = panels * columns * len(k_steps(self.tiling, K))
        return Cost.of(sequence, M * K * N * self.spec.matrices, steps * tile.m * tile.k * tile.n / self.peak_macs)


@lru_cache(maxsize=64)
def plan_gemm(spec: GemmSpec, device: Device) -> GemmPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    refuse(spec, spec_problems(spec, device))
    kernel = kernel_for(device.generation, spec)
    assert kernel is not None
    design = map_gemm(spec, kernel, device.part(spec.columns))
    refuse(spec, [*pool_reasons(spec, design), *design_problems(design)])
    return GemmPlan(spec, device, kernel, tiling_of(spec), design, finish_for(kernel, spec))
