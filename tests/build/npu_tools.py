"""Stand-ins for Peano, mlir-aie and XRT: they leave what the real ones would leave, where they would leave it."""

from pathlib import Path

from scratch_tree import WRITE_OUTPUT, program

# Looks for the kernel object and xclbinutil as aiecc does; knows the options of its time and no others, the dialect of
# its time and no other, and fills the names of its time in.
AIECC = """
case "$*" in *--version*) echo aiecc VERSION; exit;; esac
for mlir; do :; done
command -v xclbinutil >/dev/null || { echo "no xclbinutil or no object"; exit 3; }
grep -q link_with "$mlir" && ! test -f gemm_i8_i2_bitnet.o && { echo "no xclbinutil or no object"; exit 3; }
grep -q 'use_lock(.*, FOREIGN' "$mlir" && { echo "error: $mlir: expected another form"; exit 4; }
for word; do case "$word" in
  REFUSED) echo "unknown option $word"; exit 5;;
  --tmpdir=*) mkdir -p "${word#*=}" && cp "$mlir" "${word#*=}/input_with_addresses.mlir";;
  --xclbin-name=*) echo "$*" >"${word#*=}";;
  --npu-insts-name=*)
    for name in $(sed -n 's/.*aie.runtime_sequence @\\([a-z0-9_]*\\).*/\\1/p' "$mlir"); do
      echo "$name" >"$(echo "${word#*=}" | sed "FILLED")"
    done;;
esac; done"""

TIMES = {
    "march": {"VERSION": "1.3.4", "FOREIGN": "%", "REFUSED": "--get-*", "FILLED": "s/{1}/$name/;s/{0}/main/"},
    "1.4": {
        "VERSION": "1.4.2", "FOREIGN": "[0-9]", "REFUSED": "--aie-*|--no-*", "FILLED": "s/{0}/main_$name/",
    },
}  # fmt: skip

XCLBINUTIL = """
case "$*" in *--version*) echo xclbinutil 1; exit;; esac
test -f "$2" || exit 1
echo '{"aie_partition": {"PDIs": [{"file_name": "0-1.pdi"}]}}' >"${4#AIE_PARTITION:JSON:}"
echo configuration >0-1.pdi"""

AIEBU = """
case "$*" in *--version*) echo aiebu-asm 1; exit;; esac
test "$1 $2 $3" = "-t aie2_config -j" && cp "$4" "$6" """


def aiecc_of(time: str) -> str:
    """The script of an aiecc of "march" or "1.4"."""
    script = AIECC
    for mark, text in TIMES[time].items():
        script = script.replace(mark, text)
    return script


def npu_tools(folder: Path, time: str = "march") -> dict[str, str]:
    """The tools below `folder`, as environment variables; aiecc is of "march" or "1.4"."""
    peano, mlir_aie, xrt = folder / "peano", folder / "mlir aie", folder / "xrt"
    program(peano / "bin" / "clang++", f'[ "$1" = --version ] && echo clang 20 || {{ {WRITE_OUTPUT}; }}')
    program(peano / "bin" / "ld.lld", WRITE_OUTPUT)
    program(xrt / "bin" / "xclbinutil", XCLBINUTIL)
    program(xrt / "bin" / "aiebu-asm", AIEBU)
    (mlir_aie / "include" / "aie_api").mkdir(parents=True)
    (mlir_aie / "include" / "aie_api" / "aie.hpp").touch()
    program(mlir_aie / "bin" / "aiecc", aiecc_of(time))
    return {"PEANO_INSTALL_DIR": str(peano), "MLIR_AIE_INSTALL_DIR": str(mlir_aie), "XILINX_XRT": str(xrt)}
