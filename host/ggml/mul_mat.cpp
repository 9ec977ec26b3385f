#include "mul_mat.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "messages.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t npu_rows = 32;  // with fewer an NPU takes longer than a CPU (modelled; docs/bitnet.md)

/// What the process shares. Never destroyed, for ggml may call until the very end.
struct Shared {
    explicit Shared(const Settings& chosen) : settings(chosen), engine(chosen), store([this] { engine.forget(); }) {}

    Settings settings;
    Engine engine;
    std::mutex device;  // held while a graph is computed; also guards the store
    Store store;
    User users = 0;
};
Shared* shared = nullptr;

bool ternary(const ggml_tensor& tensor) { return tensor.type == GGML_TYPE_TQ1_0 || tensor.type == GGML_TYPE_TQ2_0; }

bool computes_nothing(const ggml_tensor& node) {
    switch (node.op) {
        case GGML_OP_NONE:
        case GGML_OP_RESHAPE:
        case GGML_OP_VIEW:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE: return true;
        default: return false;
    }
}

bool lines_of_floats(const ggml_tensor& tensor) {
    return tensor.type == GGML_TYPE_F32 && tensor.nb[0] == sizeof(float) && tensor.nb[1] % sizeof(float) == 0;
}

struct Refusal {
    const char* about;  // null: none
    std::string why;
};

/// Why a product with ternary weights is not ours.
Refusal refusal(const ggml_tensor& node) {
    const ggml_tensor &weights = *node.src[0], &x = *node.src[1];
    if (!lines_of_floats(x) || !lines_of_floats(node)) return {"floats", "its activations are no rows of f32"};
    if (weights.nb[0] != ggml_type_size(weights.type)) return {"rows", "its weights are no rows of blocks"};
    if (node.op_params[1] != 0) return {"hint", "its weights are marked as a Hadamard matrix"};
    const auto M = static_cast<std::size_t>(x.ne[1]), K = static_cast<std::size_t>(x.ne[0]);
    const std::size_t least = shared->settings.rows != 0 ? shared->settings.rows
                              : shared->engine.is_npu()  ? npu_rows
                                                         : 1;
    if (M < least)
        return {"few", "products of less than " + std::to_string(least) + " rows are slower here (BDFORGE_GGML_ROWS)"};
    const auto N = static_cast<std::size_t>(weights.ne[1]);
    for (const std::size_t depth : {K, static_cast<std::size_t>(ggml_blck_size(weights.type))})
        if (std::string why = shared->engine.refusal(M, depth, N); !why.empty()) return {"sizes", std::move(why)};
    return {nullptr, ""};
}

/// Nodes whose rows are the same tensor's, which then need one quantisation and one submission.
bool same_rows(const ggml_tensor& one, const ggml_tensor& other) {
    const ggml_tensor &a = *one.src[1], &b = *other.src[1];
    return a.data == b.data && std::equal(a.ne, a.ne + GGML_MAX_DIMS, b.ne) &&
           std::equal(a.nb, a.nb + GGML_MAX_DIMS, b.nb);
}

template <class Pointer>
Pointer* plane(const ggml_tensor& tensor, std::int64_t i2, std::int64_t i3) {
    return reinterpret_cast<Pointer*>(static_cast<std::byte*>(tensor.data) +
                                      static_cast<std::size_t>(i2) * tensor.nb[2] +
                                      static_cast<std::size_t>(i3) * tensor.nb[3]);
}

bool is_weights(const ggml_tensor& tensor) {
    ggml_backend_buffer_t buffer = tensor.view_src == nullptr ? tensor.buffer : tensor.view_src->buffer;
    return buffer != nullptr && ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
}

}  // namespace

void start() {
    static std::mutex guard;
    const std::lock_guard<std::mutex> lock(guard);
    if (shared == nullptr) shared = new Shared(settings());
}

std::string device_words() { return shared->engine.described(); }

bool takes(const ggml_tensor& node) {
    if (computes_nothing(node)) return true;
    if (node.op != GGML_OP_MUL_MAT || !ternary(*node.src[0])) return false;
    const Refusal found = refusal(node);
    if (found.about != nullptr)
        say_once(found.about, concat("leaves MUL_MAT ", ggml_get_name(&node), " with ", ggml_type_name(node.src[0]->type),
                                   " weights, and others like it, to another backend: ", found.why));
    return found.about == nullptr;
}

Stream::Stream()
    : user_([] {
          const std::lock_guard<std::mutex> lock(shared->device);
          shared->store.began(++shared->users);
          return shared->users;
      }()) {}

Stream::~Stream() {
    {
        const std::lock_guard<std::mutex> lock(shared->device);
        shared->store.ended(user_);
    }
    if (!shared->settings.counts) return;
    say(concat(counts_.graphs, " graphs, ", counts_.products, " products in ", counts_.submissions, " submissions, ",
             counts_.packed, " matrices packed"));
}

void Stream::compute(ggml_cgraph* graph) {
    const std::lock_guard<std::mutex> lock(shared->device);
    ++counts_.graphs;
    std::vector<ggml_tensor*> group;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        ggml_tensor* const node = ggml_graph_node(graph, i);
        if (computes_nothing(*node) || ggml_is_empty(node)) continue;
        if (node->op != GGML_OP_MUL_MAT) throw ArgumentError(concat(ggml_op_name(node->op), " is not taken"));
        const bool joins = !group.empty() && same_rows(*group.front(), *node);
        if (!joins && !group.empty()) multiply(std::exchange(group, {}));
        group.push_back(node);
    }
    if (!group.empty()) multiply(group);
}

void Stream::multiply(const std::vector<ggml_tensor*>& nodes) {
    const ggml_tensor& x = *nodes.front()->src[1];
    for (std::int64_t i3 = 0; i3 < x.ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < x.ne[2]; ++i2) {
            quantise(plane<const float>(x, i2, i3), x.nb[1] / sizeof(float), static_cast<std::size_t>(x.ne[1]),
                     static_cast<std::size_t>(x.ne[0]), workers_, codes_);
            std::vector<Product> products;
            bool again = true;
            for (const ggml_tensor* node : nodes) {
                const ggml_tensor& weights = *node->src[0];
                again = again && is_weights(weights);
                products.push_back({matrix(weights, i2 / (x.ne[2] / weights.ne[2]), i3 / (x.ne[3] / weights.ne[3])),
                                    plane<float>(*node, i2, i3), node->nb[1] / sizeof(float)});
            }
            shared->engine.multiply(codes_, products, again, workers_);
            counts_.products += products.size(), ++counts_.submissions;
        }
}

std::shared_ptr<const Matrix> Stream::matrix(const ggml_tensor& weights, std::int64_t i2, std::int64_t i3) {
    const Plane at{plane<const std::byte>(weights, i2, i3), weights.type, static_cast<std::size_t>(weights.ne[0]),
                   static_cast<std::size_t>(weights.ne[1]), weights.nb[1]};
    const auto make = [&] {
        auto made = shared->engine.pack(at, workers_);
        ++counts_.packed;
        return made;
    };
    return is_weights(weights) ? shared->store.find(at, user_, make) : make();
}

}  // namespace bdforge::ggml
