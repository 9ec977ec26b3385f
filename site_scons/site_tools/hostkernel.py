"""HostKernels: AIE kernels, compiled for this machine, for the emulated array.

    env.HostKernels(library, sources, KERNEL_DEFINES=["-DDIM_M=64", ...])

kernels/hostapi stands for the AIE API. Compiled again when a source, a header, a definition, the compiler's
version or (native=yes) the processor changes. native=yes takes the flags with which the compiler's sums are right.
"""

import platform

from commands import includes, kernel_headers, tool_builder, versions
from SCons.Script import Value

from bdforge.common.compilers import native_flags, processor
from bdforge.runtime.toolchain import find_cxx

OPTIMISE = "-O3"


def command(target, source, env) -> list[str]:
    """Sources to one shared library."""
    arch = native_flags(env["cxx"], OPTIMISE) if env["native"] else ()
    flags = ["-std=c++20", OPTIMISE, *arch, "-fPIC", "-shared", *includes(env, "kernels/hostapi", "kernels")]
    return [env["cxx"], *flags, *env["KERNEL_DEFINES"], "-o", str(target[0]), *map(str, source)]


def needs(env) -> list:
    """Headers, compiler and machine."""
    return [
        *kernel_headers(env),
        *versions([env["HOST_COMPILER"]]),
        Value(processor() if env["native"] else platform.machine()),
    ]


def generate(env):
    """Find the compiler and add the builder."""
    env["HOST_COMPILER"] = find_cxx(env["cxx"], env["ENV"])
    env["BUILDERS"]["HostKernels"] = tool_builder("CXX", command, needs)


def exists(env):
    """Whether the chosen compiler is there."""
    return bool(find_cxx(env["cxx"], env["ENV"]))
