"""A GEMM design: a spec becomes a Plan, or every reason why it cannot."""

from dataclasses import dataclass, replace

from bdforge.design.model import Design
from bdforge.devices import Device
from bdforge.operators.gemm.check import design_problems, spec_problems
from bdforge.operators.gemm.core_tiles import RTP_K_STEPS, RTP_OUTPUT_TILES, GemmCore, core_of, object_file
from bdforge.operators.gemm.finish import finish_for
from bdforge.operators.gemm.grid import Tiling
from bdforge.operators.gemm.kernels import Finish, Kernel, kernel_for
from bdforge.operators.gemm.mapping import map_gemm, tiling_of
from bdforge.operators.gemm.spec import GemmSpec, SequenceOptions, SpecError

__all__ = ["RTP_K_STEPS", "RTP_OUTPUT_TILES", "Plan", "plan_gemm"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every number of a GEMM design."""

    spec: GemmSpec
    device: Device
    kernel: Kernel
    finish: Finish | None
    tiling: Tiling
    array: Design
    cores: tuple[GemmCore, ...]

    def __repr__(self) -> str:
        return f"<Plan {self.summary}>"

    @property
    def summary(self) -> str:
        """The design in a line: name, types, tile, array."""
        spec, tile = self.spec, self.spec.tile
        types, sizes = f"{spec.a} x {spec.b} -> {spec.c}", f"{tile.m}x{tile.k}x{tile.n}"
        return f"{spec.name}: {types}, tile {sizes} on {spec.rows} x {spec.columns} cores of {self.device.name}"

    def waiting(self, options: SequenceOptions) -> "Plan":
        """The same array, whose sequences wait as `options` say."""
        return replace(self, spec=replace(self.spec, sequence=options))

    @property
    def link_with(self) -> str:
        """Object file that holds all kernels."""
        return object_file(self.spec)

    @property
    def mlir_device(self) -> str:
        """The array as MLIR names it."""
        return self.array.device

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Symbols that a core calls."""
        return (self.kernel.multiply, self.kernel.zero, *((self.finish.symbol,) if self.finish else ()))

    @property
    def kernel_sources(self) -> tuple[str, ...]:
        """Source files of the kernels, relative to the project."""
        return tuple(f"kernels/{name}.cc" for name in self.kernel_names)

    @property
    def kernel_defines(self) -> tuple[str, ...]:
        """Macros with which all sources are compiled."""
        spec = self.spec
        sizes = [f"DIM_{axis.upper()}={getattr(spec.tile, axis)}" for axis in "mkn"]
        parts = [f"DIM_RHO={spec.buffers.rho}"] if spec.buffers.rho > 1 else []
        turned = [f"{name.upper()}_TRANSPOSED" for name in self.transposed]
        return (*sizes, *parts, *turned, *self.epilogue_defines)

    @property
    def host_defines(self) -> tuple[str, ...]:
        """`kernel_defines`, and what compilers for the array define by themselves."""
        return (*self.kernel_defines, f"__AIE_ARCH__={self.kernel.generation.compiler_architecture}")

    @property
    def epilogue_defines(self) -> tuple[str, ...]:
        """Macros of shifts, rounding and the epilogue."""
        epilogue = self.spec.epilogue
        shift = [f"SHIFT={epilogue.shift}"] if epilogue.shift else []
        rounding = [f"ROUNDING={epilogue.rounding}"] if epilogue.rounding != "conv_even" else []
        return (*shift, *rounding, *(self.finish.defines if self.finish else ()))

    @property
    def transposed(self) -> str:
        """Operands whose micro-tiles cores see transposed: their memory runs across the kernel's rows."""
        layouts = self.spec.layouts
        return "".join(name for name in "abc" if getattr(layouts, name) == "column")


def plan_gemm(spec: GemmSpec, device: Device) -> Plan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    if reasons := spec_problems(spec, device):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    kernel = kernel_for(device.generation, spec)
    assert kernel is not None
    mlir_device = device.mlir if spec.columns == device.columns else f"{device.mlir}_{spec.columns}col"
    design = map_gemm(spec, kernel, mlir_device)
    if reasons := design_problems(design):
        raise SpecError("\n".join(f"{spec.name}: {reason}" for reason in reasons))
    cores = tuple(core_of(tile) for tile in design.tiles if tile.core)
    return Plan(spec, device, kernel, finish_for(kernel, spec), tiling_of(spec), design, cores)
