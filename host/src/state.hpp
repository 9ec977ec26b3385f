#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/design.hpp"
#include "bdforge/gemm.hpp"
#include "chains.hpp"
#include "flight.hpp"
#include "streams.hpp"

namespace bdforge {

/// A design on a device.
class DesignState {
public:
    DesignState(Device on, Manifest facts, bool elf)
        : device(std::move(on)), manifest(std::move(facts)), full_elf(elf), streams(manifest) {}

    Device device;
    Manifest manifest;
    bool full_elf;
    std::unique_ptr<Context> context;
    Streams streams;
};

/// Packed weights; the buffer goes before the context it lives in.
class WeightsState {
public:
    std::shared_ptr<DesignState> design;
    std::shared_ptr<Buffer> buffer;
    std::size_t K;
    std::size_t N;
};

/// An operand's memory as the array sees it; `stride`: positions from line to line.
struct Matrix {
    std::shared_ptr<Buffer> buffer;
    std::size_t stride;
};

class GemmState {
public:
    std::shared_ptr<DesignState> design;
    std::shared_ptr<WeightsState> weights;
    std::size_t M, K, N;
    std::size_t stream_words;
    Matrix a, c;
    std::vector<std::byte> a_lines;  // where users write an A that the array reads in slabs, without gaps; else empty
    Flight flight;
    bool lent = false;  // to a batch that is running

    /// Makes what the user wrote as A visible to the device.
    void send_a();
};

class BatchState {
public:
    std::vector<std::shared_ptr<GemmState>> gemms;
    const Chains& chains;  // the flight's command
    Flight flight;
};

}  // namespace bdforge
