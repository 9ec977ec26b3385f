"""`bdforge new`: what it writes, and that it replaces nothing unasked. tests/build/test_wheel.py builds a project."""

import json
import tomllib
from pathlib import Path

from bdforge.design.template import load_template_spec, render_template
from support.built_designs import ROOT


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_project_holds_what_its_page_names(run):
    code, out, _ = run("new", "mine")
    assert code == 0
    *written, last = out.splitlines()
    assert {line.removeprefix("wrote mine/") for line in written} == files(Path("mine"))
    page = (ROOT / "docs" / "your_project.md").read_text(encoding="utf-8")
    assert [name for name in files(Path("mine")) if f"`{name}`" not in page] == []
    assert last == "now: cd mine; scons emulate; pytest; scons app"
    assert len(Path("mine/SConstruct").read_text().splitlines()) <= 15


def test_an_operator_is_the_example_under_another_name(run):
    """tests/build/test_operator_package.py installs the example and runs its tests."""
    code, out, _ = run("new", "--operator", "rmsnorm")
    assert (code, out.splitlines()[-1]) == (0, "now: cd rmsnorm; pip install --no-build-isolation -e .; pytest")
    assert files(Path("rmsnorm")) == {
        "pyproject.toml", "bdforge_rmsnorm/__init__.py", "designs/rmsnorm.toml", "tests/test_rmsnorm.py",
    }  # fmt: skip
    example = ROOT / "examples" / "operator"
    for name in files(Path("rmsnorm")):
        text = (Path("rmsnorm") / name).read_text()
        assert "rowscale" not in text.lower()
        whole = (example / name.replace("rmsnorm", "rowscale")).read_text()
        assert text.replace("rmsnorm", "rowscale").replace("Rmsnorm", "Rowscale") == whole


def test_what_a_project_needs_more_is_an_extra(run, monkeypatch):
    """pytest is none of what bdforge needs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [word.partition(">=")[0] for word in extras["project"]] == ["pytest"]
    monkeypatch.setattr("bdforge.cli.build.find_spec", lambda name: None)
    assert run("new", "mine")[1].splitlines()[-1].split("; ")[2:4] == ["pip install 'bdforge[project]'", "pytest"]


def test_the_command_line_renders_what_the_build_does(run):
    run("new", "mine")
    code, text, _ = run("render", "mine/designs/transpose.toml")
    assert code == 0
    assert text == render_template(load_template_spec("mine/designs/transpose.toml"), Path("mine/templates"))
    newer = run("render", "mine/designs/transpose.toml", "--dialect", "1.4")[1]
    assert "len = 256 sizes = [16, 16] strides = [1, 16]" in newer
    code, _, err = run("render", "mine/designs/transpose.toml", "--shape", "64x64x64")
    assert (code, "is not MxN" in " ".join(err.replace("│", " ").split())) == (2, True)
    code, text, _ = run("render", "mine/designs/transpose.toml", "--manifest")
    facts = json.loads(text)
    assert (code, facts["kind"], facts["sequence"]["program"]["parameters"]) == (0, "template", ["M", "N"])


def test_nothing_is_replaced_unasked(run):
    Path("mine/designs").mkdir(parents=True)
    Path("mine/designs/gemm.toml").write_text("mine")
    Path("mine/notes.txt").write_text("mine")
    code, _, err = run("new", "mine")
    assert (code, err) == (
        2,
        "bdforge: mine/designs/gemm.toml: already there; choose another folder, or replace with --force\n",
    )
    assert files(Path("mine")) == {"designs/gemm.toml", "notes.txt"}
    assert Path("mine/designs/gemm.toml").read_text() == "mine"
    assert run("new", "mine", "--force")[0] == 0
    assert Path("mine/designs/gemm.toml").read_text() != "mine"
    assert Path("mine/notes.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_sentence(run):
    Path("file").write_text("mine")
    for folder in ("file", "file/mine", "/proc/mine"):
        code, out, err = run("new", folder)
        assert (code, out) == (2, "")
        assert err.startswith("bdforge: ")
        assert len(err.splitlines()) == 1
