#include "../stub.hpp"
