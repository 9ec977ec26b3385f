// Host stand-in for the part of the AIE API, and of the compilers' intrinsics, that kernels use.
//
// The same kernel source compiles against the real headers (Peano, for the device) and against these (g++ or clang,
// C++20, for the emulator). Results are those of the device; what the real headers refuse is refused at compile time
// (tests/kernels/data/api_probes.toml lists uses of both kinds), and what the device does silently wrong (misaligned
// accesses, undefined vectors and accumulators) throws hostapi::Fault. refused.hpp and docs/kernels.md say what is left
// out. Functions that the device approximates (inv, sqrt, invsqrt, exp2, tanh) are near it, not its bits:
// float_functions.hpp.
#pragma once

#include "accum.hpp"
#include "arithmetic.hpp"
#include "bfloat16.hpp"
#include "bfp16.hpp"
#include "bfp16_mmul.hpp"
#include "channels.hpp"
#include "chess.hpp"
#include "config.hpp"
#include "convert.hpp"
#include "float_accum.hpp"
#include "float_arithmetic.hpp"
#include "float_functions.hpp"
#include "float_mmul.hpp"
#include "intrinsic_products.hpp"
#include "intrinsic_shuffles.hpp"
#include "intrinsics.hpp"
#include "loops.hpp"
#include "lut.hpp"
#include "mask.hpp"
#include "memory.hpp"
#include "mmul.hpp"
#include "modes.hpp"
#include "native.hpp"
#include "operators.hpp"
#include "products.hpp"
#include "proxies.hpp"
#include "refused.hpp"
#include "shifts.hpp"
#include "shuffle.hpp"
#include "sliding.hpp"
#include "sums.hpp"
#include "types.hpp"
#include "unaligned.hpp"
#include "vector.hpp"
