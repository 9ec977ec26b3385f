"""What the site tools share: builders that run one command, with a short line and whole outputs or none."""

import functools
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2
import SCons.Errors
from choices import describing_only, stop
from SCons.Script import Action, Builder, Value

from bdforge.common.messages import InputError, clip, clip_path, listed
from bdforge.common.tree import PACKAGE, tree
from bdforge.devices import device_named
from bdforge.operators import Plan, load_spec, plan
from bdforge.runtime.toolchain import Tool, ToolError, run_tool


def tool_builder(
    label: str,
    words: Callable,
    needs: Callable,
    beside_target: bool = False,
    unsigned: Callable = lambda env: [],
    written: Callable[[str], str] = str,
):
    """A builder that runs the command `words(target, source, env)`, which names its outputs by their paths.

    The command is part of the signature, as are the nodes `needs(env)`. `beside_target` runs it in the targets' folder;
    it must then name absolute paths. env["TOOL_PATH"], when set, comes before PATH. `unsigned(env)` are words behind
    the program's name by which the result does not change; `written` tells by which name the tool writes an output.
    """

    def whole(target, source, env) -> list[str]:
        program, *rest = words(target, source, env)
        return [program, *unsigned(env), *rest]

    def emit(target, source, env):
        command = shlex.join(words(target, source, env))
        if not beside_target:  # the same in every tree, so that one has what another made
            command = command.replace(f"{env.Dir('#').get_abspath()}/", "")
        env.Depends(target, [Value(command), *needs(env)])
        return target, source

    def run(target, source, env):
        environ = dict(env["ENV"])
        if folders := env.get("TOOL_PATH"):
            environ["PATH"] = f"{folders}:{environ.get('PATH', '')}"
        outputs = [Path(node.get_abspath() if beside_target else str(node)) for node in target]
        cwd = outputs[0].parent if beside_target else None
        try:
            say(run_tool(whole(target, source, env), outputs, cwd, environ, written))
        except ToolError as error:
            say(error.output)
            raise SCons.Errors.BuildError(node=target[0], errstr=str(error)) from None

    def line(target, source, env) -> str:
        return shlex.join(whole(target, source, env)) if env["verbose"] else short_line(label, target)

    return Builder(action=Action(run, line), emitter=emit)


def short_line(label: str, target) -> str:
    """`  [CXX] build/strix_halo/...`."""
    return f"  [{label}] {target[0]}"


def say(text: str):
    """Pass on what a tool said."""
    if text.strip():
        sys.stdout.flush()
        sys.stderr.write(f"{text.rstrip()}\n")


def sentence(what: str) -> Callable:
    """Wraps a builder's function: a fault of what it is given, or of the disk, is said and ends the build."""

    def wrapped(write: Callable) -> Callable:
        @functools.wraps(write)
        def run(target, source, env):
            try:
                write(target, source, env)
            except (InputError, jinja2.TemplateError) as error:
                say(str(error))
                raise SCons.Errors.BuildError(node=target[0], errstr=f"{source[0]} cannot be {what}") from None

        return run

    return wrapped


def kernels(env, place, name: str, spec: Path, sources: Sequence[str], macros: Sequence[str], compiled: bool) -> tuple:
    """The kernels of a design: the library for this machine, and if `compiled` the object that its cores link.

    They are looked for beside its `spec`'s file first.
    """
    architecture = device_named(env["device"]).generation.compiler_architecture
    env = env.Clone(BESIDE=spec.absolute().parent)
    found, flags = [searched(env, source) for source in sources], [f"-D{macro}" for macro in macros]
    for_tile = env.Clone(KERNEL_DEFINES=flags)  # Peano defines the architecture itself
    for_host = env.Clone(KERNEL_DEFINES=[*flags, f"-D__AIE_ARCH__={architecture}"])
    entry = searched(env, "kernels/hostapi/entry.cc")
    library = for_host.HostKernels(place.File(f"kernels/lib{name}.so"), [*found, entry])
    if not (compiled and found):
        return library, []
    objects = [for_tile.PeanoObject(place.File(f"kernels/{Path(s.name).stem}.o"), s) for s in found]
    return library, env.KernelObject(place.File(f"{name}.o"), objects)


def planned(spec, env) -> Plan:
    """The plan of a spec's node for the chosen device."""
    return plan(load_spec(str(spec)), device_named(env["device"]))


def _roots(env) -> list[Path]:
    """Where files are looked for: a design's folder, that above it, the project, what came with bdforge; each once."""
    beside = env.get("BESIDE")
    own = () if beside is None else (beside, beside.parent)
    return list(dict.fromkeys((*own, Path(env.Dir("#").get_abspath()), tree())))


def _below(env, path: Path) -> str:
    """How compilers and people know a path: from the project on, if it is there."""
    root = Path(env.Dir("#").get_abspath())
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _node(env, path: Path):
    name = _below(env, path)
    return env.File(name if Path(name).is_absolute() else f"#{name}")


def searched(env, name: str):
    """The file `name` of a design's folder, of the project, else bdforge's; one of the project where there is none.

    Designs name kernels without their folder, as those of a project have none; `bdforge build` ends where there is no
    such kernel, a project may make it by a rule of its own.
    """
    project, bare = Path(env.Dir("#").get_abspath()), name.removeprefix("kernels/")
    tried = [env["BESIDE"] / bare] if "BESIDE" in env else []
    names = [name] if bare == name else [name, f"kernels/aie2p/{bare}"]
    tried += [place / each for each in names for place in _roots(env)]
    found = next((path for path in tried if path.is_file()), None)
    if found is None and "BESIDE" in env and project == tree() and not describing_only():
        folders = listed(dict.fromkeys(clip_path(path.parent) for path in tried))
        stop(f"kernel {clip(bare)}: not found; looked for it in {folders}.")
    return _node(env, found or project / name)


def includes(env, *folders: str) -> list[str]:
    """-I for those of the folders that there are, the project's before bdforge's."""
    found = (root / folder for root in _roots(env) for folder in folders)
    return [f"-I{_below(env, path)}" for path in found if path.is_dir()]


def tree_files(env, folder: str, *suffixes: str) -> list:
    """Nodes of all files with one of `suffixes` below a folder of the project and of bdforge, or of bdforge's code."""
    roots = [PACKAGE.parent] if folder.startswith(("bdforge", "bd_patterns")) else _roots(env)
    found = (path for root in roots for path in sorted((root / folder).rglob("*")) if path.suffix in suffixes)
    return [_node(env, path) for path in found]


def kernel_headers(env) -> list:
    """Every header below kernels/, since any source may include any of them."""
    return tree_files(env, "kernels", ".h", ".hpp")


def versions(tools: Sequence[Tool]) -> list:
    """Tools as part of a signature: another version builds again."""
    return [Value(f"{tool.path} {tool.version}") for tool in tools]
