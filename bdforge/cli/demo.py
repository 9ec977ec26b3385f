"""`bdforge demo`: the flagship from its spec to checked results, with what a wheel has: no compiler, no files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import typer

from bdforge.array.emulator import EmulationError, emulate
from bdforge.array.emulator.verification import verify_design
from bdforge.cli.options import DEFAULT_PRODUCT, ProductName, print_warnings
from bdforge.cli.progress import emulating
from bdforge.common.messages import listed
from bdforge.common.screen import say, screen
from bdforge.common.tree import tree
from bdforge.core.exact.engine_build import library
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import Device, device_named
from bdforge.operators import load_spec, render
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSpec, SpecError, plan_gemm
from bdforge.perf import estimate
from bdforge.perf.bounds.case import case_of
from bdforge.runtime import first_mismatch
from bdforge.runtime.toolchain.assembled import BuiltImage, built_image, cpp_only

app = typer.Typer()

DESIGN = "gemm_i8_i2_bitnet"
LAYER = GemmProblem(256, 2560, 640)
"""Attention's keys of BitNet-b1.58-2B-4T, for a prompt of 256 tokens."""
SMALL, SMALL_TILE = GemmProblem(64, 256, 256), (16, 64, 32)
"""Where machine code is interpreted by Python, a few thousand bundles a second: seconds instead of minutes."""
NEXT = """\
Next, in this order:
  bdforge new mine                          # a project of your own, two designs
  bdforge show mine/designs/transpose.toml  # tiles, locks, buffers, streams
  bdforge estimate mine/designs/gemm.toml   # how fast it would be, and why"""


@app.command(name="demo")
def demo_command(device: ProductName = DEFAULT_PRODUCT) -> None:
    """Plan, check, assemble and run BitNet's GEMM on the emulated array; compare every element with numpy."""
    product, compiled = device_named(device), library() is not None
    plan, problem = _planned(product, small=not compiled), LAYER if compiled else SMALL
    say(f"int8 activations x ternary weights, {problem}, for {product.name}: no NPU needed")
    with _step("design") as told:
        text = render(plan, [problem])
        tile = plan.spec.tile
        told.append(
            f"{len(text.splitlines()):,} lines of MLIR: {_cores(plan)} cores, tiles {tile.m} x {tile.k} x {tile.n}"
        )
    with _step("checks") as told:
        told.append(_checked(text))
    with _step("programs") as told:
        image = _assembled(plan, text, problem)
        told.append(f"machine code for {len(image.programs)} cores, an image of {len(image.xclbin):,} bytes")
    with _step("emulated") as told:
        told.append(_run(plan, problem, image))
    say(_modelled(product))
    say(NEXT)


def _planned(product: Device, *, small: bool) -> GemmPlan:
    spec = load_spec(tree() / "designs" / f"{DESIGN}.toml")
    assert isinstance(spec, GemmSpec)
    spec = replace(spec, columns=min(spec.columns, product.columns))
    m, k, n = SMALL_TILE
    return plan_gemm(replace(spec, tile=replace(spec.tile, m=m, k=k, n=n)) if small else spec, product)


@contextmanager
def _step(name: str) -> Iterator[list[str]]:
    """A line of what was done, and of the seconds that it took on this machine."""
    start, told = time.perf_counter(), list[str]()
    yield told
    say(f"  {name:9}{', '.join(told)} ({time.perf_counter() - start:.1f} s)")


def _cores(plan: GemmPlan) -> int:
    return plan.spec.rows * plan.spec.columns


def _checked(text: str) -> str:
    """What the design has, all of which was checked."""
    found = verify_design(text, f"{DESIGN}'s MLIR")
    if found.faults:
        raise SpecError(listed(found.faults, "\n"))
    has = (part for part in found.summary.split(", ") if part.endswith(("buffers", "locks", "flows", "BDs")))
    return f"{', '.join(has)}: no fault"


def _assembled(plan: GemmPlan, text: str, problem: GemmProblem) -> BuiltImage:
    """The image, with machine code in every core; SpecError where kernels have none for this array."""
    kernels = plan.kernels
    if missing := cpp_only(kernels.symbols, plan.device.generation, kernels.defines):
        name, why = next(iter(missing.items()))
        raise SpecError(
            f"bdforge has no machine code of {name} for {plan.device.name} ({why}); choose another --device"
        )
    return built_image(text, f"{DESIGN}'s MLIR", kernels.defines, [problem.sequence])


def _run(plan: GemmPlan, problem: GemmProblem, image: BuiltImage) -> str:
    """Run the image on random operands; EmulationError when an element is not numpy's."""
    inputs, sequence = plan.random(problem, seed=0), plan.sequence(problem)
    buffers = arguments(sequence, placed(sequence, inputs))
    with emulating(str(problem), screen(stderr=True)):
        result = emulate("", buffers, instructions=image.streams[problem.sequence], image=image.xclbin)
    print_warnings(result.warnings)
    (name, got), bundles = next(iter(fetched(sequence, buffers).items())), sum(core.bundles for core in result.cores)
    if wrong := first_mismatch(got, plan.expected(inputs, {name: got})[name].values, name=name):
        raise EmulationError(f"{DESIGN}: {wrong}; please report it")
    return f"{bundles:,} bundles; all {got.size:,} elements equal numpy's"


def _modelled(product: Device) -> str:
    """The time of the layer on silicon, whatever was run here."""
    found = estimate(case_of(_planned(product, small=False).spec, product, LAYER))
    time_us, tops = f"{found.time_us:.0f} us", f"{found.tops:.1f} TOPS"
    return f"  {'silicon':9}{LAYER}: {time_us}, {tops} (modelled), bound: {found.bound}"
