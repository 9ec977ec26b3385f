"""Mlir: a design spec becomes MLIR.

    env.Mlir(mlir, spec)

In the form of the dialect that the found aiecc reads. Rendered again when that changes, the content of the spec, of a
template or of the planning code, or jinja2.
"""

import sys
from pathlib import Path

import jinja2
import SCons.Errors
from commands import planned, say, short_line, tree_files, write_whole
from SCons.Script import Action, Builder, Value

from bdforge.mlir import Era, MlirError, convert
from bdforge.operators.gemm import SpecError, render
from bdforge.operators.gemm.grid import WalkError

CODE = ("bdforge/design", "bdforge/operators", "bdforge/devices", "bdforge/mlir", "bdforge/txn", "bd_patterns")


def write_mlir(target, source, env):
    """Plan the spec and write its MLIR, whole or not at all."""
    try:
        plan = planned(source[0], env)
        write_whole(Path(target[0].get_abspath()), render(plan, plan.spec.problems, Era(env["DIALECT"])))
    except (SpecError, WalkError, jinja2.TemplateError) as error:
        say(str(error))
        raise SCons.Errors.BuildError(node=target[0], errstr=f"{source[0]} cannot be rendered") from None


def write_form(target, source, env):
    """Write a design in MLIR in the form that the aiecc takes."""
    try:
        text = Path(source[0].get_abspath()).read_text(encoding="utf-8")
        write_whole(Path(target[0].get_abspath()), convert(text, Era(env["DIALECT"]), str(source[0])))
    except (OSError, MlirError) as error:
        say(str(error))
        raise SCons.Errors.BuildError(node=target[0], errstr=f"{source[0]} cannot be taken") from None


def planning_code(env) -> list:
    """Nodes of all that turns a spec into a plan and its streams."""
    return [node for folder in CODE for node in tree_files(env, folder, ".py")]


def depend_on_code(target, source, env):
    """Add what a design's text follows from."""
    templates = tree_files(env, "templates", ".j2")
    env.Depends(target, [*planning_code(env), *templates, Value(f"jinja2 {jinja2.__version__}, Python {sys.version}")])
    return target, source


def generate(env):
    """Add the builder."""
    action = Action(write_mlir, lambda target, source, env: short_line("MLIR", target), varlist=["device", "DIALECT"])
    form = Action(write_form, lambda target, source, env: short_line("FORM", target), varlist=["DIALECT"])
    env["BUILDERS"]["MlirForm"] = Builder(action=form)
    env["BUILDERS"]["Mlir"] = Builder(action=action, emitter=depend_on_code)


def exists(env):
    """Jinja2 is a dependency of bdforge itself."""
    return True
