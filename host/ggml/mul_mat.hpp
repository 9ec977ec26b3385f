#pragma once
/// Which nodes of a graph are ours, and computing them.

#include <ggml-backend.h>

#include <cstddef>
#include <string>

#include "engine.hpp"

namespace bdforge::ggml {

/// What a stream did.
struct Counts {
    std::size_t graphs = 0, products = 0, submissions = 0, packed = 0;
};

/// One of a process's streams. Several may compute at once: each graph has the device to itself.
class Stream {
public:
    Stream();
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void set_threads(int threads) { workers_.threads = threads < 1 ? 1 : static_cast<std::size_t>(threads); }
    /// Computes nodes that `takes` said yes to; any bdforge::Error.
    void compute(ggml_cgraph* graph);

private:
    void multiply(const std::vector<ggml_tensor*>& nodes);
    std::shared_ptr<const Matrix> matrix(const ggml_tensor& weights, std::int64_t i2, std::int64_t i3);

    const User user_;
    Workers workers_;
    Codes codes_;
    Counts counts_;
};

/// Loads the design that the variables name, once per process; any bdforge::Error.
void start();
/// What runs the products, in words.
std::string device_words();

/// Whether a node is ours: products with TQ1_0 and TQ2_0 weights, and what computes nothing. Why another product of such
/// weights is not is said once.
bool takes(const ggml_tensor& node);

}  // namespace bdforge::ggml
