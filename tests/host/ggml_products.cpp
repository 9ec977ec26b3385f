// Products by our backend through ggml's public API, against sums in whole numbers. No decoding of ggml's, no vectors: what
// is expected comes from the weights before ggml packed them. Each case prints a line; exit code 1 at the first that fails.

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int block = 256;

/// Weights of N rows of K: whole numbers -1, 0, 1, and a scale for each block.
struct Weights {
    int K, N;
    std::vector<int> trits;
    std::vector<float> scales;

    /// Scales are `one` everywhere, or differ from block to block; some blocks are zeros.
    Weights(int depth, int columns, bool alike, unsigned seed)
        : K(depth), N(columns), trits(static_cast<std::size_t>(K * N)), scales(static_cast<std::size_t>(K / block * N)) {
        std::mt19937 random(seed);
        for (std::size_t b = 0; b < scales.size(); ++b) {
            scales[b] = alike ? 0.5F : std::ldexp(1.0F, -static_cast<int>(random() % 4));
            const bool zeros = random() % 5 == 0;
            for (int i = 0; i < block; ++i) trits[b * block + i] = zeros ? 0 : static_cast<int>(random() % 3) - 1;
        }
    }

    std::vector<std::uint8_t> packed(ggml_type type) const {
        std::vector<float> values(trits.size());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(trits[i]) * scales[i / block];
        std::vector<std::uint8_t> bytes(ggml_row_size(type, K) * static_cast<std::size_t>(N));
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, N, K, nullptr);
        return bytes;
    }

    double expected(const std::vector<int>& x, int row, int column) const {
        double sum = 0;
        for (int b = 0; b < K / block; ++b) {
            std::int64_t whole = 0;
            for (volatile int i = b * block; i < (b + 1) * block; i = i + 1)  // no vectors
                whole += std::int64_t{trits[static_cast<std::size_t>(column * K + i)]} * x[static_cast<std::size_t>(row * K + i)];
            sum += static_cast<double>(whole) * static_cast<double>(scales[static_cast<std::size_t>(column * (K / block) + b)]);
        }
        return sum;
    }
};

/// Rows of whole numbers that quantising leaves as they are: each has one of magnitude 127, and no other.
std::vector<int> rows(int M, int K, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<int> x(static_cast<std::size_t>(M * K));
    for (int& value : x) value = static_cast<int>(random() % 253) - 126;
    for (int row = 0; row < M; ++row) x[static_cast<std::size_t>(row * K)] = row % 2 == 0 ? 127 : -127;
    return x;
}

/// The same as floats, which are to be rounded to them.
std::vector<float> unrounded(const std::vector<int>& whole) {
    std::vector<float> x(whole.begin(), whole.end());
    for (std::size_t i = 0; i < x.size(); ++i)
        if (std::abs(whole[i]) < 127) x[i] += 0.2F * (static_cast<float>(i % 5) - 2);
    return x;
}

/// A graph of products of the same rows, and of one with other rows, in memory of its own.
class Graph {
public:
    Graph(ggml_backend_t backend, ggml_type type, int K, int M, const std::vector<int>& columns, bool marked)
        : backend_(backend), context_(ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true})) {
        ggml_context* const at = context_.get();
        for (const int N : columns) weights.push_back(ggml_new_tensor_2d(at, type, K, N));
        x = ggml_new_tensor_2d(at, GGML_TYPE_F32, K, M);
        other = ggml_new_tensor_2d(at, GGML_TYPE_F32, K, M);
        graph_ = ggml_new_graph(at);
        for (ggml_tensor* each : weights) y.push_back(ggml_mul_mat(at, each, x));
        y.push_back(ggml_mul_mat(at, weights.front(), other));
        for (ggml_tensor* each : y) ggml_build_forward_expand(graph_, each);
        buffer_.reset(ggml_backend_alloc_ctx_tensors(at, backend));
        if (marked) ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }

    bool ours() const { return ggml_backend_supports_op(backend_, y.front()); }

    void set(std::size_t index, const Weights& content) {
        const auto bytes = content.packed(weights[index]->type);
        ggml_backend_tensor_set(weights[index], bytes.data(), 0, bytes.size());
    }
    void set_rows(const std::vector<int>& values, const std::vector<int>& others) {
        for (const auto& [tensor, whole] : {std::pair(x, &values), std::pair(other, &others)}) {
            const std::vector<float> floats = unrounded(*whole);
            ggml_backend_tensor_set(tensor, floats.data(), 0, floats.size() * sizeof(float));
        }
    }
    ggml_status compute() { return ggml_backend_graph_compute(backend_, graph_); }

    /// The first value that is not as expected within `error` of the largest, in words; "" when all are.
    std::string fault(std::size_t index, const Weights& content, const std::vector<int>& values, double error) const {
        const auto N = static_cast<std::size_t>(content.N), M = static_cast<std::size_t>(x->ne[1]);
        std::vector<float> found(M * N);
        ggml_backend_tensor_get(y[index], found.data(), 0, found.size() * sizeof(float));
        std::vector<double> wanted;
        for (std::size_t i = 0; i < M * N; ++i)
            wanted.push_back(content.expected(values, static_cast<int>(i / N), static_cast<int>(i % N)));
        double largest = 0;
        for (const double each : wanted) largest = std::max(largest, std::fabs(each));
        for (std::size_t i = 0; i < M * N; ++i)
            if (!(std::fabs(static_cast<double>(found[i]) - wanted[i]) <= error * largest))
                return "row " + std::to_string(i / N) + ", column " + std::to_string(i % N) + " is " +
                       std::to_string(found[i]) + ", expected " + std::to_string(wanted[i]);
        return "";
    }

    std::vector<ggml_tensor*> weights, y;
    ggml_tensor *x, *other;

