"""What SConstruct's choices mean: checked at the top, each fault one sentence and exit code 2."""

import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import SCons.Errors
from SCons.Script import (
    ARGUMENTS,
    COMMAND_LINE_TARGETS,
    BoolVariable,
    EnumVariable,
    Environment,
    GetOption,
    Help,
    Variables,
)

from bdforge.devices import DEVICES, Device
from bdforge.plan import GemmSpec, Plan, SpecError, load_spec, plan_gemm
from bdforge.plan.kernels import KERNELS
from bdforge.toolchain import Tool, missing_report

TARGETS = """
Targets (none: all):
  all      everything for the device, the xclbin too; needs Peano, aiecc and XRT's xclbinutil
  host     what emulation needs: MLIR, manifest and host-compiled kernels
  emulate  host, then the design's problems on the emulated array
  cpp      the C++ library, bdforge-gemm and their package files, with the XRT that xrt= names
  install  cpp, below prefix=
  -c       removes everything that was built
"""


def stop(message: str) -> NoReturn:
    """End SCons with exit code 2 and a message, without a traceback."""
    sys.stdout.flush()
    sys.stderr.write(f"scons: {message}\n")
    raise SystemExit(2)


def variables(designs: list[str]) -> Variables:
    """Every choice, from local.conf or the command line, with its default and what it may be."""
    choices = Variables("local.conf", ARGUMENTS)
    choices.AddVariables(
        EnumVariable("device", "NPU to build for", "strix_halo", list(DEVICES)),
        ("design", f"designs to build, separated by commas (all|{'|'.join(designs)})", "all"),
        ("cxx", "C++ compiler of the host-compiled kernels (a name or a path)", "g++"),
        BoolVariable("native", "compile host kernels for this machine's processor only", True),
        BoolVariable("verbose", "print whole commands", False),
        ("build", "folder for everything that is built (a path)", "build"),
        ("xrt", "XRT that the C++ library is built with (auto|none|a prefix)", "auto"),
        ("sanitize", "sanitizers for the C++ library, separated by commas (address,undefined), empty for none", ""),
        ("prefix", "where install puts the C++ library (a path)", "/usr/local"),
        ("cache", "folder that keeps results for other builds, empty for none (a path)", ""),
    )
    return choices


def environment(choices: Variables, **settings) -> Environment:
    """The construction environment; also prints --help. Stops at a variable or value that does not exist."""
    _check_local_conf(Path("local.conf"))
    try:
        env = Environment(variables=choices, **settings)
    except SCons.Errors.UserError as error:
        stop(" ".join(str(error).split()))
    Help(choices.GenerateHelpText(env) + TARGETS)
    for name in choices.UnknownVariables():
        near = difflib.get_close_matches(name, choices.keys(), 1)
        stop(f"unknown variable {name!r}{f', did you mean {near[0]!r}?' if near else ';'} 'scons --help' lists all.")
    return env


def _check_local_conf(path: Path) -> None:
    """SCons executes the file; what it raises would come as a traceback."""
    if not path.exists():
        return
    try:
        exec(compile(path.read_text(), str(path), "exec"), {})
    except Exception as error:  # whatever the user's Python raises
        stop(f"{path} cannot be read: {type(error).__name__}: {error}.")


def describing_only() -> bool:
    """Whether nothing will be built, so that nothing can be missing."""
    return bool(GetOption("help") or GetOption("clean"))


def chosen_plans(wanted: str, files: dict[str, Path], device: Device) -> list[Plan]:
    """Plans of the designs called for; stops when a name is unknown, a spec is faulty or nothing fits the device."""
    names = list(files) if wanted == "all" else [name.strip() for name in wanted.split(",")]
    for name in names:
        if name not in files:
            stop(f"unknown design {name!r}; there is {', '.join(['all', *files])}.")
    try:
        specs = [load_spec(files[name]) for name in dict.fromkeys(names)]
        fitting = [spec for spec in specs if _fits(spec, device)]
        if not describing_only() and (not fitting or (wanted != "all" and len(fitting) < len(specs))):
            stop(_misfit(specs, fitting, device))
        return [plan_gemm(spec, device) for spec in fitting]
    except SpecError as error:
        stop(str(error))


def _fits(spec: GemmSpec, device: Device) -> bool:
    """Whether the spec's kernel is for the device's cores; other misfits are faults of the spec."""
    kernel = KERNELS.get((spec.a, spec.b, spec.c))
    return kernel is None or kernel.generation is device.generation


def _misfit(specs: list[GemmSpec], fitting: list[GemmSpec], device: Device) -> str:
    misfits = [spec for spec in specs if spec not in fitting]
    names = ", ".join(spec.name for spec in misfits) or "designs/ is empty"
    others = [other.name for other in DEVICES.values() if any(_fits(spec, other) for spec in misfits)]
    return f"no design for device={device.name} ({device.generation.name}) yet: {names} needs {' or '.join(others)}."


def stop_without(tools: Iterable[Tool], device: Device) -> None:
    """Stop when tools are missing: all of them in one message, before any work."""
    if report := missing_report(tools):
        stop(
            f"device={device.name} needs tools that are not there:\n{report}\n"
            f"'scons device={device.name} emulate' needs none of them."
        )


def asks_for(nodes: list) -> bool:
    """Whether the targets of this call include any of `nodes`: by default, as all, by path or by a folder above."""
    paths = [Path(node.get_abspath()) for node in nodes]
    named = [Path(target).absolute() for target in map(str, COMMAND_LINE_TARGETS) if target not in ("host", "emulate")]
    return (
        not COMMAND_LINE_TARGETS
        or "all" in COMMAND_LINE_TARGETS
        or any(path.is_relative_to(name) for path in paths for name in named)
    )
