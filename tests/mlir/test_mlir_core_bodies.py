"""Operations of upstream's dialects in core bodies, in custom and generic form."""

from mlir_texts import core

from bdforge.array.mlir import parse, print_generic, print_module

BODIES = """
%x = arith.addi %i, %i overflow<nsw> : i32
%x = arith.cmpi slt, %i, %i : i32
%x = arith.select %p, %i, %i : i32
%x = arith.trunci %i : i32 to i8
%x = arith.extsi %i : i32 to i64
%x = arith.divsi %i, %i : i32
%x = arith.remsi %i, %i : i32
%x = arith.mulf %f, %f fastmath<fast> : f32
%x = arith.sitofp %i : i32 to f32
%x = arith.truncf %f : f32 to bf16
%x = arith.index_cast %i : i32 to index
%x = arith.index_castui %i : i32 to index
%x = arith.constant 0x7F800000 : f32
%x = arith.constant 9223372036854775807 : index
%x = arith.constant -1 : i8
%x:2 = arith.addui_extended %i, %i : i32, i1
%x = math.sqrt %f : f32
%x = memref.load %b[%c0] : memref<64xi32>
memref.store %i, %b[%c0] : memref<64xi32>
memref.copy %b, %b : memref<64xi32> to memref<64xi32>
%x = memref.cast %b : memref<64xi32> to memref<?xi32>
%x = memref.cast %b : memref<64xi32> to memref<*xi32>
%x = memref.memory_space_cast %b : memref<64xi32> to memref<64xi32, 1>
%x = memref.subview %b[8] [16] [1] : memref<64xi32> to memref<16xi32, strided<[1], offset: 8>>
%x = memref.reinterpret_cast %b to offset: [0], sizes: [8, 8], strides: [8, 1] : memref<64xi32> to memref<8x8xi32>
memref.assume_alignment %b, 64 : memref<64xi32>
%x = memref.collapse_shape %b2 [[0, 1]] : memref<8x8xi32> into memref<64xi32>
%x = memref.view %bytes[%c0][] : memref<256xi8> to memref<64xi32>
scf.for %j = %c0 to %c1 step %c1 { memref.store %i, %b[%j] : memref<64xi32> }
%x = scf.for %j = %c0 to %c1 step %c1 iter_args(%a = %i) -> (i32) { scf.yield %a : i32 }
scf.if %p { aie.event(0) } else { aie.event(1) }
%x = scf.if %p -> (i32) { scf.yield %i : i32 } else { scf.yield %i : i32 }
scf.while : () -> () { scf.condition(%p) } do { scf.yield }
%x = scf.while (%a = %i) : (i32) -> i32 { scf.condition(%p) %a : i32 } do { ^bb0(%z: i32): scf.yield %z : i32 }
%x = scf.index_switch %c0 -> i32 case 0 { scf.yield %i : i32 } default { scf.yield %i : i32 }
scf.index_switch %c0 case 0 { aie.event(0) } case 3 { } default { }
scf.execute_region { scf.yield }
affine.for %j = 0 to 64 step 2 { memref.store %i, %b[%j] : memref<64xi32> }
affine.for %j = 0 to 8 { %y = affine.load %b[%j * 8 + 3] : memref<64xi32> }
affine.for %j = 0 to %c1 { affine.store %i, %b[%j floordiv 2 + %c0] : memref<64xi32> }
%x = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%c0)
affine.if affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 == 0)>(%c0)[%c1] { aie.event(0) } else { aie.event(1) }
affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%c0) { }
%x = vector.load %b[%c0] : memref<64xi32>, vector<16xi32>
vector.store %v, %b[%c0] : memref<64xi32>, vector<16xi32>
%x = vector.transfer_read %b[%c0], %i {in_bounds = [true]} : memref<64xi32>, vector<16xi32>
vector.transfer_write %v, %b[%c0] : vector<16xi32>, memref<64xi32>
%x = vector.broadcast %i : i32 to vector<16xi32>
%x = vector.fma %w, %w, %w : vector<16xf32>
%x = vector.shape_cast %v : vector<16xi32> to vector<4x4xi32>
%x = vector.reduction <add>, %v : vector<16xi32> into i32
%x = aie.get_cascade() : vector<16xi32>
aie.put_cascade(%v : vector<16xi32>)
%x = aie.get_stream(%i : i32) : i32
aie.put_stream(%i : i32, %f : f32)
aie.event(1)
func.call @k(%b, %i) : (memref<64xi32>, i32) -> ()
%x = func.call @g(%i) : (i32) -> i32
cf.br ^next ^next: cf.cond_br %p, ^next, ^last ^last:
cf.br ^loop(%i : i32) ^loop(%a: i32): cf.cond_br %p, ^loop(%a : i32), ^last ^last:
aie.use_lock(%l, AcquireGreaterEqual, 1, Blocking)
aie.use_lock(%l, Release) {acq_en = false}
""".strip().splitlines()


def reads_back(body: str) -> bool:
    module = parse(core(body))
    return all(module.is_structurally_equivalent(parse(form(module))) for form in (print_module, print_generic))


def test_core_bodies_read_and_print():
    whole = "\n".join(f"scf.execute_region {{ {body}\nscf.yield }}" for body in BODIES)
    assert reads_back(whole), [body for body in BODIES if not reads_back(body)]
