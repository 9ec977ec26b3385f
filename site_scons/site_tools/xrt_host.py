"""The C++ library over XRT and what belongs to it: CxxObject, CObject, Archive, CxxShared, PreloadLibrary, CxxProgram,
Links, Filled, Joined, Manual.

    objects = [env.CxxObject(object, source) for ...]
    env.Archive(library, objects); env.CxxShared(library, objects, SONAME=...)
    env.CxxProgram(program, [*objects, library])
    env.Links(names, file); env.Filled(text, template, FILLED={"PREFIX": ...}); env.Joined(one, sources)

Built with what `xrt=` names: headers and libxrt_coreutil of an XRT, or none. Compiled again when a source, a header it
includes, the compiler's version or the command changes.
"""

import os
import subprocess
from pathlib import Path

import SCons.Tool
from commands import short_line, tool_builder, versions
from SCons.Script import Action, Builder

from bdforge.common.roff import roff
from bdforge.runtime.npu import find_development
from bdforge.runtime.toolchain import find_cxx

WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def _includes(env) -> list[str]:
    """Folders of headers, which SCons scans by the same names."""
    return [f"-I{folder}" for folder in env["CPPPATH"]]


def compile_command(target, source, env) -> list[str]:
    """One source to one object, for archive and shared library alike."""
    needs_xrt = env["XRT"] and Path(str(source[0])).name == "xrt_backend.cpp"
    system = ["-isystem", str(env["XRT"].include)] if needs_xrt else []
    system += [word for folder in env.get("SYSTEM", []) for word in ("-isystem", folder)]
    include = _includes(env)
    defines = [f"-D{macro}" for macro in env.get("CPPDEFINES", [])]
    flags = ["-std=c++20", env["OPTIMISE"], "-fPIC", *WARNINGS, *_sanitizers(env), *_memory(env), *defines]
    return [env["cxx"], *flags, *include, *system, "-c", str(source[0]), "-o", str(target[0])]


def c_command(target, source, env) -> list[str]:
    """A source in C, whose users the C API is for."""
    include = _includes(env)
    flags = ["-x", "c", "-std=c11", "-pedantic", "-O1", *WARNINGS, *_sanitizers(env), *include]
    return [env["cxx"], *flags, "-c", str(source[0]), "-o", str(target[0])]


def archive_command(target, source, env) -> list[str]:
    """Objects to a static library."""
    return ["ar", "rcsD", str(target[0]), *map(str, source)]


def shared_command(target, source, env) -> list[str]:
    """Objects to a shared library, which shows all that a script lists if one is among the sources.

    Programs ask for it by SONAME, by its file's name without one.
    """
    words = [f"-Wl,--version-script={s}" if str(s).endswith(".map") else str(s) for s in source]
    soname = f"-Wl,-soname,{env.get('SONAME') or target[0].name}"
    return [env["cxx"], "-shared", soname, *_sanitizers(env), "-o", str(target[0]), *words, *_libraries(env)]


def preload_command(target, source, env) -> list[str]:
    """Objects to a library that any program can be run with: it shows what the first source lists and nothing else, and
    brings along what the program may lack, or have of another version."""
    script, *objects = map(str, source)
    alone = ["-static-libstdc++", "-static-libgcc", f"-Wl,--version-script={script}"]
    return [env["cxx"], "-shared", *alone, "-o", str(target[0]), *objects, "-pthread", "-ldl"]


def program_command(target, source, env) -> list[str]:
    """Objects and archives to a program."""
    return [env["cxx"], *_sanitizers(env), "-o", str(target[0]), *map(str, source), *_libraries(env), "-pthread"]


def _sanitizers(env) -> list[str]:
    """Without -g: reports name functions, undefined behaviour its line too; lines of all take a fifth of the time. Nor
    do checks of addresses stand at each access: called, as clang names it otherwise, they take a seventh less."""
    names = env["sanitize"]
    called = [] if "clang" in Path(env["cxx"]).name else ["--param=asan-instrumentation-with-call-threshold=0"]
    return [f"-fsanitize={names}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", *called] if names else []


