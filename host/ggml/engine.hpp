#pragma once
/// Products of codes and ternary matrices by one design, loaded on one device.

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "matrix.hpp"
#include "rows.hpp"
#include "settings.hpp"

namespace bdforge::ggml {

/// A product to make of rows of codes: with this matrix, to y.
struct Product {
    std::shared_ptr<const Matrix> matrix;
    float* y;
    std::size_t stride;  // floats from row to row
};

/// What is loaded once per process. `multiply` and `pack` are for one thread at a time.
class Engine {
public:
    /// Opens the device and loads the design; any bdforge::Error.
    explicit Engine(const Settings& settings);

    /// The design and the device by name.
    std::string described() const;
    /// Whether the device is an NPU.
    bool is_npu() const { return design_.device().is_npu(); }
    /// Why the design cannot multiply M x K by K x N, "" when it can. For any thread.
    std::string refusal(std::size_t M, std::size_t K, std::size_t N) const;

    /// Errors as of Matrix.
    std::shared_ptr<const Matrix> pack(const Plane& plane, const Workers& workers) const;
    /// All products of the same codes, in one submission. `again`: whether the same matrices will come with other codes.
    /// RunError or TimeoutError when the device fails.
    void multiply(const Codes& codes, const std::vector<Product>& products, bool again, const Workers& workers);
    /// Gives up what is kept for later products.
    void forget() { rows_.clear(); }

private:
    using Range = std::pair<std::size_t, std::size_t>;  // of a row's codes: the first, how many
    /// A list of products, ready to run.
    struct Run {
        std::vector<std::shared_ptr<const Matrix>> matrices;
        std::vector<Range> inputs;
        std::vector<Job> jobs;  // one for each part of each matrix
        std::optional<Batch> batch;
    };
    /// Memory and runs for products of M rows; outputs by columns and place in the run.
    struct Rows {
        std::size_t M;
        std::map<Range, Resident> inputs;
        std::map<std::pair<std::size_t, std::size_t>, Resident> outputs;
        std::optional<Resident> scales;
        std::map<std::vector<const Matrix*>, Run> runs;
    };

    Rows& rows_of(std::size_t M);
    Run prepared(Rows& rows, const std::vector<Product>& products) const;
    Job job(Rows& rows, const Part& part, std::size_t N, std::size_t place) const;
    void start(Rows& rows, Run& run, const Codes& codes) const;
    void deliver(const Run& run, const Codes& codes, const std::vector<Product>& products,
                 const Workers& workers) const;

    Design design_;
    bool scaled_;           // whether the array scales, and rounds to bf16
    std::list<Rows> rows_;  // the latest first
    mutable std::mutex guard_;
    mutable std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::string> refusals_;
};

}  // namespace bdforge::ggml
