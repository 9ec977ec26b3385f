"""What SCons says to right and wrong choices."""

import re
from pathlib import Path

import pytest
from scratch_tree import built, copy_tree, run_scons
from typer.testing import CliRunner

from bdforge.cli.commands import app
from bdforge.devices import DEVICES
from support.examples import EXAMPLES


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all: nothing is ever built here."""
    return copy_tree(tmp_path_factory.mktemp("choices"))


DEFAULTS = [("strix_halo", "gemm_i8_i2_bitnet"), ("hawk_point", "gemm_bf16_bf16_f32_64x64x32")]


def sentence(result) -> str:
    """The only line of a refusal."""
    assert result.returncode == 2
    assert "Traceback" not in result.stderr + result.stdout
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


VARIABLES = {
    "device": ("strix_halo", "|".join(DEVICES)), "format": ("xclbin", "xclbin|elf"), "design": ("default", None),
    "toolchain": ("auto", "auto|aiecc|bdforge"), "kernels": ("auto", "auto|cpp|asm"), "loops": ("jnz", "jnz|hardware"),
    "dialect": ("auto", "auto|march|1.4"), "cxx": ("g++", None), "kernel_opt": ("2", "1|2|3|s"),
    "native": ("True", "yes|no"), "verbose": ("False", "yes|no"), "build": ("build", None), "xrt": ("auto", None),
    "ggml": ("auto", None), "sanitize": ("", None), "optimise": ("True", "yes|no"), "prefix": ("/usr/local", None),
    "libdir": ("lib", None), "destdir": ("", None), "cache": ("", None),
}  # fmt: skip
"""Default, and what a variable may be where that is a few words."""


def test_help_lists_each_variable_with_default_and_choices(scons, tree):
    text = scons("--help").stdout
    listed = re.findall(r"^(\w+): (.*)\n    default: ?(.*)$", text, re.MULTILINE)
    assert {name: default for name, _, default in listed} == {name: default for name, (default, _) in VARIABLES.items()}
    for name, what, _ in listed:
        _, choices = VARIABLES[name]
        assert choices is None or what.endswith(f" ({choices})"), name
    assert not (tree / "build").exists()


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("emulat", "unknown target 'emulat', did you mean 'emulate'?"),
        ("gemm_i8_i2_bitnet", "is a design, not a target; choose it with design=gemm_i8_i2_bitnet."),
        ("devise=strix", "unknown variable 'devise', did you mean 'device'?"),
        ("colour=no", "unknown variable 'colour'; 'scons --help' lists all."),
        ("device=strix_hola", "'strix_hola'"),
        ("kernel_opt=fast", "'fast'"),
        ("design=gemm_i8", "unknown design 'gemm_i8'; there is default, all, add_bf16, add_i8"),
        ("cxx=no-such-compiler", "cxx=no-such-compiler is not on PATH; install g++"),
    ],
)
def test_a_misspelt_target_or_choice_is_one_sentence(scons, tree, argument, expected):
    assert expected in sentence(scons(argument, "host"))
    assert not built(tree)


@pytest.mark.daily(every=2)
@pytest.mark.parametrize(
    ("text", "expected"),
    [("devise = 'strix'\n", "unknown variable 'devise'"), ("device: strix\ncxx = (\n", "local.conf")],
)
def test_a_local_conf_with_another_choice_or_no_python_is_one_sentence(scons, tree, text, expected):
    (tree / "local.conf").write_text(text)
    said = scons("host")
    (tree / "local.conf").unlink()
    assert expected in sentence(said)


@pytest.mark.slow
def test_outside_of_the_environment_the_way_in_is_named(scons, tmp_path):
    (tmp_path / "pydantic.py").write_text("raise ModuleNotFoundError('no pydantic', name='pydantic')\n")
    assert "'. .venv/bin/activate' first" in sentence(scons("host", PYTHONPATH=str(tmp_path)))


def test_a_device_without_a_design_is_one_sentence(scons):
    message = sentence(scons("device=phoenix", "design=gemm_i8_i2_bitnet", "emulate"))
    assert "no design for device=phoenix (AIE2): gemm_i8_i2_bitnet needs strix_halo or strix or krackan." in message


@pytest.mark.daily(every=2)
@pytest.mark.parametrize(("device", "expected"), DEFAULTS)
def test_without_a_name_one_design_that_the_device_can_hold_is_built(scons, device, expected):
    text = scons(f"device={device}", "-n", "host").stdout
    assert {line.split("/")[2] for line in text.splitlines() if f"build/{device}/" in line} == {expected}


PHOENIX = {"gemm_i8_i8_i8_112x112x112", "gemm_bf16_bf16_f32_64x64x32"}
STRIX_ALONE = {"gemm_i8_i2_bitnet", "gemm_i8_i8_i8_144x72x144"}


def test_all_designs_are_those_for_the_device(tmp_path):
    copy = copy_tree(tmp_path)
    for spec in (copy / "designs").glob("*.toml"):
        if spec.stem not in {*PHOENIX, *STRIX_ALONE}:
            spec.unlink()
    text = run_scons(copy, "device=phoenix", "-n", "host", "design=all").stdout
    names = {line.split("/")[2] for line in text.splitlines() if "build/phoenix/" in line}
    assert names == PHOENIX


def test_a_faulty_spec_stops_with_every_reason_before_any_work(scons, tree):
    text = (tree / "designs" / "gemm_i8_i2_bitnet.toml").read_text()
    (tree / "designs" / "faulty.toml").write_text(text.replace("m = 64", "m = 63").replace("n = 64", "n = 65"))
    result = scons("host", "design=faulty")
    (tree / "designs" / "faulty.toml").unlink()
    assert result.returncode == 2
    assert "tile.m = 63" in result.stderr
    assert "tile.n = 65" in result.stderr
    assert "Traceback" not in result.stderr
    assert not built(tree)


def test_a_document_is_built_under_its_files_name(scons, tree):
    text = (EXAMPLES / "documents" / "transpose.toml").read_text()
    (tree / "designs" / "own.toml").write_text(text)
    result = scons("host", "design=own")
    (tree / "designs" / "own.toml").unlink()
    assert result.returncode == 2
    assert "own.toml: name = 'transpose', but what is built has its file's; write name = 'own'." in result.stderr


def test_a_composition_is_built_behind_its_designs(scons, tree):
    """Those that lie beside it, and one of designs/; a faulty one stops before any work."""
    layer = str(EXAMPLES / "layer" / "bitnet.toml")
    done = scons("-n", f"design={layer},add_i8", "toolchain=bdforge")
    assert done.returncode == 0, done.stderr
    made = [line.split()[1] for line in done.stdout.splitlines() if "[MANIFEST]" in line or "[COMPOSE]" in line]
    named = [Path(name).parent.name for name in made[:-1]]
    assert (made[-1], named.count("add_i8"), {"bitnet_rope", "gemm_i8_i2_raw"} <= {*named}) == ("bitnet", 1, True)
    (tree / "designs" / "faulty.toml").write_text('kind = "composition"\n')
    result = scons("design=designs/faulty.toml")
    (tree / "designs" / "faulty.toml").unlink()
    assert sentence(result) == "scons: designs/faulty.toml: steps: missing; add it"


@pytest.mark.slow
def test_a_composition_that_scons_builds_runs(tmp_path):
    """And is built anew when a design of it is."""
    file, spec = tmp_path / "twice.toml", tmp_path / "bend.toml"
    step = '[[steps]]\nname = "NAME"\ndesign = "bend"\nsizes = { length = 96 }\ntensors = { A = "A", Y = "Y" }\n'
    steps = step.replace("NAME", "one").replace('"Y"', '"m"') + step.replace("NAME", "two").replace('"A"', '"m"')
    file.write_text(f'kind = "composition"\n{steps}[[problems]]\n')
    design = 'kind = "elementwise"\nfunction = "gelu"\ntype = "bf16"\ntile = TILE\n[array]\nrows = 1\ncolumns = 1\n'
    copy = copy_tree(tmp_path)
    for tile in (96, 32):
        spec.write_text(design.replace("TILE", str(tile)))
        done = run_scons(copy, f"design={file}", "toolchain=bdforge")
        assert ("[COMPOSE] twice" in done.stdout, done.returncode) == (True, 0), done.stdout + done.stderr
    assert "up to date" in run_scons(copy, f"design={file}", "toolchain=bdforge").stdout
    folder = copy / "build" / "strix_halo" / "twice"
    assert CliRunner().invoke(app, ["run", str(folder)]).exit_code == 0


def test_missing_tools_are_named_together_before_any_work(scons, tree):
    result = scons("device=strix_halo", "toolchain=aiecc", PATH="/usr/bin:/bin", PEANO_INSTALL_DIR="/nowhere/peano")
    assert result.returncode == 2
    for part in ("Peano clang++: looked in PEANO_INSTALL_DIR=/nowhere/peano", "aiecc: looked in", "mlir_aie wheel",
                 "xclbinutil (XRT): looked in", "PATH", "get it: pip install llvm-aie"):  # fmt: skip
        assert part in result.stderr
    assert "'scons device=strix_halo emulate' needs none of them." in result.stderr
    assert result.stdout == ""
    assert not (tree / "build").exists()
