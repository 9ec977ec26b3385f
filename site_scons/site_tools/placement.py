"""Placement: where aiecc put a design's buffers, held against its text.

    env.Placement(placement.json, [xclbin, mlir, spec])

Reads `<mlir>.prj`, aiecc's working folder, after the xclbin is there. A buffer elsewhere than in the text ends the
build, since hosts would write their parameters to what lies there instead; without the manifest, which waits for this,
they refuse the xclbin.
"""

import json
from pathlib import Path

import SCons.Errors
from commands import planned, say, sentence, short_line
from jinja_mlir import planning_code
from SCons.Script import Action, Builder

import bdforge.runtime.toolchain.read_back
from bdforge.common.files import write_whole
from bdforge.runtime.toolchain.read_back import PROGRAMS, TEXTS, differences, read_back


@sentence("written")
def write_placement(target, source, env):
    """Read, compare, and say what confirmed the addresses."""
    plan, work = planned(source[2], env), Path(f"{source[1].get_abspath()}.prj")
    found = read_back(work, plan.design)
    if found is None:
        say(
            f"{target[0]}: where aiecc put the buffers cannot be read back: {work} holds neither {TEXTS} nor "
            f"{PROGRAMS} with their names; compare the addresses of a core's parameters by hand"
        )
    elif moved := differences(found, plan.design):
        say(f"{source[1]}: {found.source} differs from the text:\n{moved}")
        raise SCons.Errors.BuildError(
            node=target[0],
            errstr="aiecc moved buffers, so that hosts would write parameters elsewhere; it must keep the addresses of "
            'tiles with allocation_scheme = "basic-sequential" (docs/strix_halo.md names versions that do)',
        )
    facts = {
        "read_back": found.source if found else "",
        "buffers": found.buffers if found else plan.design.buffer_addresses,
    }
    write_whole(target[0].get_abspath(), json.dumps(facts, indent=2) + "\n")


def depend(target, source, env):
    """Add the code that knows the addresses and that reads them."""
    env.Depends(target, [*planning_code(env), env.File(bdforge.runtime.toolchain.read_back.__file__)])
    return target, source


def generate(env):
    """Add the builder."""
    action = Action(write_placement, lambda target, source, env: short_line("PLACEMENT", target), varlist=["device"])
    env["BUILDERS"]["Placement"] = Builder(action=action, emitter=depend)


def exists(env):
    """Nothing but bdforge is needed."""
    return True
