"""PeanoObject and KernelObject: AIE kernels, compiled by Peano for the cores of the device.

    objects = [env.PeanoObject(object, source, KERNEL_DEFINES=["-DDIM_M=64", ...]) for ...]
    env.KernelObject(merged, objects)

A core links one object (`link_with`), so a design's objects are merged.
"""

from commands import includes, kernel_headers, tool_builder, versions

from bdforge.devices import device_named
from bdforge.runtime.toolchain import find_aie_api, find_object_linker, find_peano

# Those of mlir-aie's makefiles (the last since July 2025: the AIE API needs it, newer clangs make it an error), and
# -ffunction-sections, by which the core link drops what a core does not call; -fstack-size-section, by which newer
# aiecc know a kernel's stack frame. No -g: that link refuses sections it does not know.
FLAGS = ("-std=c++20", "-ffunction-sections", "-fstack-size-section", "-DNDEBUG", "-Wno-parentheses",
         "-Wno-attributes", "-Wno-macro-redefined", "-Wno-empty-body",
         "-Wno-missing-template-arg-list-after-template-kw")  # fmt: skip


def compile_command(target, source, env) -> list[str]:
    """One source to one object."""
    clang, _, api = env["PEANO_TOOLS"]
    triple = device_named(env["device"]).generation.peano_target
    include = [*([f"-I{api.path.parent.parent}"] if api else []), *includes(env, "kernels")]
    names = ["-c", str(source[0]), "-o", str(target[0])]
    options = [f"--target={triple}", f"-O{env['kernel_opt']}", *FLAGS, *include, *env["KERNEL_DEFINES"]]
    return [str(clang.path or "clang++"), *options, *names]


def merge_command(target, source, env) -> list[str]:
    """Objects to one object."""
    _, linker, _ = env["PEANO_TOOLS"]
    return [str(linker.path or "ld.lld"), "-r", "-o", str(target[0]), *map(str, source)]


def generate(env):
    """Find the tools and add the builders; without the tools, nodes can still be described and cleaned."""
    env["PEANO_TOOLS"] = [find_peano(env["ENV"]), find_object_linker(env["ENV"]), find_aie_api(env["ENV"])]
    env["BUILDERS"]["PeanoObject"] = tool_builder(
        "PEANO", compile_command, lambda env: [*kernel_headers(env), *versions(env["PEANO_TOOLS"])]
    )
    env["BUILDERS"]["KernelObject"] = tool_builder("MERGE", merge_command, lambda env: versions(env["PEANO_TOOLS"]))


def exists(env):
    """Whether Peano and the AIE API are there."""
    return bool(find_peano(env["ENV"]) and find_aie_api(env["ENV"]))
