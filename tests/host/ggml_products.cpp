// Products by our backend through ggml's public API, against sums in whole numbers. No decoding of ggml's, no vectors: what
// is expected comes from the weights before ggml packed them. Each case prints a line; exit code 1 at the first that fails.

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <array>
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
            for (int i = b * block; i < (b + 1) * block; ++i) {
                asm volatile("");  // no vectors
                whole += std::int64_t{trits[static_cast<std::size_t>(column * K + i)]} * x[static_cast<std::size_t>(row * K + i)];
            }
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

/// The case under way, with which its faults begin.
std::string doing;

[[noreturn]] void fail(const std::string& what) {
    std::printf("FAILED: %s: %s\n", doing.c_str(), what.c_str());
    std::exit(1);
}

void good(const std::string& fault) {
    if (!fault.empty()) fail(fault);
}

/// Two products of the same rows and one of others; `alike`: whether each matrix has one scale.
void sums(ggml_backend_t backend, ggml_type type, bool alike, int M, double error) {
    constexpr int K = 3 * block;
    const std::vector<int> columns{70, 33}, x = rows(M, K, 7), other = rows(M, K, 8);
    const std::string which = std::string("sums: ") + ggml_type_name(type) + (alike ? ", one scale, " : ", a scale for each block, ") +
                              std::to_string(M) + " rows";
    doing = which;
    Graph graph(backend, type, K, M, columns, true);
    if (!graph.ours()) fail("the product is not taken");
    graph.set_rows(x, other);
    const Weights first(K, 70, alike, 1), second(K, 33, alike, 2), third(K, 33, alike, 3);
    graph.set(0, first), graph.set(1, second);
    for (int turn = 0; turn < 2; ++turn) {
        const std::string when = which + ", turn " + std::to_string(turn) + ", ";
        doing = when + "the first product";
        if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
        good(graph.fault(0, first, x, error));
        doing = when + "the second product";
        good(graph.fault(1, second, x, error));
        doing = when + "the first weights with other rows";
        good(graph.fault(2, first, other, error));
    }
    doing = which + ", another model's weights at the same address";
    graph.set(1, third);
    if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
    good(graph.fault(1, third, x, error));
    std::puts(which.c_str());
}

/// A row with an infinity gives no numbers; the others are as ever.
void no_numbers(ggml_backend_t backend, double error) {
    doing = "no numbers";
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
    doing = "not ternary";
    Graph graph(backend, GGML_TYPE_TQ2_0, block, 2, {33}, false);
    graph.set(0, Weights(block, 33, true, 1)), graph.set_rows(rows(2, block, 1), rows(2, block, 2));
    const std::uint8_t threes = 0xff;
    for (std::size_t row = 0; row < 33; ++row)
        ggml_backend_tensor_set(graph.weights[0], &threes, row * ggml_row_size(GGML_TYPE_TQ2_0, block) + 5, 1);
    if (graph.compute() == GGML_STATUS_SUCCESS) fail("a weight of 2 was taken");
    graph.set(0, Weights(block, 33, true, 1));
    const std::vector<std::uint8_t> ones(block / 4, 0xaa);  // zeros times infinity would be no numbers
    ggml_backend_tensor_set(graph.weights[0], ones.data(), 0, ones.size());
    const std::uint16_t infinity = 0x7c00;  // of float16: the scale, behind the codes
    ggml_backend_tensor_set(graph.weights[0], &infinity, block / 4, sizeof infinity);
    if (graph.compute() == GGML_STATUS_SUCCESS) fail("an infinite weight was taken");
    std::puts("not ternary: refused");
}

/// A product whose tensors have up to four dimensions, unmarked, with the values that it gives.
class Product {
public:
    using Sizes = std::array<std::int64_t, 4>;

