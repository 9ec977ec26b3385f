"""The tests of `./go check`: those that belong to what differs, the nearest first, as long as there is time."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import ends
from tools.testing import check
from tools.testing.affected import affected_tests, mirrored

FILES = {
    "bdforge/__init__.py": "",
    "bdforge/a/__init__.py": "from .far import far\nfrom .near import near",
    "bdforge/a/near.py": "from bdforge.b.base import base\nnear = base",
    "bdforge/a/far.py": "far = 1",
    "bdforge/b/__init__.py": "",
    "bdforge/b/base.py": "'''\nimport nothing at all\n'''\nbase = 1",
    "host/a/part.cpp": "",
    "tests/support/helper.py": "from bdforge.a import (\n    near,\n)",
    "tests/a/beside.py": "from bdforge.a.far import far",
    "tests/a/test_near.py": "def test():\n    from bdforge.a import near",
    "tests/a/test_far.py": "import beside",
    "tests/b/test_base.py": "from support.helper import near",
    "tests/c/test_host.py": "PART = 'host/a/part.cpp'",
}
BELONG = {
    "bdforge/a/near.py": ["a/test_near.py", "a/test_far.py"],
    "bdforge/a/far.py": ["a/test_far.py", "a/test_near.py"],
    "bdforge/b/base.py": ["a/test_near.py", "b/test_base.py"],
    "tests/support/helper.py": ["b/test_base.py"],
    "tests/a/beside.py": ["a/test_far.py", "a/test_near.py"],
    "tests/b/test_base.py": ["b/test_base.py"],
    "host/a/part.cpp": ["c/test_host.py", "a/test_far.py", "a/test_near.py"],
    "README.md": [],
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", BELONG)
def test_what_imports_or_names_a_file_comes_before_the_rest_of_its_folder(tree: Path, name: str):
    """Through packages that only pass names on, helpers of tests, and imports within functions."""
    assert [str(test.relative_to(tree / "tests")) for test in affected_tests([tree / name], tree)] == BELONG[name]


def test_a_file_that_differs_comes_first(tree: Path):
    files = [tree / "bdforge/a/near.py", tree / "tests/c/test_host.py"]
    assert affected_tests(files, tree)[0] == files[1]


def test_a_package_has_the_innermost_folder_of_its_name(tree: Path):
    assert mirrored(tree / "bdforge/b/a/x.py", tree) == tree / "tests/a"
    assert mirrored(tree / "bdforge/b/x/y.py", tree) == tree / "tests/b"
    assert mirrored(tree / "bdforge/support/x.py", tree) is None


def test_files_differ_from_where_the_branch_left_main(tree: Path):
    def git(*words: str) -> None:
        ends(subprocess.run(["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a", *words], check=False))

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "all")
    git("switch", "-qc", "other")
    (tree / "bdforge/a/far.py").write_text("far = 2")
    git("commit", "-qam", "one")
    (tree / "bdforge/a/near.py").write_text("")
    (tree / "new.py").write_text("")
    (tree / "bdforge/b/base.py").unlink()
    names = [str(file.relative_to(tree)) for file in check.changed(tree)]
    assert names == ["bdforge/a/far.py", "bdforge/a/near.py", "new.py"]


SLEEPS = "import time\ndef test_short(): pass\ndef test_long(): time.sleep(20)\ndef test_left(): pass"


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "told"), [(1, "1 passed, 1 skipped"), (60, "1 failed, 1 passed")])
def test_tests_end_with_their_time(tmp_path: Path, seconds: int, told: str):
    text = SLEEPS if seconds == 1 else "def test_short(): pass\ndef test_wrong(): assert False"
    (tmp_path / "test_it.py").write_text(text)
    script = (
        f"import pytest; from tools.testing.check import Clock; pytest.main(['-q', '-c', '/dev/null', '{tmp_path}'], "
        f"plugins=[Clock({seconds})])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=check.ROOT, text=True, capture_output=True, check=False)
    assert f"{told} in " in done.stdout, done.stdout + done.stderr
    assert ("after 1 s 1 tests were left out" in done.stdout) == (seconds == 1)
