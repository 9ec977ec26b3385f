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
    GetLaunchDir,
    GetOption,
    Help,
    Variables,
)

from bdforge.array.mlir import Era
from bdforge.common.messages import InputError, clip
from bdforge.core.codegen.kernels.kernel_options import LOOPS
from bdforge.design.template import TemplateError, TemplateSpec, is_template, load_template_spec
from bdforge.devices import DEVICES, Device
from bdforge.operators import Plan, Spec, WrittenSpec, load_spec, operator_of, plan
from bdforge.runtime.composition import is_composition, load_composition
from bdforge.runtime.toolchain import Tool, missing_report

DEFAULT_DESIGNS = ("gemm_i8_i2_bitnet", "gemm_bf16_bf16_f32_64x64x32")
"""What is built when no design is named: the first that is for the device."""

SPECS = (".toml", ".py")
"""Endings of files that are designs; other words are names of those in designs/."""

Composed = tuple[Path, list[str]]
"""A composition: its file, and the names of what has to be built before it."""
Own = tuple[Path, TemplateSpec]
"""A design of the project's own: its file, and what it says."""

TARGETS = """
Targets (none: all):
  all      everything for the device, the xclbin too (format=elf: needs aiebu-asm; toolchain=aiecc: Peano, aiecc, XRT)
  host     what emulation needs: MLIR, manifest and host-compiled kernels
  emulate  host, then the design's problems on the emulated array
  cpp      the C++ library, bdforge-run and their package files, with the XRT that xrt= names
  ggml     libggml-bdforge.so, a backend for llama.cpp and others, and bdforge-generate (needs libggml-dev)
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
        (
            "design",
            f"designs to build, or specs, separated by commas (default|all|{'|'.join(designs)})",
            "default",
        ),
        EnumVariable("format", "what the NPU loads", "xclbin", ["xclbin", "elf"]),
        EnumVariable(
            "toolchain", "what makes xclbins: auto is aiecc where it is found", "auto", ["auto", "aiecc", "bdforge"]
        ),
        EnumVariable(
            "kernels",
            "kernels of cores: cpp by Peano, asm by bdforge, auto: asm with toolchain=bdforge, if it exists",
            "auto",
            ["auto", "cpp", "asm"],
        ),
        EnumVariable("loops", "what ends loops of kernels that bdforge assembles", LOOPS[0], LOOPS),
        EnumVariable("dialect", "form of the MLIR: auto is what aiecc reads", "auto", ["auto", *Era]),
        ("cxx", "C++ compiler of the host-compiled kernels (a name or a path)", "g++"),
        EnumVariable("kernel_opt", "-O of Peano; 1 for releases that make wrong code at 2", "2", ["1", "2", "3", "s"]),
        BoolVariable("native", "compile host kernels for this machine's processor only", True),
        BoolVariable("verbose", "print whole commands", False),
        ("build", "folder for everything that is built (a path)", "build"),
        ("xrt", "XRT that the C++ library is built with (auto|none|a prefix)", "auto"),
        ("ggml", "ggml that 'scons ggml' builds against (auto|the prefix above its include/ggml-backend.h)", "auto"),
        ("sanitize", "sanitizers for the C++ library, separated by commas (address,undefined), empty for none", ""),
        BoolVariable("optimise", "compile the C++ library for speed; tests compile three times as fast without", True),
        ("prefix", "where install puts the C++ library (a path)", "/usr/local"),
        ("libdir", "folder of libraries below prefix, such as lib/x86_64-linux-gnu (a path)", "lib"),
        ("destdir", "folder below which install puts prefix, for who makes packages (a path)", ""),
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


def compositions(wanted: str) -> tuple[dict[str, Composed], str]:
    """Compositions whose files are called for, by name; and `wanted` with their steps' designs in their place, by file
    where one lies beside the composition. Stops at a faulty one."""
    found: dict[str, Composed] = {}
    rest: list[str] = []
    try:
        for name in (word.strip() for word in wanted.split(",")):
            if not is_composition(path := Path(name)):
                rest.append(name)
                continue
            form = load_composition(path)
            steps = {step.design: path.with_name(f"{step.design}.toml") for step in form.steps}
            rest += [str(file) if file.is_file() else step for step, file in steps.items()]
            found[path.stem] = path, [*steps, *([form.loaded] if form.loaded else [])]
    except InputError as error:
        stop(str(error))
    return found, ",".join(dict.fromkeys(rest))


def own_designs(wanted: str, files: dict[str, Path], device: Device) -> tuple[dict[str, Own], str]:
    """Designs of the project's own templates that are called for, and what of `wanted` is left for operators' designs.

    `files` loses those that are for templates. Stops at an unknown name, a faulty spec, or one for another device.
    """
    all_of_them = wanted in ("default", "all")
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    given = {} if all_of_them else {Path(name).stem: Path(name) for name in names if name.endswith(SPECS)}
    known = {name: path for name, path in (files | given).items() if is_template(path)}
    called = {Path(name).stem if name.endswith(SPECS) else name for name in names}
    if unknown := [] if all_of_them else sorted(called - (files | given).keys()):
        stop(f"unknown design {unknown[0]!r}; there is {', '.join(['default', 'all', *files])}.")
    for name in known:
        files.pop(name, None)
    try:
        chosen = {n: (path, load_template_spec(path)) for n, path in known.items() if all_of_them or n in called}
    except TemplateError as error:
        stop(str(error))
    misfits = [name for name, (_, spec) in chosen.items() if not spec.fits(device)]
    if misfits and not (all_of_them or describing_only()):
        stop(f"device={device.name} is an {device.mlir}; {misfits[0]} is for {chosen[misfits[0]][1].array}.")
    rest = [name for name in names if Path(name).stem not in known] if files or not chosen else []
    return {name: own for name, own in chosen.items() if name not in misfits}, ",".join(rest)


def chosen_plans(wanted: str, files: dict[str, Path], device: Device) -> list[Plan]:
    """Plans of operators' designs that are called for; stops when a spec is faulty or nothing fits the device.

    "default" is the first of DEFAULT_DESIGNS that is for the device (in projects that have none of them: as "all"),
    "all" every design that is. Paths of specs are taken too, and stand in `files` afterwards.
    """
    if not wanted:
        return []
    preferred = [name for name in DEFAULT_DESIGNS if name in files]
    several = {"default": preferred or list(files), "all": list(files)}
    names = several.get(wanted) or [name.strip() for name in wanted.split(",")]
    files |= {Path(name).stem: Path(name) for name in names if name.endswith(SPECS)}
    names = [Path(name).stem if name.endswith(SPECS) else name for name in names]
    try:
        specs = [load_spec(files[name]) for name in dict.fromkeys(names)]
        if other := [spec for spec in specs if isinstance(spec, WrittenSpec) and spec.made.name != spec.name]:
            name, wanted = other[0].made.name, other[0].name
            stop(f"{files[wanted]}: name = {clip(name)!r}, but what is built has its file's; write name = {wanted!r}.")
        fitting = [spec for spec in specs if operator_of(spec).fits(spec, device)]
        if not describing_only() and (not fitting or (wanted not in several and len(fitting) < len(specs))):
            stop(_misfit(specs, fitting, device))
        return [plan(spec, device) for spec in (fitting[:1] if preferred and wanted == "default" else fitting)]
    except InputError as error:
        stop(str(error))


def _misfit(specs: list[Spec], fitting: list[Spec], device: Device) -> str:
    misfits = [spec for spec in specs if spec not in fitting]
    names = ", ".join(spec.name for spec in misfits) or "designs/ is empty"
    others = [other.name for other in DEVICES.values() if any(operator_of(spec).fits(spec, other) for spec in misfits)]
    what = "no design" if not fitting else "not every design is"
    return f"{what} for device={device.name} ({device.generation.name}): {names} needs {' or '.join(others)}."


def stop_without(tools: Iterable[Tool], device: Device) -> None:
    """Stop when tools are missing: all of them in one message, before any work."""
    if report := missing_report(tools):
        stop(
            f"device={device.name} needs tools that are not there:\n{report}\n"
            f"'scons device={device.name} emulate' needs none of them."
        )


def stop_without_problems(plans: list[Plan]) -> None:
    """Stop when a full ELF would be empty: it holds the streams of its design's problems and can run no others."""
    for one in plans:
        if not one.problems:
            name = one.spec.name
            stop(f"format=elf: designs/{name}.toml names no problems, a full ELF runs no others; add [[problems]].")


def stop_at_unknown_targets(known: Iterable[str], designs: Iterable[str]) -> None:
    """Stop at a target that is neither an alias nor a path, when it is a design or looks like an alias."""
    names = sorted(known)
    for target in map(str, COMMAND_LINE_TARGETS):
        if target in names or "/" in target or Path(GetLaunchDir(), target).exists():
            continue
        if target in designs:
            stop(f"{target!r} is a design, not a target; choose it with design={target}.")
        if near := difflib.get_close_matches(target, names, 1):
            stop(f"unknown target {target!r}, did you mean {near[0]!r}? 'scons --help' lists all.")


def asks_for(nodes: list, of_all: bool = True) -> bool:
    """Whether the targets of this call include any of `nodes`: by default and as all if they are `of_all`, by path or
    by a folder above."""
    paths = [Path(node.get_abspath()) for node in nodes]
    named = [Path(GetLaunchDir(), name) for name in map(str, COMMAND_LINE_TARGETS) if name not in ("host", "emulate")]
    return (
        (of_all and not COMMAND_LINE_TARGETS)
        or (of_all and "all" in COMMAND_LINE_TARGETS)
        or any(path.is_relative_to(name) for path in paths for name in named)
    )
