"""Command lines that are refused: what is wrong is named within bounds, exit code 2, and nothing is written."""

from pathlib import Path

import numpy as np
import pytest

from bdforge.array.emulator.strictness import NAMES
from support.built_designs import ROOT
from support.small_designs import loopback

DESIGNS = {
    "bitnet": "gemm_i8_i2_bitnet", "add": "add_i8", "floats": "gemm_bf16_bf16_f32_64x64x64",
    "wide": "gemm_i8_i8_i32_96x64x96",
}  # fmt: skip
BARE = """kind = "gemm"
types = {a = "int8", b = "int2", c = "int32"}
array = {rows = 2, columns = 2}
tile = {m = 16, k = 32, n = 32}
buffers = {k_mt = 64}
"""
TURNED = (
    BARE.replace('a = "int8", b = "int2"', 'a = "int8", b = "int8"')
    + """
[layouts]
c = "column"
"""
)
COPY = "emulate copy.mlir --arg a.npy --arg b.npy"
CONTRACT = "contract ij,jk->ik --sizes i=8,j=8,k=8 --design floats.toml"
LONG, SCREEN = "A" * 70_000, "\x1b[2J"

REFUSED = {
    # Numbers, sizes and words that no option takes.
    "estimate bitnet.toml --rate inf": "--rate",
    "estimate bitnet.toml --rate nan": "--rate",
    f"{CONTRACT} --rate 513": "--rate",
    "estimate bitnet.toml --versus cpu --cpu-tops inf": "--cpu-tops",
    "device --serve -1": "--serve",
    f"device --serve 1{'0' * 30}": "--serve",
    "generate none --temperature nan": "--temperature",
    "tune -j 100000": "-j",
    "bench none -r 0": "-r",
    f"run none --seed 1{'0' * 5000}": "--seed",
    "run none --seed -1": "--seed",
    "lower none --columns 9": "--columns",
    f"{COPY} --seed x": "emulate --help",
    f"{COPY} --tracee t": "emulate --help",
    "emulate": "emulate --help",
    **{f"{COPY} '--budget={text}'": "--budget" for text in
       ("-1", "1.5", "inf", "nan", "1e99", "1e19", "9" * 40, "x" * 5000, "", "0x10", "١")},
    **{f"{COPY} --capacity={text}": "--capacity" for text in ("-1", "1e19", "x" * 5000)},
    "convert copy.mlir --dialect 1.5": "'1.5' is not one of",
    "doctor --for fun": "'fun' is not one of build, npu, tests",
    # What was given is repeated within bounds.
    LONG: "No such command", f"--{LONG}": "No such option", f"render --{LONG}": "No such option",
    f"render bitnet.toml --device {LONG}": "unknown device", f"run x --seed {LONG}": "--seed",
    f"render bitnet.toml --dialect {LONG}": "is not one of", f"contract x --sizes {LONG}": "",
    f"render {SCREEN}{LONG}": "cannot be read", f"estimate bitnet.toml --versus {LONG}": "only cpu is there",
    f"plot {LONG}": "No such command", f"generate x -n {LONG}": "give whole numbers",
    # What says nothing, or twice.
    **dict.fromkeys((
        "new ''", "tune --shapes ''", "emulate d.mlir --device ''", "estimate bitnet.toml --power ''",
        "tune --scheduler ''", "disasm x --arch ''", "contract ''", "render bitnet.toml --wait ''",
        "contract ij,jk->ik --sizes i=8,i=9,j=8,k=8 --design floats.toml",
        "contract ij,jk->ik --sizes i=8,i=8,j=8,k=8 --design floats.toml", f"{CONTRACT} --staged AAAA",
        f"{CONTRACT} --once BB",
    ), "Invalid value for"),
    # estimate
    "estimate": "name a design, or a table with --csv",
    "estimate bitnet.toml --csv x.csv": "name either a design or a table, not both",
    **{f"estimate --csv x.csv {words}": "and --dispatch go with a design; a table has columns for" for words in
       ("--tokens 4", "--shape 1x2x3", "--rate 100", "--power turbo", "--kernel ideal", "--dispatch none")},
    "estimate --csv nowhere.csv": "nowhere.csv: cannot be read",
    "estimate --csv columns.csv": "bdforge: columns.csv: missing columns dtype_a, dtype_b, dtype_c, m_ct,",
    "estimate --csv columns.csv --out there.csv": "there.csv exists; choose another file",
    "estimate bitnet.toml --out x.csv": "--out and --force go with --csv or --model",
    "estimate bitnet.toml --force": "--out and --force go with --csv or --model",
    "estimate bitnet.toml --model bitnet-2b": "give --tokens, of bitnet-2b",
    "estimate bitnet.toml --model bitnet-2b --versus cpu": "give one of --model, --shapes and --versus",
    "estimate bitnet.toml --model bitnet --shapes 1x2x3": "give one of --model, --shapes and --versus",
    "estimate bitnet.toml --versus cpu --shapes 1x2x3": "give one of --model, --shapes and --versus",
    "estimate bitnet.toml --tokens 5": "--tokens and --fused go with --model",
    "estimate bitnet.toml --fused qkv": "--tokens and --fused go with --model",
    "estimate bitnet.toml --shapes 1x2x3 --fused qkv": "--tokens and --fused go with --model",
    "estimate bitnet.toml --cpu-tops 1": "--cpu-tops goes with --versus cpu",
    "estimate bitnet.toml --versus gpu": "--versus 'gpu': only cpu is there",
    "estimate bitnet.toml --rate 100 --kernel ideal": "--rate and --kernel ideal exclude each other; give one",
    "estimate bitnet.toml --rate 513":
        "--rate 513 is more than the 512 MACs per cycle that a core of strix_halo does at most",
    **{f"estimate add.toml {words}": "need a GEMM, not elementwise" for words in
       ("--model bitnet", "--rate 5", "--kernel ideal")},
    "estimate bitnet.toml --device toaster": "unknown device 'toaster'",
    "estimate bitnet.toml --device phoenix": "array.columns = 8, but phoenix has 4",
    "estimate bitnet.toml --kernel magic": "'magic' is not one of compiled, ideal, fitted",
    "estimate bitnet.toml --shape 9999999x256x64": "M = 9999999 is outside 1 to 1048576",
    "estimate bitnet.toml --shape 1x300000x1": "K = 300000 could overflow the sums",
    "estimate bitnet.toml --power eco":
        "no clock of strix_halo is published for power mode 'eco'; known: saver, balanced, turbo",
    "estimate bitnet.toml --dispatch mail": "dispatch 'mail' is not one of xrt, elf, raw, runlist",
    "estimate turned.toml --shape 64x64x64 --kernel assembled --device phoenix":
        "with transposed micro-tiles of C; or choose --kernel fitted",
    "estimate bare.toml": "bdforge: bare.toml: has no problems; give one with --shape MxKxN",
    # tune, balance, sweep
    "tune --shapes 12x3": "'12x3' is not bitnet-2b, gpt2, a file or MxKxN",
    "tune --shapes 0x8x8": "M = 0 is not within 1 and",
    "tune --shapes 8x8x8 --tokens 4": "says its own M",
    "tune --types i8,i2": "are not A,B,C",
    "tune --types i8,bf16,f32": "no kernel for int8 x bf16",
    "tune --types i9,i2,i32": "unknown element type 'i9'",
    "tune --device strix_hall": "unknown device 'strix_hall'",
    "tune --kernel best": "kernel 'best' is not one of compiled, ideal, fitted",
    "tune --layouts row": "B of int2 can be packed, not row",
    "tune --a-layout packed": "A and C are row or column; only B is packed",
    "tune --c-layout packed": "A and C are row or column; only B is packed",
    "tune --shapes 64x64x64 --symmetric --fix rho=2": "is not NAME=VALUE,..., each name once",
    "tune --shapes 64x64x64 --fix width=3": "is not NAME=VALUE,..., each name once",
    "balance --b-layout diagonal": "unknown order 'diagonal'",
    "balance --shape 7": "is not MxKxN",
    "balance --kernel best": "kernel 'best' is not one of",
    "balance --types int8": "are not A,B,C",
    "sweep wide.toml --layouts row,diagonal": "unknown order 'diagonal'",
    "sweep wide.toml --sizes 1024,x": "'1024,x': give whole numbers from 1",
    f"sweep wide.toml --sizes {'9' * 30}": "give whole numbers from 1",
    "sweep wide.toml --picture s.gif": "pictures are written as .png or .svg",
    "sweep wide.toml --device phoenix": "array.columns = 8, but phoenix has 4",
    "sweep wide.toml -o there.csv": "there.csv exists",
    "sweep bitnet.toml --layouts row": "packed",
    # plot
    "plot roofline -o o.png --types i8": "'i8' is not the types of A and B, such as int8,int2",
    "plot roofline -o o.png --types i8,i8,i32": "'i8,i8,i32' is not the types of A and B",
    "plot roofline -o o.png --types i8,i9": "unknown element type 'i9'",
    "plot roofline -o o.png --types i32,i32": "no peak is known for int32 x int32",
    "plot roofline -o o.png --design bare.toml": "bare: has no problems; give a shape",
    "plot roofline -o o.png --design bare.toml --shapes 1x300000x1": "K = 300000 could overflow",
    "plot kmt -o o.gif --design bare.toml": "pictures are written as .png or .svg",
    "plot kmt -o here.png --design bare.toml": "here.png exists; choose another file",
    "plot kmt -o no/o.png --design bare.toml": "there is no folder no",
    "plot kmt -o o.png": "give either --design or --tile",
    "plot kmt -o o.png --design bare.toml --tile 1x2x3": "give either --design or --tile",
    "plot kmt -o o.png --tile 64x64": "is not MxKxN",
    "plot kmt -o o.png --tile '64 by 64'": "'64 by 64' is not MxKxN",
    "plot kmt -o o.png --tile 64x64x64": "give the problem",
    "plot kmt -o o.png --tile 16x32x48 --types i8,i8 --shape 1x2x3": "is not the types of A, B and C",
    "plot kmt -o o.png --tile 16x32x48 --types i8,i8,i8,i32 --shape 1x2x3": "not the types of A, B and C",
    "plot kmt -o o.png --design bare.toml --shape 1x300000x1": "K = 300000 could overflow",
    "plot kmt -o o.png --design bare.toml --shape 1x3x1 --kernel best": "kernel 'best' is not one of",
    "plot pattern -o o.png --sizes 2": "give either --sizes and --strides, or --design",
    "plot pattern -o o.png --strides 2": "give either --sizes and --strides, or --design",
    "plot pattern -o o.png --sizes 2 --strides 1 --design bare.toml": "give either --sizes and --strides",
    "plot pattern -o o.png --sizes 2 --strides 1.5": "Invalid value for --strides: '1.5': give whole numbers",
    "plot pattern -o o.png --sizes 2 --strides 1,1": "give one stride for each size",
    "plot pattern -o o.png --sizes 4096,4096 --strides 4096,1": "reaches beyond",
    "plot pattern -o o.png --sizes 4,2 --strides 5,2 --width 1048577": "--width",
    "plot pattern -o o.png --design bare.toml --operand b": "there is no reorder to draw",
    "plot pattern -o o.png --design bare.toml --operand d": "is not a, b or c",
    "plot utilisation -o o.png --design bare.toml": "bare: has no problems; give a shape",
    "plot utilisation -o o.png --design none.toml": "none.toml: cannot be read: No such file or directory",
    # emulate, insts, run, device
    f"{COPY} --permissive everything": f"bdforge: no check is called everything; there is {', '.join(NAMES)}",
    f"{COPY} --schedule chaotic": "bdforge: no schedule is called 'chaotic'; there is in-order, random",
    f"{COPY} --dram old": "bdforge: no DRAM is called 'old'; there is fresh, stale",
    f"{COPY} --sequence other": "bdforge: copy.mlir: there is no runtime sequence 'other'; there is main::sequence",
    f"{COPY} --module other": "bdforge: copy.mlir: there is no device 'other'; there is main",
    f"{COPY} --insts missing.bin": "bdforge: missing.bin: cannot be read: No such file or directory",
    f"{COPY} --insts a.npy": "bdforge: a.npy: this is an .npy array; ",
    f"{COPY} --insts copy.mlir": "bdforge: copy.mlir: line 2: 'module' is no word ",
    f"{COPY} --arg missing.npy": "bdforge: missing.npy: cannot be read: No such file or directory",
    f"{COPY} --arg copy.mlir": "bdforge: copy.mlir: is not an .npy array, it begins with",
    f"{COPY} --arg a.npy": "bdforge: 3 arrays were given, but @sequence takes 2",
    f"{COPY} --budget 0": "budget must be a whole number from 1",
    f"{COPY} --timing --device vega": "no timing for device 'vega'; known: phoenix",
    f"{COPY} --timing --kernel-cycles work": "'work' is not NAME=CYCLES",
    f"{COPY} --timing --kernel-cycles work=-1": "'work=-1' is not NAME=CYCLES",
    f"{COPY} --timing --timeline a.npy": "a.npy exists",
    "insts decode missing.bin": "bdforge: missing.bin: cannot be read: No such file or directory",
    "insts decode copy.mlir": "bdforge: copy.mlir: line 2: 'module' is no word ",
    "insts extract copy.mlir -o x.bin": "bdforge: copy.mlir: line 2: 'module' is no word ",
    "insts extract a.npy -o c.npy": "bdforge: a.npy: this is an .npy array; ",
    "insts encode missing.mlir -o x.bin": "bdforge: missing.mlir: cannot be read: No such file or directory",
    "insts encode copy.mlir -o a.npy": "bdforge: a.npy exists; choose another file, or replace it with --force",
    "insts encode copy.mlir -o none/x.bin": "bdforge: none/x.bin: there is no folder none",
    "insts encode copy.mlir -o x.bin --sequence other":
        "no match for a runtime sequence called 'other'; the module has main::sequence",
    "insts diff a.npy b.npy": "bdforge: a.npy: this is an .npy array; ",
    "run mine --kernel fitted": "--kernel goes with --timing or --timeline",
    "run mine --tensor up": "--tensor names matrices of a file; give it with --weights",
    "run folder.toml --kernel ideal": "bdforge: folder.toml/manifest.json: there is",
    "device": "give a program to run: bdforge device -- COMMAND...",
    "device --serve 3 -- true": "give a program to run: bdforge device -- COMMAND...",
    "device --serve 999": "file 999 is no socket: Bad file descriptor",
    # render, convert, contract, new
    "render bitnet.toml --wait wide --in-flight 3": "sequence.in_flight = 3 is outside 0 to 1",
    "convert none.mlir --dialect 1.4": "bdforge: none.mlir: cannot be read: No such file or directory",
    f"{CONTRACT} --sizes a=b": "is no list of sizes",
    f"{CONTRACT} --strides 1,1": "give three",
    f"{CONTRACT} --staged AX": "'AX' is not A, B and C",
    f"{CONTRACT} --once ABD": "'ABD' is not A, B and C",
    "contract ab,bc->ac --sizes a=8,b=8,c=8 --design add.toml": "is no GEMM design; contractions run on one",
    "new": "name a folder",
    "new --operator 'RMS norm'": "choose small letters",
    "new --operator gemm": "there is an operator gemm",
}  # fmt: skip
"""Command lines, and what is said of each."""


@pytest.fixture
def files(tmp_path):
    """Designs, a loopback of 96 words with its arrays, and files that are not to be replaced."""
    for name, design in DESIGNS.items():
        (tmp_path / f"{name}.toml").symlink_to(ROOT / f"designs/{design}.toml")
    for name, text in {
        "bare.toml": BARE,
        "turned.toml": TURNED,
        "copy.mlir": loopback(),
        "columns.csv": "device,M\nnpu2,1\n",
    }.items():
        (tmp_path / name).write_text(text)
    for name in ("here.png", "there.csv"):
        (tmp_path / name).write_text("mine")
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.zeros(96, np.int32))
    (tmp_path / "folder.toml").mkdir()


@pytest.mark.daily(every=2)
@pytest.mark.parametrize("command", REFUSED, ids=lambda command: command.replace(SCREEN, "")[:60])
def test_a_command_line_is_refused(files, refused, command: str):
    before = {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}
    err = refused(command, REFUSED[command])
    assert SCREEN not in err
    assert err.startswith(("bdforge: ", "Usage: "))
    assert {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")} == before