def _memory(env) -> list[str]:
    """How seldom g++ searches its own memory where sources are joined for tests: that took a fifth of the time, and
    more than a gigabyte it doesn't need."""
    joined = env["OPTIMISE"] == "-O0" and "clang" not in Path(env["cxx"]).name
    return ["--param=ggc-min-expand=500", "--param=ggc-min-heapsize=1000000"] if joined else []


def _libraries(env) -> list[str]:
    """XRT's library and others; a program may be linked on a system older than the one that they were built for."""
    xrt, others = env["XRT"], env.get("LIBRARIES", [])
    if not xrt:
        return others
    return [
        f"-L{xrt.library}",
        f"-Wl,-rpath,{xrt.library}",
        "-lxrt_coreutil",
        "-luuid",
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
        *others,
    ]


def fill(target, source, env):
    """Replace @NAME@ in a template by the text of that name."""
    text = source[0].get_text_contents()
    for name, value in env["FILLED"].items():
        text = text.replace(f"@{name}@", value)
    part = Path(f"{target[0]}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, str(target[0]))


def _text_line(target, source, env) -> str:
    return short_line("TEXT", target)


def link(target, source, env):
    """Other names of a file beside it."""
    for node in target:
        part = Path(f"{node}.part")
        part.unlink(missing_ok=True)
        part.symlink_to(source[0].name)
        os.replace(part, str(node))


def write_manual(target, source, env):
    """A man page: what a program's --help says, line by line."""
    done = subprocess.run([source[0].get_abspath(), "--help"], text=True, capture_output=True, check=True)
    usage, _, rest = done.stdout.partition("\n\n")
    *synopsis, told = usage.splitlines()
    name = source[0].name
    parts = {"SYNOPSIS": "\n".join(synopsis), "OPTIONS": rest}
    texts = (f".SH {title}\n.nf\n{roff(text)}\n.fi\n" for title, text in parts.items())
    head = f'.TH {name.upper()} 1 "" "bdforge {env["FILLED"]["VERSION"]}"\n.SH NAME\n{roff(f"{name} - {told}")}\n'
    page = head + "".join(texts)
    Path(str(target[0])).write_text(page, encoding="utf-8")


def join(target, source, env):
    """A source that includes others."""
    lines = [f'#include "{node.srcnode().get_abspath()}"\n' for node in source]
    Path(str(target[0])).write_text("".join(lines), encoding="utf-8")


def generate(env):
    """Find compiler and XRT and add the builders."""
    env["OPTIMISE"] = "-O2" if env["optimise"] and not env["sanitize"] else "-O0"
    env["XRT"] = find_development(env["xrt"], env["ENV"])
    cxx = find_cxx(env["cxx"], env["ENV"])
    builders = {
        "CxxObject": ("CXX", compile_command),
        "CObject": ("CC", c_command),
        "Archive": ("AR", archive_command),
        "CxxShared": ("LINK", shared_command),
        "PreloadLibrary": ("LINK", preload_command),
        "CxxProgram": ("LINK", program_command),
    }
    for name, (label, command) in builders.items():
        env["BUILDERS"][name] = tool_builder(label, command, lambda env: versions([cxx]))
    for name in ("CxxObject", "CObject"):
        env["BUILDERS"][name].source_scanner = SCons.Tool.SourceFileScanner
    SCons.Tool.SourceFileScanner.add_scanner(".cpp", SCons.Tool.CScanner)
    env["BUILDERS"]["Filled"] = Builder(action=Action(fill, _text_line, varlist=["FILLED"]))
    env["BUILDERS"]["Links"] = Builder(action=Action(link, lambda target, source, env: short_line("LINK", target)))
    env["BUILDERS"]["Joined"] = Builder(action=Action(join, _text_line))
    env["BUILDERS"]["Manual"] = Builder(action=Action(write_manual, _text_line))
    env.Tool("install")


def exists(env):
    """Whether the chosen compiler is there."""
    return bool(find_cxx(env["cxx"], env["ENV"]))
