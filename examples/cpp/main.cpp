// consumer DESIGN.xclbin [DEVICE]: a GEMM of int8 by ternary weights, as a program of your own runs it.
// The device is "emulated" unless named; the manifest lies beside the xclbin, which the emulated device does not read.
#include <bdforge/bdforge.hpp>

#include <cstdio>
#include <exception>
#include <vector>

namespace {

/// C (M x N) = A (M x K) W by the definition.
std::vector<std::int32_t> expected(const std::vector<std::int8_t>& a, const std::vector<std::int8_t>& w, std::size_t M,
                                   std::size_t K, std::size_t N) {
    std::vector<std::int32_t> c(M * N);
    for (std::size_t i = 0; i < M * N; ++i)
        for (std::size_t k = 0; k < K; ++k) c[i] += a[i / N * K + k] * w[k * N + i % N];
    return c;
}

int run(const char* xclbin, const char* device_name) {
    const std::size_t M = 20, K = 96, N = 72;
    std::vector<std::int8_t> a(M * K), weights(K * N);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::int8_t>(i * 7 / 5 % 3 - 1);

    const auto device = bdforge::Device::open(device_name);
    const auto design = bdforge::Design::load(device, xclbin);
    bdforge::Gemm gemm(design, M, design.pack(weights.data(), K, N));
    std::vector<std::int32_t> c(M * N);
    gemm.run(a.data(), 0, c.data(), 0);
    const bool right = c == expected(a, weights, M, K, N);
    std::printf("%zux%zux%zu on %s: %s\n", M, K, N, device.name().c_str(), right ? "every element right" : "WRONG");
    return right ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) return 2;
    try {
        return run(words[1], count > 2 ? words[2] : "emulated");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "consumer: %s\n", error.what());  // what, where, the limit and the next step
        return 1;
    }
}