    Product(ggml_backend_t backend, ggml_type rows_type, const Sizes& w, const Sizes& rows)
        : backend_(backend), context_(ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true})) {
        weights = ggml_new_tensor(context_.get(), GGML_TYPE_TQ2_0, 4, w.data());
        x = ggml_new_tensor(context_.get(), rows_type, 4, rows.data());
        graph_ = ggml_new_graph(context_.get());
    }

    /// A product with these rows, which are `x` or a view of it.
    ggml_tensor* of(ggml_tensor* rows) {
        ggml_tensor* const y = ggml_mul_mat(context_.get(), weights, rows);
        ggml_build_forward_expand(graph_, y);
        return y;
    }
    /// Every `step`th row of `x`.
    ggml_tensor* view(std::int64_t count, std::size_t step) {
        return ggml_view_2d(context_.get(), x, x->ne[0], count, step * x->nb[1], 0);
    }
    void allocate() { buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend_)); }
    void set(std::size_t plane, const Weights& content) {
        const auto bytes = content.packed(weights->type);
        ggml_backend_tensor_set(weights, bytes.data(), plane * weights->nb[2], bytes.size());
    }
    std::vector<float> values(const ggml_tensor* y) const {
        std::vector<float> found(static_cast<std::size_t>(ggml_nelements(y)));
        ggml_backend_tensor_get(y, found.data(), 0, found.size() * sizeof(float));
        return found;
    }
    void compute() {
        if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) fail("computing");
    }

    ggml_tensor *weights, *x;

private:
    ggml_backend_t backend_;
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    ggml_cgraph* graph_;
};

/// Values of a plane of y that are not those of `content` with these rows.
void check(const std::string& what, const float* y, const Weights& content, const std::vector<int>& values, double unit, double error) {
    const int rows = static_cast<int>(values.size()) / content.K;
    for (int i = 0; i < rows * content.N; ++i) {
        const double wanted = unit * content.expected(values, i / content.N, i % content.N);
        if (!(std::fabs(static_cast<double>(y[i]) - wanted) <= unit * error * block * 127))
            fail(what + ": row " + std::to_string(i / content.N) + ", column " + std::to_string(i % content.N) + " is " +
                 std::to_string(y[i]) + ", expected " + std::to_string(wanted));
    }
}

/// Rows 2 g and 2 g + 1 of planes go with the weights of plane g, as ggml shares heads.
void planes(ggml_backend_t backend, double error) {
    doing = "planes";
    constexpr int K = block, N = 33, M = 2;
    Product product(backend, GGML_TYPE_F32, {K, N, 2, 1}, {K, M, 4, 2});
    ggml_tensor* const y = product.of(product.x);
    product.allocate();
    const std::vector<Weights> contents{{K, N, true, 21}, {K, N, false, 22}};
    for (std::size_t plane = 0; plane < 2; ++plane) product.set(plane, contents[plane]);
    for (std::size_t i = 0; i < 8; ++i) {
        const std::vector<int> whole = rows(M, K, static_cast<unsigned>(i));
        const std::vector<float> floats(whole.begin(), whole.end());
        ggml_backend_tensor_set(product.x, floats.data(), i * product.x->nb[2], floats.size() * sizeof(float));
    }
    product.compute();
    const std::vector<float> found = product.values(y);
    for (std::size_t i = 0; i < 8; ++i)
        check("plane " + std::to_string(i), &found[i * M * N], contents[i % 4 / 2], rows(M, K, static_cast<unsigned>(i)), 1, error);
    std::puts("planes: two share weights");
}

/// Views that begin at the same row: two rows that follow each other, and every second one.
void views(ggml_backend_t backend, double error) {
    doing = "views";
    constexpr int K = block, N = 33;
    Product product(backend, GGML_TYPE_F32, {K, N, 1, 1}, {K, 4, 1, 1});
    ggml_tensor* const near = product.of(product.view(2, 1));
    ggml_tensor* const far = product.of(product.view(2, 2));
    ggml_tensor* const all = product.of(product.x);
    product.allocate();
    const Weights content(K, N, true, 31);
    product.set(0, content);
    const std::vector<int> whole = rows(4, K, 30);
    const std::vector<float> floats(whole.begin(), whole.end());
    ggml_backend_tensor_set(product.x, floats.data(), 0, floats.size() * sizeof(float));
    product.compute();
    std::vector<int> second(whole.begin(), whole.begin() + K);
    second.insert(second.end(), whole.begin() + 2 * K, whole.begin() + 3 * K);
    check("near rows", product.values(near).data(), content, {whole.begin(), whole.begin() + 2 * K}, 1, error);
    check("every second row", product.values(far).data(), content, second, 1, error);
    check("all rows", product.values(all).data(), content, whole, 1, error);
    std::puts("views: rows are told apart");
}

