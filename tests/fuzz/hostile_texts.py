"""Texts that nobody writes by hand: deep, huge or torn ones, by name."""

from fuzz.mutations import TYPES
from support.small_designs import core, loopback

DEVICE = "module {{ aie.device(npu2) {{ %t = aie.tile(0, 2)\n{}\n}} }}"
LOOP = "scf.for %i = %c0 to %c8 step %c1 {"
HOSTILE = {
    "nothing": "",
    "blanks": " \n\t\r\n" * 1000,
    "byte_order_mark": "\ufeff" + loopback(),
    "carriage_returns": loopback().replace("\n", "\r\n"),
    "nul": "module {\0}",
    "lone_surrogate": "module @\ud800 {}",
    "open_string": 'module { "aie.device',
    "open_comment": "module { /* ",
    "open_dense": DEVICE.format("%b = aie.buffer(%t) : memref<4xi32> = dense<[1, 2"),
    "deep_regions": "module {" * 3000,
    "deep_regions_closed": "module {" * 3000 + "}" * 3000,
    "deep_dense": DEVICE.format(f"%b = aie.buffer(%t) : memref<4xi32> = dense<{'[' * 5000}1{']' * 5000}>"),
    "deep_types": DEVICE.format(f"func.func private @f({'tuple<' * 4000}i32{'>' * 4000})"),
    "deep_attributes": DEVICE.format(f"%b = aie.buffer(%t) {{a = {'[' * 4000}{']' * 4000}}} : memref<4xi32>"),
    "deep_loops": core(LOOP * 400 + "}" * 400 + "aie.end"),
    "deep_generic": '"builtin.module"() ({' * 2000,
    "long_name": "module @" + "a" * 1_000_000 + " {}",
    "long_number": DEVICE.format(f"%l = aie.lock(%t, {'9' * 10000})"),
    "long_hex_number": DEVICE.format(f"%l = aie.lock(%t, 0x{'f' * 10000})"),
    "long_float": DEVICE.format(f"%b = aie.buffer(%t) : memref<1xf32> = dense<1.0e{'9' * 50}>"),
    "huge_buffer": DEVICE.format("%b = aie.buffer(%t) : memref<9999999999999xi32> = dense<1>"),
    "huge_rank": DEVICE.format(f"%b = aie.buffer(%t) : memref<{'2x' * 200}i32> = dense<1>"),
    "huge_global": DEVICE.format('memref.global "private" constant @g : memref<99999999999xi32> = dense<7>'),
    "huge_vector": core("%v = arith.constant dense<1> : vector<99999999999xi32>\naie.end"),
    "huge_argument": loopback().replace("%a: memref<96xi32>", "%a: memref<99999999999999xi32>"),
    "huge_width": DEVICE.format("%b = aie.buffer(%t) : memref<4xi99999999>"),
    "huge_repeat": loopback().replace("^fill, ^second)", "^fill, ^second, repeat_count = 99999999999)"),
    "huge_length": loopback(fill="0, 99999999999999"),
    "huge_transfer": loopback().replace("%a[0, 0, 0, 0][1, 1, 1, 96]", "%a[0, 0, 0, 0][1, 1, 1, 2147483647]"),
    "huge_walk": loopback().replace(
        "%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1]", "%a[0, 0, 0, 0][1, 1023, 1023, 1000][0, 1, 1, 2]"
    ),
    "huge_sizes": loopback(fill="0, 32, [<size = 9999999999, stride = 9999999999>]"),
    "huge_pads": loopback(
        send="0, 32, [<size = 8, stride = 1>], [<const_pad_before = 9999999999, const_pad_after = 999999999>]"
    ),
    "zero_dimension": DEVICE.format("%b = aie.buffer(%t) : memref<0xi32>"),
    "dynamic_dimension": DEVICE.format("%b = aie.buffer(%t) : memref<?xi32>"),
    "endless_loop": core("cf.br ^again\n^again:\n cf.br ^again"),
    "endless_for": core("%big = arith.constant 9223372036854775807 : index\n"
                        "scf.for %i = %c0 to %big step %c1 {\n}\naie.end"),
    "loop_without_step": core("scf.for %i = %c0 to %c8 step %c0 {\n}\naie.end"),
    "division_by_zero": core("%q = arith.divsi %c8, %c0 : index\naie.end"),
    "huge_shift": core("%big = arith.constant 9223372036854775807 : index\n%q = arith.shli %c8, %big : index\naie.end"),
    "index_far_outside": core("%big = arith.constant 9223372036854775807 : index\n"
                              "%q = memref.load %data[%big] : memref<8xi32>\naie.end"),
    "region_without_end": core(""),
    "recursive_alias": "#a = #a\nmodule {}",
    "unknown_dialect": 'module { "nobody.knows"() : () -> () }',
    "many_devices": "module {" + "aie.device(npu2) @d {}\n" * 50 + "}",
    "device_in_device": "module { aie.device(npu2) { aie.device(npu2) { } } }",
    "sequence_runs_itself": "module { aie.device(npu2) @d { aie.runtime_sequence @s() {"
                            " aiex.configure @d { aiex.run @s() : () } } } }",
}  # fmt: skip

HOSTILE |= {f"buffer_of_{element}": DEVICE.format(f"%b = aie.buffer(%t) : memref<2x{element}>") for element in TYPES}
