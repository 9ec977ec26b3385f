// What the generations of the array differ in, for kernels that are one source otherwise.
#pragma once

#include <aie_api/aie.hpp>

static_assert(__AIE_ARCH__ == 20 || __AIE_ARCH__ == 21, "kernels: __AIE_ARCH__ is 20 (AIE2) or 21 (AIE2P)");

constexpr bool is_aie2p = __AIE_ARCH__ == 21;

/// R: rows of the micro-tiles of A and C. V, to which all operands are aligned, is aie::vector_decl_align.
constexpr unsigned mac_rows = is_aie2p ? 8 : 4;