/// Rows whose largest magnitude is below 1e-5 have steps of 1e-5 / 127; rows of zeros give zeros.
void small_rows(ggml_backend_t backend, double error) {
    doing = "small rows";
    constexpr int K = block, N = 40, M = 3;
    Product product(backend, GGML_TYPE_F32, {K, N, 1, 1}, {K, M, 1, 1});
    ggml_tensor* const y = product.of(product.x);
    product.allocate();
    const Weights content(K, N, true, 41);
    product.set(0, content);
    std::vector<int> whole = rows(M, K, 40);  // the last row is as large as it takes
    for (int i = 0; i < 2 * K; ++i) whole[static_cast<std::size_t>(i)] = i < K ? 0 : whole[static_cast<std::size_t>(i)] % 52;
    std::vector<float> floats;
    for (const int value : whole) floats.push_back(static_cast<float>(value) * 1e-5F / 127);
    ggml_backend_tensor_set(product.x, floats.data(), 0, floats.size() * sizeof(float));
    product.compute();
    check("small rows", product.values(y).data(), content, whole, 1e-5 / 127, error);
    std::puts("small rows: coarse steps");
}

/// Another model at the same address that differs in its first or its last block only: of 99, not all are looked at.
void changed_blocks(ggml_backend_t backend, double error) {
    constexpr int K = 3 * block, N = 33, M = 2;
    const std::vector<int> x = rows(M, K, 50);
    Graph graph(backend, GGML_TYPE_TQ2_0, K, M, {N}, true);
    graph.set_rows(x, x);
    Weights content(K, N, true, 51);
    std::string changed;
    for (const std::size_t at : {content.trits.size() - 1, std::size_t{0}, content.trits.size() - block}) {
        doing = changed.empty() ? "changed blocks: the first model" : "changed blocks: a model that differs in block " + changed;
        changed = std::to_string(at / block);
        graph.set(0, content);
        if (graph.compute() != GGML_STATUS_SUCCESS) fail("computing");
        good(graph.fault(0, content, x, error));
        for (std::size_t i = at / block * block; i < at / block * block + block; ++i) content.trits[i] = (content.trits[i] + 2) % 3 - 1;
    }
    std::puts("changed blocks: packed anew");
}

/// Products that are taken from so many rows on, and such that other backends keep.
void taken(ggml_backend_t backend, int least) {
    doing = "taken";
    const auto is_taken = [&](ggml_type type, std::int64_t M, std::int32_t hint) {
        Product product(backend, type, {block, 32, 1, 1}, {block, M, 1, 1});
        ggml_tensor* const y = product.of(product.x);
        y->op_params[1] = hint;
        return ggml_backend_supports_op(backend, y);
    };
    if (!is_taken(GGML_TYPE_F32, least, 0)) fail("not taken: " + std::to_string(least) + " rows");
    if (least > 1 && is_taken(GGML_TYPE_F32, least - 1, 0)) fail("taken: " + std::to_string(least - 1) + " rows");
    if (is_taken(GGML_TYPE_F16, 8, 0)) fail("taken: rows of f16");
    if (is_taken(GGML_TYPE_F32, 8, 1)) fail("taken: a Hadamard matrix");
    std::puts("taken: what it can and should");
}

/// Streams of two threads at once, with matrices that both use and such that are their own.
void threads(ggml_backend_dev_t device, double error) {
    doing = "threads";
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

/// Arguments: the error that results may have, of the largest; the rows from which products are ours.
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
    planes(backend.get(), error);
    views(backend.get(), error);
    small_rows(backend.get(), error);
    changed_blocks(backend.get(), error);
    taken(backend.get(), std::atoi(words[2]));
    std::printf("ggml %s\n", ggml_version());
    return 0;
}
