// Names of the API that the stand-in knows and refuses, each with its reason; docs/kernels.md lists them.
#pragma once

#include "types.hpp"

namespace hostapi {

template <class...> inline constexpr bool no_type = false;

}  // namespace hostapi

#define HOSTAPI_REFUSED_CALL(name, reason)                                              \
    template <class T = void, auto... N, class... X> int name(const X &...) {               \
        static_assert(hostapi::no_type<X...>, "aie API, " #name ": refused, " reason);  \
        return 0;                                                                       \
    }
#define HOSTAPI_REFUSED_TYPE(name, reason, ...)                                         \
    template <__VA_ARGS__, class... X> struct name {                                    \
        static_assert(hostapi::no_type<X...>, "aie API, " #name ": refused, " reason);  \
    };

namespace aie {

HOSTAPI_REFUSED_TYPE(sparse_vector, "its products skip lanes by masks whose order is not known", class T, unsigned N)
HOSTAPI_REFUSED_TYPE(sparse_vector_input_buffer_stream, "see sparse_vector", class T, unsigned N)
HOSTAPI_REFUSED_TYPE(linear_approx, "the order of slopes and offsets in its tables is not known; "
                                    "lut_based_ops.h has the functions themselves", class T, class Lut)
HOSTAPI_REFUSED_TYPE(sliding_mul_sym_ops, "write it as aie::sliding_mul_ops with all coefficients", unsigned Lanes,
                     unsigned Points, int CoeffStep = 1, int DataStepX = 1, int DataStepY = 1)
HOSTAPI_REFUSED_TYPE(sliding_mul_ch_ops, "write it as aie::mmul", unsigned Outputs, unsigned Channels, unsigned Points)
HOSTAPI_REFUSED_CALL(tensor_dim, "walk the tensor by a pointer or an iterator")
HOSTAPI_REFUSED_CALL(make_tensor_descriptor, "walk the tensor by a pointer or an iterator")
HOSTAPI_REFUSED_CALL(make_tensor_buffer_stream, "walk the tensor by a pointer or an iterator")
HOSTAPI_REFUSED_CALL(make_restrict_tensor_buffer_stream, "walk the tensor by a pointer or an iterator")
HOSTAPI_REFUSED_CALL(op_sign, "signs at run time: give operands the type that they have")
HOSTAPI_REFUSED_CALL(sincos, "only the first generation has it")
HOSTAPI_REFUSED_CALL(sin, "only the first generation has it")
HOSTAPI_REFUSED_CALL(cos, "only the first generation has it")
HOSTAPI_REFUSED_CALL(fft_dit_r2_stage, "complex numbers are not modelled")
HOSTAPI_REFUSED_CALL(fft_dit_r4_stage, "complex numbers are not modelled")

}  // namespace aie

HOSTAPI_REFUSED_CALL(acquire_equal, "locks belong to the core's program in MLIR")
HOSTAPI_REFUSED_CALL(acquire_greater_equal, "locks belong to the core's program in MLIR")
HOSTAPI_REFUSED_CALL(release, "locks belong to the core's program in MLIR")
HOSTAPI_REFUSED_CALL(get_cycles, "kernels on the host have no time; bdforge run --timing has")
#undef HOSTAPI_REFUSED_CALL
#undef HOSTAPI_REFUSED_TYPE
