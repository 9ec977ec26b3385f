#include "bdforge/gemm.hpp"

#include <algorithm>
#include <cstring>

#include "bdforge/error.hpp"
#include "placing.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

constexpr std::size_t page_bytes = 4096;  // what XRT asks of memory that it shares with the caller

std::string described(const DesignState& design, const Sizes& sizes) {
    return design.manifest.design + " " + std::to_string(sizes.M) + "x" + std::to_string(sizes.K) + "x" +
           std::to_string(sizes.N) + " on " + design.device.name();
}

Sizes sizes_of(const DesignState& design, std::size_t M, const WeightsState& weights, const GemmOptions& options) {
    check_size(design.manifest, "M", M);
    const std::size_t lda = options.a.stride == 0 ? weights.K : options.a.stride;
    const std::size_t ldc = options.c.stride == 0 ? weights.N : options.c.stride;
    if (options.a.data == nullptr && lda != weights.K) throw ArgumentError("A has a stride but no memory; give both");
    if (options.c.data == nullptr && ldc != weights.N) throw ArgumentError("C has a stride but no memory; give both");
    return {M, weights.K, weights.N, lda, ldc};
}

template <class Element>
void check_memory(const CallerMemory<Element>& memory, const StagedShape& staged, const char* name) {
    if (staged.needed()) {
        throw ArgumentError(std::string(name) + " cannot be the caller's memory: " + staged.why +
                            "; leave it out, and use the Gemm's own");
    }
    if (reinterpret_cast<std::uintptr_t>(memory.data) % page_bytes != 0) {
        throw ArgumentError(std::string(name) + " is not aligned to " + std::to_string(page_bytes) +
                            " bytes; allocate it with aligned_alloc or mmap, or use the Gemm's own memory");
    }
}

/// An operand of `rows` x `columns`: the caller's memory, or the library's, zeroed.
template <class Element>
Matrix matrix(Context& context, Operand operand, const CallerMemory<Element>& memory, const StagedShape& staged,
              std::size_t rows, std::size_t columns, std::size_t stride) {
    if (memory.data != nullptr) {
        check_memory(memory, staged, operand == Operand::a ? "A" : "C");
        const std::size_t bytes = ((rows - 1) * stride + columns) * sizeof(Element);
        return {context.adopt(operand, memory.data, bytes), stride};
    }
    const std::size_t held_rows = staged.needed() ? staged.rows : rows;
    const std::size_t held_stride = staged.needed() ? staged.columns : stride;
    Matrix own{context.allocate(operand, held_rows * held_stride * sizeof(Element)), held_stride};
    std::memset(own.buffer->data(), 0, own.buffer->bytes());
    own.buffer->to_device();
    return own;
}

std::shared_ptr<GemmState> prepare(const std::shared_ptr<DesignState>& design, std::size_t M,
                                   const std::shared_ptr<WeightsState>& weights, const GemmOptions& options) {
    if (weights->design != design)
        throw ArgumentError("the weights were packed for another design; pack them for this one");
    const Sizes sizes = sizes_of(*design, M, *weights, options);
    Context& context = *design->context;
    const auto stream = design->streams.get(context, design->full_elf, sizes);
    const Matrix a = matrix(context, Operand::a, options.a, stream->a, M, weights->K, sizes.lda);
    const Matrix c = matrix(context, Operand::c, options.c, stream->c, M, weights->N, sizes.ldc);
    auto command = context.command(stream->program, {a.buffer, weights->buffer, c.buffer});
    Flight flight(std::move(command), described(*design, sizes));
    return shared_flight(std::make_unique<GemmState>(
        GemmState{design, weights, M, weights->K, weights->N, stream->words, a, c, std::move(flight), false}));
}

void refuse_lent(const GemmState& state) {
    if (state.lent) throw StateError(state.flight.what() + " runs in a batch; wait for the batch");
}

/// Copies `rows` rows of `columns` elements.
template <class Element>
void copy_rows(const Element* from, std::size_t from_stride, Element* to, std::size_t to_stride, std::size_t rows,
               std::size_t columns) {
    for (std::size_t row = 0; row < rows; ++row) std::copy_n(from + row * from_stride, columns, to + row * to_stride);
}

}  // namespace

Gemm::Gemm(const Design& design, std::size_t M, const Weights& weights, const GemmOptions& options)
    : state_(prepare(design.state(), M, weights.state(), options)) {}

std::size_t Gemm::M() const { return state_->M; }
std::size_t Gemm::K() const { return state_->K; }
std::size_t Gemm::N() const { return state_->N; }
std::int8_t* Gemm::a() { return static_cast<std::int8_t*>(state_->a.buffer->data()); }
std::size_t Gemm::lda() const { return state_->a.stride; }
const std::int32_t* Gemm::c() const { return static_cast<const std::int32_t*>(state_->c.buffer->data()); }
std::size_t Gemm::ldc() const { return state_->c.stride; }
std::size_t Gemm::stream_words() const { return state_->stream_words; }

void Gemm::run_async() {
    refuse_lent(*state_);
    state_->a.buffer->to_device();
    state_->flight.start();
}

void Gemm::wait(std::chrono::milliseconds timeout) {
    refuse_lent(*state_);
    state_->flight.wait(timeout);
    state_->c.buffer->from_device();
}

void Gemm::run(std::chrono::milliseconds timeout) {
    run_async();
    wait(timeout);
}

void Gemm::run(const std::int8_t* a, std::size_t a_stride, std::int32_t* c, std::size_t c_stride,
               std::chrono::milliseconds timeout) {
    if (a == nullptr || c == nullptr) throw ArgumentError(state_->flight.what() + ": A or C is null; pass both");
    if (state_->flight.running()) throw StateError(state_->flight.what() + " is running; wait for it first");
    const std::size_t from = a_stride == 0 ? K() : a_stride, to = c_stride == 0 ? N() : c_stride;
    if (from < K() || to < N()) throw ArgumentError(state_->flight.what() + ": a stride is shorter than a row");
    copy_rows(a, from, this->a(), lda(), M(), K());
    run(timeout);
    copy_rows(this->c(), ldc(), c, to, M(), N());
}

void Gemm::scaled(float* out, std::size_t stride, const Scales& scales) const {
    if (state_->flight.running()) throw StateError(state_->flight.what() + " is running; wait for it first");
    const std::size_t to = stride == 0 ? N() : stride;
    if (out == nullptr || to < N()) throw ArgumentError("scaled: needs memory for rows of N floats");
    for (std::size_t row = 0; row < M(); ++row) {
        const float factor = scales.all * (scales.rows == nullptr ? 1.0F : scales.rows[row]);
        const std::int32_t* sums = c() + row * ldc();
        float* line = out + row * to;
        for (std::size_t column = 0; column < N(); ++column) line[column] = static_cast<float>(sums[column]) * factor;
        if (scales.columns == nullptr) continue;
        for (std::size_t column = 0; column < N(); ++column) line[column] *= scales.columns[column];
    }
}

}  // namespace bdforge
