#pragma once
/// Everything of the C++ library.

#include "bdforge/design.hpp"
#include "bdforge/device.hpp"
#include "bdforge/error.hpp"
#include "bdforge/floats.hpp"
#include "bdforge/gemm.hpp"
#include "bdforge/job.hpp"
#include "bdforge/manifest.hpp"
