"""Xclbin: MLIR and its kernel object become an xclbin and the instruction words of each runtime sequence.

    env.Xclbin([xclbin, insts_<sequence>.bin...], [mlir, kernel_object])

aiecc finds the object that `link_with` names beside the MLIR or in its working folder, and keeps its work in
`<mlir>.prj`. The tool `peano` comes first.
"""

from commands import tool_builder, versions
from SCons.Script import GetOption

from bdforge.array.mlir import Era
from bdforge.runtime.toolchain import find_aiecc, find_xrt
from bdforge.runtime.toolchain.aiecc import form_of


def command(target, source, env) -> list[str]:
    """Peano only, no vendor compiler, no host program; as the version of aiecc that was found wants it."""
    aiecc, _, peano = env["AIECC_TOOLS"]
    xclbin, *insts = target
    form = env["AIECC_FORM"]
    pattern = insts[0].dir.File(form.insts_pattern).get_abspath() if insts else None
    return form.command(
        str(aiecc.path or "aiecc"), str(peano.root or ""), source[0].get_abspath(), xclbin.get_abspath(), pattern
    )


def jobs(env) -> list[str]:
    """Cores are compiled by as many threads as SCons has jobs (aiecc's own default is one, later all)."""
    return ["-j", str(GetOption("num_jobs"))]


def needs(env) -> list:
    """The versions of all that takes part."""
    return versions(env["AIECC_TOOLS"])


def generate(env):
    """Find the tools and add the builder."""
    aiecc, xrt = find_aiecc(env["ENV"]), find_xrt(env["ENV"])
    env["AIECC_TOOLS"] = [aiecc, xrt, env["PEANO_TOOLS"][0]]
    env["TOOL_PATH"] = ":".join(str(tool.path.parent) for tool in (aiecc, xrt) if tool.path)  # it calls xclbinutil
    env["AIECC_FORM"] = form = form_of(aiecc, None if env["dialect"] == "auto" else Era(env["dialect"]))
    env["DIALECT"] = str(form.era or Era.MARCH)
    env["BUILDERS"]["Xclbin"] = tool_builder("AIECC", command, needs, True, jobs, form.written_name)


def exists(env):
    """Whether aiecc and xclbinutil are there."""
    return bool(find_aiecc(env["ENV"]) and find_xrt(env["ENV"]))
