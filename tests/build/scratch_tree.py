"""Helpers of the build tests."""

from pathlib import Path


def program(path: Path, script: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def built(tree: Path) -> set[str]:
    """Files below build/, without SCons' own."""
    files = (path for path in (tree / "build").rglob("*") if path.is_file() and path.name != ".sconsign.dblite")
    return {str(path.relative_to(tree / "build")) for path in files}
