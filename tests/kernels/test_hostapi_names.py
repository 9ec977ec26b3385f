"""The names that docs/kernels.md lists: the stand-in has the ones, and refuses the others with the reason there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_library import ARCH, KERNELS, gxx

PAGE = (KERNELS.parent / "docs" / "kernels.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \|$", PAGE[PAGE.index("### Kernels of others") :], re.MULTILINE)
SUPPORTED = [(kind, re.findall(r"`(\w+)`", names)) for kind, names in ROWS if names.startswith("`")]
REFUSED = {kind.strip("`"): reason for kind, reason in ROWS if re.fullmatch(r"`\w+`", kind) and reason[0] != "`"}
MACROS = [name for kind, names in SUPPORTED for name in names if "no effect" in kind]
ONLY_AIE2P = {"exp2", "tanh", "mac_8x8_8x8T"}
ARGUMENTS = {
    "linear_approx": "<int16, int>", "sliding_mul_sym_ops": "<8, 4>", "sliding_mul_ch_ops": "<8, 4, 2>",
    "sparse_vector": "<int8, 64>", "sparse_vector_input_buffer_stream": "<int8, 64>",
}  # fmt: skip
GLOBAL = {"acquire_equal", "acquire_greater_equal", "release", "get_cycles"}
HEADERS = "#include <aie_api/aie.hpp>\n#include <aie_kernel_utils.h>\n#include <lut_based_ops.h>\n"


@pytest.fixture
def errors(tmp_path: Path, api) -> Callable[..., list[list[str]]]:
    """g++'s errors for each line of a unit, by generation."""
    return lambda generation, lines: errors_by_line(tmp_path / "names.cc", api(generation), lines)


def errors_by_line(source: Path, api: tuple[str, ...], lines: list[str]) -> list[list[str]]:
    source.write_text(HEADERS + "\n".join(lines))
    found: list[list[str]] = [[] for _ in lines]
    for where in gxx("-fsyntax-only", "-fPIC", "-w", *api, source).stderr.split(f"{source}:"):
        if (line := re.match(r"\d+", where)) and " error: " in where:
            found[int(line[0]) - HEADERS.count("\n") - 1] += re.findall(r" error: (.*)", where)
    return found


@pytest.mark.parametrize("generation", ARCH)
def test_the_stand_in_has_every_name_of_the_page(errors, generation):
    names = [
        f"{'aie' if kind.startswith('`aie`') else ''}::{name}" for kind, names in SUPPORTED for name in names
        if name not in MACROS and (generation == "aie2p" or name not in ONLY_AIE2P)
    ]  # fmt: skip
    assert len(names) > 200
    lines = [
        f"namespace use{i} {{ using {'namespace ' if name.endswith('::operators') else ''}{name}; }}"
        for i, name in enumerate(names)
    ]
    told = dict(zip(names, errors(generation, lines), strict=True))
    assert {name: found for name, found in told.items() if found} == {}


def test_words_of_no_effect_are_macros(tmp_path):
    source = tmp_path / "words.cc"
    source.write_text(HEADERS)
    defined = set(re.findall(r"#define (\w+)", gxx("-E", "-dM", source).stdout))
    assert len(MACROS) > 10
    assert set(MACROS) <= defined


def test_what_is_refused_says_why(errors):
    text = (KERNELS / "hostapi" / "aie_api" / "refused.hpp").read_text(encoding="utf-8")
    given = re.findall(r'^HOSTAPI_REFUSED_\w+\((\w+), ((?:"[^"]*"\s*)+)', text, re.MULTILINE)
    assert {name: "".join(re.findall(r'"([^"]*)"', reason)) for name, reason in given} == REFUSED
    names = [f"{'' if name in GLOBAL else 'aie'}::{name}" for name in REFUSED]
    lines = [
        f"auto use{i}() {{ return sizeof({name}{ARGUMENTS[name[5:]]}); }}" if name[5:] in ARGUMENTS
        else f"auto use{i}() {{ return {name}(1, 2); }}"
        for i, name in enumerate(names)
    ]  # fmt: skip
    expected = [[f"static assertion failed: aie API, {name}: refused, {REFUSED[name]}"] for name in REFUSED]
    assert errors("aie2p", lines) == expected


def test_an_unknown_name_is_one_error(errors):
    of_api, intrinsic = errors("aie2p", ["void a() { aie::no_such(1); }", "void b(v16int32 x) { no_such_mac(x, x); }"])
    assert of_api == ["‘no_such’ is not a member of ‘aie’"]
    assert intrinsic == ["‘no_such_mac’ was not declared in this scope"]
