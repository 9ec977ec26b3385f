"""Mlir: a design spec becomes MLIR; TemplateMlir: so does one that names a template of the project's own.

    env.Mlir(mlir, spec)
    env.TemplateMlir(mlir, spec)

In the form of the dialect that the found aiecc reads. Rendered again when that changes, the content of the spec, of a
template or of the planning code, or jinja2.
"""

import sys

import jinja2
from commands import planned, sentence, short_line, tree_files
from SCons.Script import Action, Builder, Value

from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import Era, convert
from bdforge.common.files import read_text, write_whole
from bdforge.common.messages import listed
from bdforge.design.template import TemplateError, load_template_spec, render_template
from bdforge.operators import KINDS, render

CODE = (
    "bdforge/design",
    "bdforge/operators",
    "bdforge/devices",
    "bdforge/array/mlir",
    "bdforge/array/txn",
    "bd_patterns",
)


@sentence("rendered")
def write_mlir(target, source, env):
    """Plan the spec and write its MLIR."""
    plan = planned(source[0], env)
    text, dialect = render(plan, plan.problems), Era(env["DIALECT"])
    if plan.spec.kind in KINDS and (faults := verify_design(text, target[0].name).faults):
        raise TemplateError(listed(faults, "\n"))
    write_whole(target[0].get_abspath(), text if dialect is Era.MARCH else convert(text, dialect, plan.spec.name))


@sentence("rendered")
def write_template(target, source, env):
    """Write what the template makes of the spec's values, unless it is no sound design."""
    name = target[0].name
    text = render_template(load_template_spec(source[0].get_abspath()))
    if faults := verify_design(text, name).faults:
        raise TemplateError(listed(faults, "\n"))
    write_whole(target[0].get_abspath(), convert(text, Era(env["DIALECT"]), name))


@sentence("taken")
def write_form(target, source, env):
    """Write a design in MLIR in the form that the aiecc takes."""
    text = read_text(source[0].get_abspath())
    write_whole(target[0].get_abspath(), convert(text, Era(env["DIALECT"]), str(source[0])))


def planning_code(env) -> list:
    """Nodes of all that turns a spec into a plan and its streams."""
    return [node for folder in CODE for node in tree_files(env, folder, ".py")]


def depend_on_code(target, source, env):
    """Add what a design's text follows from."""
    templates = [*tree_files(env, "templates", ".j2", ".mlir"), *tree_files(env, "designs", ".mlir")]
    env.Depends(target, [*planning_code(env), *templates, Value(f"jinja2 {jinja2.__version__}, Python {sys.version}")])
    return target, source


def generate(env):
    """Add the builder."""
    action = Action(write_mlir, lambda target, source, env: short_line("MLIR", target), varlist=["device", "DIALECT"])
    own = Action(write_template, lambda target, source, env: short_line("MLIR", target), varlist=["DIALECT"])
    env["BUILDERS"]["TemplateMlir"] = Builder(action=own, emitter=depend_on_code)
    form = Action(write_form, lambda target, source, env: short_line("FORM", target), varlist=["DIALECT"])
    env["BUILDERS"]["MlirForm"] = Builder(action=form)
    env["BUILDERS"]["Mlir"] = Builder(action=action, emitter=depend_on_code)


def exists(env):
    """Jinja2 is a dependency of bdforge itself."""
    return True
