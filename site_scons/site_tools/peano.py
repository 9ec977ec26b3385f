"""PeanoObject and KernelObject: AIE kernels, compiled by Peano for the cores of the device.

    objects = [env.PeanoObject(object, source, KERNEL_DEFINES=["-DDIM_M=64", ...]) for ...]
    env.KernelObject(merged, objects)

A core links one object (`link_with`), so a design's objects are merged.
"""

from commands import kernel_headers, tool_builder, versions

from bdforge.devices import device_named
from bdforge.toolchain import find_aie_api, find_object_linker, find_peano

# Those of mlir-aie's makefiles, and -ffunction-sections, by which the core link drops what a core does not call.
# No -g: that link refuses sections it does not know.
FLAGS = ("-O2", "-std=c++20", "-ffunction-sections", "-DNDEBUG", "-Wno-parentheses", "-Wno-attributes",
         "-Wno-macro-redefined", "-Wno-empty-body")  # fmt: skip


def compile_command(target, source, env) -> list[str]:
    """One source to one object."""
    clang, _, api = env["PEANO_TOOLS"]
    triple = device_named(env["device"]).generation.peano_target
    include = [f"-I{api.path.parent.parent}"] if api else []
    names = ["-c", str(source[0]), "-o", str(target[0])]
    return [str(clang.path or "clang++"), f"--target={triple}", *FLAGS, *include, *env["KERNEL_DEFINES"], *names]


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
