"""Mlir: a design spec becomes MLIR and manifest.

    env.Mlir([mlir, manifest], spec)

Rendered again when the content of the spec, a template or the planning code changes, or jinja2 does.
"""

import json
import os
import sys
from pathlib import Path

import jinja2
import SCons.Errors
from commands import say, short_line, tree_files
from SCons.Script import Action, Builder, Value

from bd_patterns import WalkError
from bdforge.devices import device_named
from bdforge.plan import SpecError, load_spec, manifest, plan_gemm, render

CODE = ("bdforge/plan", "bdforge/devices", "bdforge/mlir", "bdforge/txn", "bd_patterns")


def write_design(target, source, env):
    """Plan the spec and write MLIR and manifest, each whole or not at all."""
    try:
        spec = load_spec(str(source[0]))
        plan = plan_gemm(spec, device_named(env["device"]))
        texts = [render(plan, spec.problems), json.dumps(manifest(plan, spec.problems), indent=2) + "\n"]
    except (SpecError, WalkError, jinja2.TemplateError) as error:
        say(str(error))
        raise SCons.Errors.BuildError(node=target[0], errstr=f"{source[0]} cannot be rendered") from None
    for node, text in zip(target, texts, strict=True):
        part = Path(f"{node}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, str(node))


def depend_on_code(target, source, env):
    """Add what a design's text follows from."""
    code = [node for folder in CODE for node in tree_files(env, folder, ".py")]
    templates = tree_files(env, "templates", ".j2")
    env.Depends(target, [*code, *templates, Value(f"jinja2 {jinja2.__version__}, Python {sys.version}")])
    return target, source


def generate(env):
    """Add the builder."""
    action = Action(write_design, lambda target, source, env: short_line("MLIR", target), varlist=["device"])
    env["BUILDERS"]["Mlir"] = Builder(action=action, emitter=depend_on_code)


def exists(env):
    """Jinja2 is a dependency of bdforge itself."""
    return True
