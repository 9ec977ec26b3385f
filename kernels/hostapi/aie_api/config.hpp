// Architecture and host compiler settings of the stand-in for the AIE API.
#pragma once

#ifndef __AIE_ARCH__
#define __AIE_ARCH__ 21  // AIE2P; pass -D__AIE_ARCH__=20 for AIE2
#endif
#ifndef __AIEARCH__  // kernels define it, some of them wrongly; __AIE_ARCH__ decides, as with Peano
#define __AIEARCH__ __AIE_ARCH__
#endif
static_assert(__AIE_ARCH__ == 20 || __AIE_ARCH__ == 21, "hostapi: __AIE_ARCH__ must be 20 (AIE2) or 21 (AIE2P)");

#define HOSTAPI_INLINE inline __attribute__((always_inline))

namespace aie {

namespace arch {
inline constexpr unsigned version = __AIE_ARCH__;
}

/// Alignment in bytes that every vector access of the architecture accepts.
inline constexpr unsigned vector_decl_align = arch::version >= 21 ? 64 : 32;

}  // namespace aie

/// Trace marks of the device; nothing on the host.
HOSTAPI_INLINE void event0() {}
HOSTAPI_INLINE void event1() {}
