"""FullElf: an xclbin's array configuration and the streams of a spec's problems become one ELF.

    env.FullElf(elf, [xclbin, spec])

xclbinutil takes the configuration out, aiebu-asm puts all together; both work in `<elf>.prj`. The tool `aiecc` comes
first.
"""

import shlex
from pathlib import Path

import SCons.Errors
from commands import planned, say, short_line, versions
from jinja_mlir import planning_code
from SCons.Script import Action, Builder

from bdforge.runtime.toolchain import ToolError, find_aiebu
from bdforge.runtime.toolchain.full_elf import ElfTools, write_full_elf


def tools_of(env) -> ElfTools:
    """The two commands."""
    return ElfTools([env["AIECC_TOOLS"][1].path or "xclbinutil"], [env["AIEBU"].path or "aiebu-asm"])


def build(target, source, env):
    """Make the ELF whole, or not at all."""
    try:
        plan = planned(source[1], env)
        xclbin, elf = (Path(node.get_abspath()) for node in (source[0], target[0]))
        sequences = {problem.sequence: plan.sequence(problem) for problem in plan.problems}
        write_full_elf(sequences, xclbin, elf, tools_of(env), dict(env["ENV"]))
    except ToolError as error:
        say(error.output)
        raise SCons.Errors.BuildError(node=target[0], errstr=str(error)) from None


def line(target, source, env) -> str:
    """Both commands when they are asked for."""
    if not env["verbose"]:
        return short_line("ELF", target)
    tools = tools_of(env)
    return "\n".join(shlex.join(map(str, words)) for words in (tools.dump(source[0]), tools.assemble(target[0])))


def depend(target, source, env):
    """Add the tools' versions, and the code that makes the streams."""
    env.Depends(target, [*versions([env["AIECC_TOOLS"][1], env["AIEBU"]]), *planning_code(env)])
    env.Clean(target, env.Dir(f"{target[0]}.prj"))
    return target, source


def generate(env):
    """Find aiebu-asm and add the builder."""
    env["AIEBU"] = find_aiebu(env["ENV"])
    env["BUILDERS"]["FullElf"] = Builder(action=Action(build, line, varlist=["device"]), emitter=depend)


def exists(env):
    """Whether aiebu-asm is there."""
    return bool(find_aiebu(env["ENV"]))
