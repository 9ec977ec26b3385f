"""Stand-ins for Peano, mlir-aie and XRT: they leave what the real ones would leave, where they would leave it."""

from pathlib import Path

from scratch_tree import WRITE_OUTPUT, program

# Looks for the kernel object and xclbinutil as aiecc does; fills {1} in with the name of each sequence.
AIECC = """
case "$*" in *--version*) echo aiecc 1; exit;; esac
command -v xclbinutil >/dev/null && test -f gemm_i8_i2_bitnet.o || { echo "no xclbinutil or no object"; exit 3; }
for mlir; do :; done
for word; do case "$word" in
  --tmpdir=*) mkdir -p "${word#*=}" && cp "$mlir" "${word#*=}/input_with_addresses.mlir";;
  --xclbin-name=*) echo "$*" >"${word#*=}";;
  --npu-insts-name=*)
    for name in $(sed -n 's/.*aie.runtime_sequence @\\([a-z0-9_]*\\).*/\\1/p' "$mlir"); do
      echo "$name" >"$(echo "${word#*=}" | sed "s/{1}/$name/")"
    done;;
esac; done"""

XCLBINUTIL = """
case "$*" in *--version*) echo xclbinutil 1; exit;; esac
test -f "$2" || exit 1
echo '{"aie_partition": {"PDIs": [{"file_name": "0-1.pdi"}]}}' >"${4#AIE_PARTITION:JSON:}"
echo configuration >0-1.pdi"""

AIEBU = """
case "$*" in *--version*) echo aiebu-asm 1; exit;; esac
test "$1 $2 $3" = "-t aie2_config -j" && cp "$4" "$6" """


def npu_tools(folder: Path) -> dict[str, str]:
    """The tools below `folder`, as environment variables."""
    peano, mlir_aie, xrt = folder / "peano", folder / "mlir aie", folder / "xrt"
    program(peano / "bin" / "clang++", f'[ "$1" = --version ] && echo clang 20 || {{ {WRITE_OUTPUT}; }}')
    program(peano / "bin" / "ld.lld", WRITE_OUTPUT)
    program(xrt / "bin" / "xclbinutil", XCLBINUTIL)
    program(xrt / "bin" / "aiebu-asm", AIEBU)
    (mlir_aie / "include" / "aie_api").mkdir(parents=True)
    (mlir_aie / "include" / "aie_api" / "aie.hpp").touch()
    program(mlir_aie / "bin" / "aiecc", AIECC)
    return {"PEANO_INSTALL_DIR": str(peano), "MLIR_AIE_INSTALL_DIR": str(mlir_aie), "XILINX_XRT": str(xrt)}
