// The kernels of this folder are for AIE2.
#pragma once

#include <aie_api/aie.hpp>

static_assert(__AIE_ARCH__ == 20, "kernels/aie2: compile with -D__AIE_ARCH__=20, or for a target that defines it");