private:
    ggml_backend_t backend_;
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    ggml_cgraph* graph_;
};

[[noreturn]] void fail(const std::string& what) {
    std::printf("FAILED: %s\n", what.c_str());
    std::exit(1);
}

void good(const std::string& fault) {
    if (!fault.empty()) fail(fault);
}

/// Two products of the same rows and one of others; `alike`: whether each matrix has one scale.
void sums(ggml_backend_t backend, ggml_type type, bool alike, int M, double error) {
    constexpr int K = 3 * block;
    const std::vector<int> columns{70, 33}, x = rows(M, K, 7), other = rows(M, K, 8);
    Graph graph(backend, type, K, M, columns, true);
    if (!graph.ours()) fail("the product is not taken");
    graph.set_rows(x, other);
    const Weights first(K, 70, alike, 1), second(K, 33, alike, 2), third(K, 33, alike, 3);
    graph.set(0, first), graph.set(1, second);
    for (int turn = 0; turn < 2; ++turn) {
        if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
        good(graph.fault(0, first, x, error));
        good(graph.fault(1, second, x, error));
        good(graph.fault(2, first, other, error));
    }
    graph.set(1, third);  // another model's, at the same address
    if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
    good(graph.fault(1, third, x, error));
    std::printf("sums: %s, %s, %d rows\n", ggml_type_name(type), alike ? "one scale" : "a scale for each block", M);
}

/// A row with an infinity gives no numbers; the others are as ever.
void no_numbers(ggml_backend_t backend, double error) {
    constexpr int K = block, N = 40, M = 3;
    std::vector<int> x = rows(M, K, 5);
    Graph graph(backend, GGML_TYPE_TQ2_0, K, M, {N}, false);
    const Weights content(K, N, true, 4);
    graph.set(0, content), graph.set_rows(x, x);
    const float infinity = std::numeric_limits<float>::infinity();
    ggml_backend_tensor_set(graph.x, &infinity, (K + 9) * sizeof(float), sizeof(float));  // in row 1
    if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
    std::vector<float> y(M * N);
    ggml_backend_tensor_get(graph.y[0], y.data(), 0, y.size() * sizeof(float));
    for (int i = 0; i < M * N; ++i) {
        const double wanted = content.expected(x, i / N, i % N);
        const bool number = std::fabs(static_cast<double>(y[i]) - wanted) <= error * block * 127;
        if (i / N == 1 ? !std::isnan(y[i]) : !number) fail("row " + std::to_string(i / N) + " beside infinities");
    }
    std::puts("no numbers: stay in their row");
}

/// Code 3 of TQ2_0 means 2, which the array has no room for.
void not_ternary(ggml_backend_t backend) {
    Graph graph(backend, GGML_TYPE_TQ2_0, block, 2, {33}, false);
    graph.set(0, Weights(block, 33, true, 1)), graph.set_rows(rows(2, block, 1), rows(2, block, 2));
    const std::uint8_t threes = 0xff;
    for (std::size_t row = 0; row < 33; ++row)
        ggml_backend_tensor_set(graph.weights[0], &threes, row * ggml_row_size(GGML_TYPE_TQ2_0, block) + 5, 1);
    if (graph.compute() == GGML_STATUS_SUCCESS) fail("a weight of 2 was taken");
    std::puts("not ternary: refused");
}

/// Streams of two threads at once, with matrices that both use and such that are their own.
void threads(ggml_backend_dev_t device, double error) {
    constexpr int K = block, N = 64, M = 5;
    std::vector<std::string> faults(2);
    const auto work = [&](unsigned which) {
        ggml_backend_ptr stream(ggml_backend_dev_init(device, nullptr));
        const std::vector<int> x = rows(M, K, which);
        const Weights content(K, N, which == 0, which);
        Graph graph(stream.get(), GGML_TYPE_TQ1_0, K, M, {N}, true);
        graph.set(0, content), graph.set_rows(x, x);
        for (int turn = 0; turn < 4 && faults[which].empty(); ++turn)
            faults[which] = graph.compute() == GGML_STATUS_SUCCESS ? graph.fault(0, content, x, error) : "computing";
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    good(faults[0]);
    good(faults[1]);
    std::puts("threads: two streams at once");
}

}  // namespace

/// Arguments: the error that results may have, of the largest.
int main(int, char** words) {
    const double error = std::atof(words[1]);
    ggml_backend_load_all();
    ggml_backend_dev_t device = ggml_backend_dev_by_name("bdforge");
    if (device == nullptr) fail("no device bdforge");
    ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
    void* const found = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads");
    if (found == nullptr) fail("threads cannot be set");
    reinterpret_cast<ggml_backend_set_n_threads_t>(found)(backend.get(), 3);
    for (const ggml_type type : {GGML_TYPE_TQ2_0, GGML_TYPE_TQ1_0})
        for (const bool alike : {true, false}) sums(backend.get(), type, alike, alike ? 21 : 2, error);
    no_numbers(backend.get(), error);
    not_ternary(backend.get());
    sums(backend.get(), GGML_TYPE_TQ2_0, true, 3, error);  // after a failure
    threads(device, error);
    std::printf("ggml %s\n", ggml_version());
    return 0;
}
