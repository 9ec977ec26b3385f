// Each function must be refused by the compiler with the sentence in its comment. Never linked.
#include <aie_api/aie.hpp>

using Bytes = aie::vector<uint8, 64>;
using Ints = aie::vector<int8, 64>;
using Tile = aie::mmul<8, 8, 8, int8, int8>;

void f01() { aie::vector<int8, 8> v; }  // no vector is shorter than 128 bit
void f02() { aie::vector<int16, 24> v; }  // the number of lanes must be a power of two
void f03() { aie::vector<double, 8> v; }  // bit integer, bfloat16 or float
void f04() { aie::vector<int32, 512> v; }  // longer than 8192 bit are refused
void f05() { aie::accum<acc32, 4> a; }  // 8 to 128 lanes of 32 bit
void f06() { aie::accum<int32, 16> a; }  // the tag must be acc32
void f07(const Bytes &v) { aie::bit_and(v, 15); }  // write uint8(15), not 15
void f08(const Bytes &v, const Ints &w) { aie::add(v, w); }  // must have the same element type
void f09(const Bytes &v, const aie::vector<uint8, 32> &w) { aie::sub(v, w); }  // must have the same number of lanes
void f10(const aie::vector<int4, 64> &v) { aie::add(v, v); }  // this operation has no 4-bit form
void f11() { aie::mmul<8, 8, 4, int8, int8> c; }  // this architecture has no such M x K x N [21]
void f12() { aie::mmul<4, 16, 8, int8, int8> c; }  // this architecture has no such M x K x N [21]
void f13() { aie::mmul<4, 16, 8, int8, int4> c; }  // this architecture has no such M x K x N [21]
void f14() { aie::mmul<4, 16, 16, int8, int4> c; }  // this architecture has no such M x K x N [20]
void f15() { aie::mmul<4, 16, 16, int4, int8> c; }  // this architecture has no such M x K x N
void f16() { aie::mmul<8, 8, 8, int8, int8, acc64> c; }  // this shape accumulates in another width
void f17(Tile c, const Bytes &a, const Ints &b) { c.mac(a, b); }  // operand A must be a vector of exactly TA
void f18(Tile c, const Ints &a, const aie::vector<int8, 32> &b) { c.mul(a, b); }  // operand B must be a vector of
void f19(int8 *p, const Bytes &v) { aie::store_v(p, v); }  // the pointer's type must be the vector's element type
void f20(const aie::vector<int32, 16> &v) { v.unpack(); }  // 32-bit lanes have no wider type
void f21(const aie::vector<int4, 64> &v) { v.pack(); }  // 4-bit lanes have no narrower type
void f22(const Bytes &v) { v.extract<128>(0); }  // the part is longer than the vector
void f23(const Bytes &v) { v.grow<32>(); }  // the result is shorter than the vector
void f24(const Bytes &v, const aie::mask<32> &m) { aie::select(v, v, m); }  // the mask must have one bit per lane
void f25(const Bytes &v, const Ints &w) { aie::concat(v, w); }  // all parts must have the same type
void f26() { aie::add(1, 2); }  // one operand must be a vector
void f27() { aie::mmul<4, 16, 4, bfloat16, bfloat16> c; }  // bfloat16 has the shapes 4x8x4
void f28() { aie::mmul<4, 8, 4, float, float> c; }  // integers, both bfloat16 or both bfp16ebs8
void f29() { aie::mmul<8, 8, 8, bfloat16, bfp16ebs8> c; }  // integers, both bfloat16 or both bfp16ebs8
void f30() { aie::mmul<8, 8, 8, bfp16ebs8, bfp16ebs8> c; }  // bfp16ebs8 has the shape 8x8x8, on AIE2P only [20]
void f31(const aie::vector<bfloat16, 32> &v) { aie::neg(v); }  // no floating-point form of this operation
void f32(const aie::accum<accfloat, 16> &a) { a.to_vector<int32>(); }  // use to_fixed for integers
void f33() { aie::accum<accfloat, 256> a; }  // accfloat has 4 to 128 lanes
