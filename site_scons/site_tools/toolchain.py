"""Images and what made them: AssembledXclbin needs no compiler, Toolchain tells of a build by aiecc.

    env.AssembledXclbin([xclbin, toolchain.json, insts_<sequence>.bin...], [mlir, objects...],
                        KERNEL_MACROS=[...], KERNELS=[...])
    env.Toolchain(toolchain.json, xclbin)

Cores run programs that bdforge makes of their bodies, linked with kernels that it assembles, or of objects. An xclbin
whose name ends in .emulated.xclbin may lack some; it is never one for silicon.
"""

import json
from pathlib import Path

from choices import stop
from commands import say, sentence, short_line, tree_files, versions
from SCons.Script import Action, Builder

from bdforge.common.files import read_text, write_whole
from bdforge.common.messages import InputError
from bdforge.core.codegen.objects import linkable
from bdforge.design.manifest import OWN_TOOLCHAIN
from bdforge.devices import device_named
from bdforge.runtime.toolchain.assembled import built_image, cpp_only, for_emulation_only, toolchain_facts

EMULATED = ".emulated.xclbin"
CODE = (
    "bdforge/core/codegen", "bdforge/core/isa", "bdforge/array/core_bodies", "bdforge/array/lower",
    "bdforge/array/images", "bdforge/array/routing", "bdforge/array/mlir", "bdforge/array/txn", "bdforge/devices",
    "bdforge/runtime/toolchain", )  # fmt: skip


@sentence("built")
def write_image(target, source, env):
    """Write the xclbin, what made it, and the instruction words."""
    xclbin, facts, *insts = (Path(node.get_abspath()) for node in target)
    names = [path.stem.removeprefix("insts_") for path in insts]
    text = read_text(source[0].get_abspath())
    image = built_image(
        text,
        str(source[0]),
        [*env["KERNEL_MACROS"], f"LOOPS={env['loops']}"],
        names,
        _given(source[1:], env),
        env["CODE_AT_END"],
    )
    if xclbin.name.endswith(EMULATED):
        without = cpp_only(env["KERNELS"], device_named(env["device"]).generation, env["KERNEL_MACROS"])
        say(f"{for_emulation_only(str(target[0]), without)}.")
    elif image.without:
        raise InputError(f"{source[0]}: {next(iter(image.without.values()))}")
    write_whole(xclbin, image.xclbin)
    for path, name in zip(insts, names, strict=True):
        write_whole(path, image.streams[name])
    write_whole(facts, json.dumps(toolchain_facts(OWN_TOOLCHAIN, [], image.without), indent=2) + "\n")


def _given(objects, env) -> dict:
    """Kernels of objects by name: all with kernels=cpp, else those that have no machine code."""
    generation, wanted = device_named(env["device"]).generation, env["KERNELS"]
    if env["kernels"] != "cpp":
        wanted = cpp_only(wanted, generation, env["KERNEL_MACROS"]) if objects else ()
    found = {n: k for o in objects for n, k in linkable(Path(o.get_abspath()), generation.name.lower()).items()}
    if missing := sorted(set(wanted) - found.keys()):
        raise InputError(f"{', '.join(map(str, objects))}: no function {missing[0]}, which the cores call")
    return {name: found[name] for name in wanted}


@sentence("written")
def write_facts(target, source, env):
    """Write which tools made an xclbin."""
    tools = [*env["AIECC_TOOLS"], *env["PEANO_TOOLS"][1:]]
    write_whole(target[0].get_abspath(), json.dumps(toolchain_facts("aiecc", tools), indent=2) + "\n")


def assembled(env, kernels, macros) -> bool:
    """Whether all kernels have machine code."""
    return not cpp_only(kernels, device_named(env["device"]).generation, macros)


def compiled(env, kernels, macros) -> bool:
    """Whether cores link objects of Peano: by aiecc always, else with kernels=cpp and for what is not assembled."""
    if env["TOOLCHAIN"] == "aiecc" or env["kernels"] == "cpp":
        return True
    lacking = cpp_only(kernels, device_named(env["device"]).generation, macros)
    if lacking and env["kernels"] == "asm":
        stop(f"kernels=asm, but {next(iter(lacking.values()))}.")
    return bool(lacking and env["PEANO_TOOLS"][0].path)


def code(env) -> list:
    """Nodes of all that makes an image."""
    return [node for folder in CODE for node in tree_files(env, folder, ".py", ".csv")]


def depend(target, source, env):
    """Add the code, and its tables."""
    env.Depends(target, code(env))
    return target, source


def depend_on_tools(target, source, env):
    """Add the tools' versions, and the code that tells of them."""
    env.Depends(target, [*code(env), *versions(env["AIECC_TOOLS"])])
    return target, source


def generate(env):
    """Choose the toolchain and add the builders."""
    chosen, asm = env["toolchain"], env["kernels"] == "asm"
    if chosen == "auto":
        chosen = "aiecc" if env["AIECC_TOOLS"][0] and not asm else OWN_TOOLCHAIN
    if chosen == "aiecc" and asm:
        stop("kernels=asm is for toolchain=bdforge: aiecc links objects of Peano; leave one of both out.")
    env["TOOLCHAIN"], env["KERNEL_MACROS"], env["KERNELS"], env["CODE_AT_END"] = chosen, [], [], False
    settings = ["CODE_AT_END", "KERNEL_MACROS", "device", "kernels", "loops"]
    image = Action(write_image, lambda target, source, env: short_line("XCLBIN", target), varlist=settings)
    env["BUILDERS"]["AssembledXclbin"] = Builder(action=image, emitter=depend)
    facts = Action(write_facts, lambda target, source, env: short_line("TOOLCHAIN", target))
    env["BUILDERS"]["Toolchain"] = Builder(action=facts, emitter=depend_on_tools)


def exists(env):
    """Nothing but bdforge is needed."""
    return True
