// The designs that a test compiles into its program.
#pragma once
#include <vector>

#include "bdforge/program.hpp"

std::vector<bdforge::generator::Design> designs();
