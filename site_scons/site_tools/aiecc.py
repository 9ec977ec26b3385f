"""Xclbin: MLIR and its kernel object become an xclbin and the instruction words of each runtime sequence.

    env.Xclbin([xclbin, insts_<sequence>.bin...], [mlir, kernel_object])

aiecc finds the object that `link_with` names beside the MLIR or in its working folder, and keeps its work in
`<mlir>.prj`. The tool `peano` comes first.
"""

from commands import tool_builder, versions

from bdforge.toolchain import find_aiecc, find_xrt

INSTS = "insts_{1}.bin"  # aiecc puts the name of each runtime sequence in the place of {1}


def command(target, source, env) -> list[str]:
    """Peano only, no vendor compiler, no host program."""
    aiecc, _, peano = env["AIECC_TOOLS"]
    xclbin, *insts = target
    mlir = source[0].get_abspath()
    words = [
        str(aiecc.path or "aiecc"), "--no-xchesscc", "--no-xbridge", "--peano", str(peano.root or ""),
        "--no-compile-host", f"--tmpdir={mlir}.prj", "--aie-generate-xclbin", f"--xclbin-name={xclbin.get_abspath()}",
    ]  # fmt: skip
    if insts:
        words += ["--aie-generate-npu-insts", f"--npu-insts-name={insts[0].dir.File(INSTS).get_abspath()}"]
    return [*words, mlir]


def needs(env) -> list:
    """The versions of all that takes part."""
    return versions(env["AIECC_TOOLS"])


def generate(env):
    """Find the tools and add the builder."""
    aiecc, xrt = find_aiecc(env["ENV"]), find_xrt(env["ENV"])
    env["AIECC_TOOLS"] = [aiecc, xrt, env["PEANO_TOOLS"][0]]
    env["TOOL_PATH"] = ":".join(str(tool.path.parent) for tool in (aiecc, xrt) if tool.path)  # it calls xclbinutil
    env["BUILDERS"]["Xclbin"] = tool_builder("AIECC", command, needs, beside_target=True)


def exists(env):
    """Whether aiecc and xclbinutil are there."""
    return bool(find_aiecc(env["ENV"]) and find_xrt(env["ENV"]))
