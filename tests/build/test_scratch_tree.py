"""The tree that tests build in is the same for each of them."""

import shutil
from pathlib import Path

from scratch_tree import restore


def test_a_tree_is_restored_whatever_was_made_changed_or_taken_away(tmp_path: Path):
    kept, tree = tmp_path / "kept", tmp_path / "tree"
    for name in ("a/one", "a/b/two", "c/three", "four"):
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text(name)
    shutil.copytree(kept, tree)
    (tree / "a/one").write_text("A/ONE")  # as long
    (tree / "a/b/two").unlink()
    (tree / "a/b").rmdir()
    (tree / "c").chmod(0o700)
    (tree / "four").chmod(0o755)
    (tree / "build/deep").mkdir(parents=True)
    (tree / "build/deep/link").symlink_to(tree / "a")
    modes = {path.relative_to(kept): path.stat().st_mode for path in kept.rglob("*")}
    restore(tree, kept)
    assert {path.relative_to(tree): path.stat().st_mode for path in tree.rglob("*")} == modes
    assert all((tree / name).read_text() == str(name) for name in modes if (kept / name).is_file())
