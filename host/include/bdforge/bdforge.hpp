#pragma once
/// Everything of the C++ library.

#include "bdforge/design.hpp"
#include "bdforge/error.hpp"
#include "bdforge/floats.hpp"
#include "bdforge/gemm.hpp"
#include "bdforge/job.hpp"
#include "bdforge/layers.hpp"
