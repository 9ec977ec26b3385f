"""The recipe for conda says what pyproject.toml does."""

import re
import tomllib

import pytest
from scratch_tree import ROOT

import bdforge

RECIPE = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
SAID = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def listed(key: str) -> list[str]:
    """The list below a key."""
    (found,) = re.findall(rf"^ +{key}:[^\n]*\n((?: +- .*\n)+)", RECIPE, re.MULTILINE)
    return re.findall(r"- (.*)", found)


def value(key: str) -> str:
    (found,) = re.findall(rf"^  {key}: (.*)$", RECIPE, re.MULTILINE)
    return found


@pytest.mark.parametrize(("key", "more"), [("run", []), ("host", ["pip", *SAID["build-system"]["requires"]])])
def test_it_requires_what_the_package_does(key: str, more: list[str]):
    needed = [f"python{SAID['project']['requires-python']}", *more, *SAID["project"]["dependencies"]]
    assert [one.replace(" ", "") for one in listed(key)] == needed


def test_it_is_of_this_version_and_says_what_the_package_says():
    project = SAID["project"]
    assert (value("version"), value("summary"), value("license")) == (
        bdforge.__version__, project["description"], project["license"],
    )  # fmt: skip
    assert listed("entry_points") == [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert value("license_file") in [path.name for path in ROOT.iterdir()]
