"""Valid designs to mutate."""

from functools import cache
from pathlib import Path

from oracle.array_text import mlir
from oracle.random_designs import random_design
from support.small_designs import core, loopback

FILES = Path(__file__).parents[1] / "mlir" / "data"
RANDOM_SEEDS = range(40, 52)
LOOPS = """%n = memref.load %data[%c2] : memref<8xi32>
      %big = arith.constant 1000 : index
      scf.for %i = %c0 to %big step %c1 {
        %odd = arith.remui %i, %c2 : index
        %is = arith.cmpi eq, %odd, %c1 : index
        scf.if %is {
          %x = memref.load %data[%odd] : memref<8xi32>
          %y = arith.divsi %x, %n : i32
          memref.store %y, %data[%c7] : memref<8xi32>
        }
      }
      func.call @probe(%data, %n) : (memref<8xi32>, i32) -> ()
      aie.end"""

VECTORS = """
module {
  aie.device(npu2) {
    %t = aie.tile(0, 2)
    %n = aie.tile(0, 3)
    func.func private @mean(memref<4x16xi8>, f32) -> i32
    %a = aie.buffer(%t) {sym_name = "a"} : memref<4x16xi8> = dense<3>
    %b = aie.buffer(%n) {sym_name = "b"} : memref<64xi32> = dense<5>
    %f = aie.buffer(%t) {sym_name = "f"} : memref<16xbf16> = dense<1.5>
    aie.cascade_flow(%n, %t)
    %k = aie.core(%n) {
      %c0 = arith.constant 0 : index
      %v = vector.load %b[%c0] : memref<64xi32>, vector<16xi32>
      %w = arith.addi %v, %v : vector<16xi32>
      aie.put_cascade(%w : vector<16xi32>)
      aie.end
    }
    %l = aie.core(%t) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %x = arith.constant 2.5 : f32
      %one = arith.constant 1 : i32
      %g = aie.get_cascade() : vector<16xi32>
      vector.store %g, %b[%c4] : memref<64xi32>, vector<16xi32>
      affine.for %i = 0 to 8 step 2 {
        %p = affine.load %b[%i + 1] : memref<64xi32>
        affine.store %p, %b[%i * 2] : memref<64xi32>
      }
      %m = func.call @mean(%a, %x) : (memref<4x16xi8>, f32) -> i32
      %s = scf.while (%z = %one) : (i32) -> i32 {
        %go = arith.cmpi slt, %z, %m : i32
        scf.condition(%go) %z : i32
      } do {
      ^bb0(%z: i32):
        %y = arith.addi %z, %one : i32
        scf.yield %y : i32
      }
      %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%q = %s) -> (i32) {
        %e = memref.load %a[%i, %c1] : memref<4x16xi8>
        %d = arith.extsi %e : i8 to i32
        %h = arith.muli %q, %d : i32
        scf.yield %h : i32
      }
      memref.store %r, %b[%c0] : memref<64xi32>
      %less = arith.cmpi ult, %c0, %c4 : index
      cf.cond_br %less, ^yes(%r : i32), ^no
    ^yes(%u: i32):
      %cut = arith.trunci %u : i32 to i8
      memref.store %cut, %a[%c1, %c1] : memref<4x16xi8>
      cf.br ^no
    ^no:
      %o = memref.load %f[%c1] : memref<16xbf16>
      %wide = arith.extf %o : bf16 to f32
      %product = arith.mulf %wide, %x : f32
      %back = arith.truncf %product : f32 to bf16
      memref.store %back, %f[%c0] : memref<16xbf16>
      aie.end
    }
  }
}
"""


@cache
def samples() -> tuple[str, ...]:
    """Hand-written designs, two that a real aie-opt accepts, and some random ones; the shortest ten."""
    files = [(FILES / f"{name}.mlir").read_text() for name in ("chain", "packets_pad")]
    found = [loopback(), core(LOOPS), VECTORS, *files, *(mlir(random_design(seed)) for seed in RANDOM_SEEDS)]
    return tuple(sorted(found, key=len)[:10])
