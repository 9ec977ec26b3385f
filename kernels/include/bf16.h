// bfloat16 x bfloat16 as each generation multiplies it fastest, in memory with elements C: block floats on AIE2P.
#pragma once

#include "arch.h"

#if __AIE_ARCH__ == 21
#include "block_floats.h"
template <class C> using Bfloat16Product = Bfloat16AsBlocks<C>;
#else
#include "floats.h"
template <class C> using Bfloat16Product = Floats<4, 8, 4, C>;
#endif
