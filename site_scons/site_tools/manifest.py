"""Manifest: what a host must know of a built design, with the hashes of its files, and the schema for editors.

    env.Manifest([manifest, schema], [spec, files...])

Files of an earlier build, such as the xclbin when only the host's part is built now, stay listed as long as the MLIR
is the one that they were built from; hosts refuse a file that is not listed, or not as it was.
"""

import hashlib
import json
from pathlib import Path

from commands import planned, sentence, short_line
from jinja_mlir import planning_code
from SCons.Script import Action, Builder

from bdforge.common.files import write_whole
from bdforge.design.manifest import SCHEMA_FILE, json_schema
from bdforge.operators import built_files, manifest
from bdforge.runtime.host_kernels import check_called


@sentence("written")
def write_manifest(target, source, env):
    """Write manifest and schema, each whole or not at all."""
    plan = planned(source[0], env)
    problems, file = plan.problems, Path(target[0].get_abspath())
    built = {Path(node.get_abspath()) for node in source[1:]}
    paths = {role: file.parent / path for role, path in built_files(plan, problems).items()}
    if plan.writes_sequences and plan.kernels.sources:  # of a template's text nobody reads which it calls
        check_called(paths["host_kernels"], plan.kernels.symbols, plan.spec.name, plan.kernels.sources)
    hashes = {role: _sha256(path) for role, path in paths.items() if path in built}
    hashes = _earlier(file, hashes["mlir"], paths) | hashes
    confirmed = json.loads(paths["placement"].read_text())["read_back"] if "placement" in hashes else ""
    toolchain = json.loads(paths["toolchain"].read_text()) if "toolchain" in hashes else None
    facts = manifest(plan, problems, hashes, confirmed, toolchain)
    write_whole(file, json.dumps({"$schema": f"./{SCHEMA_FILE}"} | facts, indent=2) + "\n")
    write_whole(target[1].get_abspath(), json_schema())


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _earlier(file: Path, mlir: str, paths: dict[str, Path]) -> dict[str, str]:
    """Hashes that the manifest of an earlier build of the same MLIR holds, of files that are still there."""
    try:
        files = json.loads(file.read_text(encoding="utf-8"))["files"]
        if files["mlir"]["sha256"] != mlir:
            return {}
        return {role: entry["sha256"] for role, entry in files.items() if role in paths and paths[role].is_file()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # none, or an older kind


def depend(target, source, env):
    """The manifest's own predecessor is read, so SCons must neither remove it nor take it from a cache."""
    env.Depends(target, planning_code(env))
    env.Precious(target)
    env.NoCache(target)
    return target, source


def generate(env):
    """Add the builder."""
    action = Action(write_manifest, lambda target, source, env: short_line("MANIFEST", target), varlist=["device"])
    env["BUILDERS"]["Manifest"] = Builder(action=action, emitter=depend)


def exists(env):
    """Nothing but bdforge is needed."""
    return True
