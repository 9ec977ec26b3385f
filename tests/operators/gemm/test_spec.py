"""Design specs: what a user may write, and every message when it is wrong."""

import pytest

from bdforge.operators.gemm import GemmProblem, SpecError, load_spec
from support.built_designs import small_gemm

FLAGSHIP = "designs/gemm_i8_i2_bitnet.toml"


def test_the_flagship_reads_and_names_bitnets_layers(pytestconfig):
    spec = load_spec(pytestconfig.rootpath / FLAGSHIP)
    shapes = [(256, 2560, 2560), (256, 2560, 640), (256, 2560, 13824), (256, 6912, 2560)]
    assert list(spec.problems) == [GemmProblem(*shape) for shape in shapes]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind = 'gemm'\n[tile\n", "is no TOML to use: "),
        ("tyle = 1", "tyle: unexpected key; remove it or check its spelling"),
        ("[[tile]]\nm = 8", "tile: input should be a table (a section of its own), got [{'m': 8}]"),
        ("[tile]\nm = 'big'", "tile.m: input should be a valid integer, got 'big'"),
        ("[tile]\nm = 1.5", "tile.m: input should be a valid integer"),
    ],
)
def test_a_faulty_file_is_named_with_every_fault(tmp_path, text, message):
    path = tmp_path / "faulty.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as error:
        load_spec(path)
    assert message in str(error.value)
    assert all(
        line.startswith(str(path)) for line in str(error.value).splitlines() if ":" in line and "at line" not in line
    )


def test_a_missing_or_binary_file_is_one_sentence(tmp_path):
    with pytest.raises(SpecError, match=r"absent\.toml: cannot be read: No such file or directory$"):
        load_spec(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"binary\.toml: cannot be read: not UTF-8 text"):
        load_spec(tmp_path / "binary.toml")


def test_all_reasons_of_an_illegal_tile_are_listed():
    with pytest.raises(SpecError) as error:
        small_gemm(m=20, k=12, n=48, k_mt=20, stack_bytes=100, rows=4, columns=6, a_shims=2)
    text = str(error.value)
    assert "tile.m = 20 is not a multiple of 16, which mm_i8_i2_i32 needs (8 in each of 2 parts); use 16 or 32" in text
    assert "tile.k = 12 is not a multiple of 8, which mm_i8_i2_i32 needs; use 8 or 16" in text
    assert "tile.n = 48 is not a multiple of 32, which mm_i8_i2_i32 needs; use 32 or 64" in text
    assert "buffers.k_mt = 20 is not a multiple of tile.k = 12" in text
    assert "buffers.stack_bytes = 100 is not a multiple of 64" in text
    assert "buffers.a_shims = 2 needs 8 columns for 4 rows; use 1" in text
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 128, "k": 128, "n": 64}, r"core \(0, 2\) and 3 more: 73792 bytes of 65536 \("),
        (
            {"m": 128, "n": 128},
            r"core .*, MM2S 0 \(C out\), BD 0: length 16384 granules exceeds the 16383 of a core BD",
        ),
        ({"m": 64, "k": 64, "k_mt": 4096}, r"memtile \(0, 1\): .* bytes of 524288"),
        ({"k_mt": 16 * 12, "rho": 2}, r"BDs for channels that share BD 24 to 47; .*: a smaller buffers.k_mt"),
        ({"k_mt": 16 * 40, "rho": 2}, r"memtile \(0, 1\) and 1 more: a first lock value = 80 is outside 0 to 63"),
        ({"columns": 8, "rows": 4, "device": "phoenix"}, r"array.columns = 8, but phoenix has 4"),
        (
            {"types": ("bf16", "int8", "f32")},
            r"no kernel for bf16 x int8 on AIE2P \(strix_halo\); there is int8 x int8, ",
        ),
        ({"types": ("bfp16", "bfp16", "f32"), "device": "phoenix"}, r"no kernel for bfp16 x bfp16 on AIE2 \(phoenix\)"),
        (
            {"types": ("int8", "int2", "int32", "int16")},
            r"no kernel for int8 x int2 with accumulators of int16 on AIE2P; types.accumulator may be int32",
        ),
    ],
)
def test_what_the_hardware_cannot_hold_is_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        small_gemm(**changes)
