#include "bdforge/gemm.hpp"

#include <algorithm>
#include <cstring>

#include "bdforge/error.hpp"
#include "lines.hpp"
#include "placing.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

constexpr std::size_t page_bytes = 4096;  // what XRT asks of memory that it shares with the caller

std::string described(const DesignState& design, const Sizes& sizes) {
    return design.manifest.design + " " + std::to_string(sizes.M) + "x" + std::to_string(sizes.K) + "x" +
           std::to_string(sizes.N) + " on " + design.device.name();
}

Lines a_lines(const DesignState& design, std::size_t M, std::size_t K) {
    return {"A", design.manifest.operands[0].storage, M, K};
}

Lines c_lines(const DesignState& design, std::size_t M, std::size_t N) {
    return {"C", design.manifest.operands[2].storage, M, N};
}

/// Floats of C, row-major.
Lines float_lines(std::size_t M, std::size_t N) { return {"the floats", {32, generator::row_major, 1, 1}, M, N}; }

/// The caller's memory, none where the Gemm has its own.
Extent callers(const CallerMemory& memory, const Lines& lines) {
    return lines.in(memory.data, lines.stride(memory.stride));
}

/// The stride that was asked for; 0 when that is no gap.
std::size_t gap(const CallerMemory& memory, const Lines& lines) {
    const std::size_t stride = lines.stride(memory.stride);
    if (memory.data == nullptr && stride != lines.positions)
        throw ArgumentError(std::string(lines.name) + " has a stride but no memory; give both");
    return stride == lines.positions ? 0 : stride;
}

Sizes sizes_of(const DesignState& design, std::size_t M, const WeightsState& weights, const GemmOptions& options) {
    design.streams.generator().check({M, weights.K, weights.N, 0, 0});
    const Lines a = a_lines(design, M, weights.K), c = c_lines(design, M, weights.N);
    refuse_overlap(callers(options.a, a), callers(options.c, c), "give each its own, C is written while A is read");
    return {M, weights.K, weights.N, gap(options.a, a), gap(options.c, c)};
}

void check_memory(const CallerMemory& memory, const StagedShape& staged, const char* name) {
    if (staged.needed()) {
        throw ArgumentError(std::string(name) + " cannot be the caller's memory: " + staged.why +
                            "; leave it out, and use the Gemm's own");
    }
    if (reinterpret_cast<std::uintptr_t>(memory.data) % page_bytes != 0) {
        throw ArgumentError(std::string(name) + " is not aligned to " + std::to_string(page_bytes) +
                            " bytes; allocate it with aligned_alloc or mmap, or use the Gemm's own memory");
    }
}

/// An operand: the caller's memory, or the library's, zeroed.
Matrix matrix(Context& context, std::size_t argument, const CallerMemory& memory, const StagedShape& staged,
              const Lines& lines) {
    if (memory.data != nullptr) {
        check_memory(memory, staged, lines.name);
        const std::size_t stride = lines.stride(memory.stride);
        return {context.adopt(argument, memory.data, lines.extent(stride)), stride};
    }
    const Lines held = staged.needed() ? Lines{lines.name, lines.storage, staged.rows, staged.columns} : lines;
    Matrix own{context.allocate(argument, held.extent(held.positions)), held.positions};
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
    const Lines lines = a_lines(*design, M, weights->K);
    const Matrix a = matrix(context, 0, options.a, stream->a, lines);
    const Matrix c = matrix(context, 2, options.c, stream->c, c_lines(*design, M, weights->N));
    std::vector<std::byte> own(stream->a_in_slabs ? lines.extent(lines.positions) : 0);
    auto command = context.command(stream->program, {a.buffer, weights->buffer, c.buffer});
    Flight flight(std::move(command), described(*design, sizes));
    return shared_flight(std::make_unique<GemmState>(GemmState{
        design, weights, M, weights->K, weights->N, stream->words, a, c, std::move(own), std::move(flight), false}));
}

void require_type(const DesignState& design, std::size_t operand, const char* type) {
    const std::string& own = design.manifest.operands[operand].type;
    if (own == type) return;
    const std::string name(1, "ABC"[operand]), call = operand == 0 ? "a_memory" : "c_memory";
    throw ArgumentError(name + " of " + design.manifest.design + " is " + own + ", not " + type + "; use " + call);
}

void refuse_lent(const GemmState& state) {
    if (state.lent) throw StateError(state.flight.what() + " runs in a batch; wait for the batch");
}

void refuse_running(const GemmState& state) {
    if (state.flight.running()) throw StateError(state.flight.what() + " is running; wait for it first");
}

}  // namespace

void GemmState::send_a() {
    if (!a_lines.empty() && !flight.running())
        design->streams.generator().stage_a({M, K, N, 0, 0}, a_lines.data(), a.buffer->data());
    a.buffer->to_device();
}

Gemm::Gemm(const Design& design, std::size_t M, const Weights& weights, const GemmOptions& options)
    : state_(prepare(design.state(), M, weights.state(), options)) {}

std::size_t Gemm::M() const { return state_->M; }
std::size_t Gemm::K() const { return state_->K; }
std::size_t Gemm::N() const { return state_->N; }
std::int8_t* Gemm::a() {
    require_type(*state_->design, 0, "int8");
    return static_cast<std::int8_t*>(a_memory());
}
void* Gemm::a_memory() { return state_->a_lines.empty() ? state_->a.buffer->data() : state_->a_lines.data(); }
std::size_t Gemm::lda() const {
    return state_->a_lines.empty() ? state_->a.stride : a_lines(*state_->design, M(), K()).positions;
}
const std::int32_t* Gemm::c() const {
    require_type(*state_->design, 2, "int32");
    return static_cast<const std::int32_t*>(c_memory());
}
const void* Gemm::c_memory() const { return state_->c.buffer->data(); }
std::size_t Gemm::ldc() const { return state_->c.stride; }
std::size_t Gemm::stream_words() const { return state_->stream_words; }

void Gemm::run_async() {
    refuse_lent(*state_);
    state_->send_a();
    state_->flight.start();
}

void Gemm::wait(std::chrono::milliseconds timeout) {
    refuse_lent(*state_);
    state_->flight.wait(timeout);
    state_->c.buffer->from_device();
}

void Gemm::run(std::chrono::milliseconds timeout) {
    state_->flight.check(timeout);
    run_async();
    wait(timeout);
}

void Gemm::run(const void* a, std::size_t a_stride, void* c, std::size_t c_stride, std::chrono::milliseconds timeout) {
    if (a == nullptr || c == nullptr) throw ArgumentError(state_->flight.what() + ": A or C is null; pass both");
    state_->flight.check(timeout);
    refuse_running(*state_);
    const Lines in = a_lines(*state_->design, M(), K()), out = c_lines(*state_->design, M(), N());
    const std::size_t from = in.stride(a_stride), to = out.stride(c_stride);
    constexpr const char* instead = "what lies there already is run without a copy";
    refuse_overlap(in.in(a, from), {"the Gemm's A", a_memory(), in.extent(lda())}, instead);
    refuse_overlap(out.in(c, to), {"the Gemm's C", c_memory(), out.extent(ldc())}, instead);
    in.copy(a, from, a_memory(), lda());
    run(timeout);
    out.copy(c_memory(), ldc(), c, to);
}

void Gemm::scaled(float* out, std::size_t stride, const Scales& scales) const {
    refuse_running(*state_);
    if (out == nullptr) throw ArgumentError("scaled: the floats' place is null; give memory for rows of N");
    const Lines lines = float_lines(M(), N());
    const std::size_t to = lines.stride(stride);
    const Extent floats = lines.in(out, to), sums = c_lines(*state_->design, M(), N()).in(c_memory(), ldc());
    for (const Extent& read :
         {sums, float_lines(1, M()).in(scales.rows, M()), float_lines(1, N()).in(scales.columns, N())})
        refuse_overlap(floats, read, "give the floats memory of their own");
    const bool down = state_->design->manifest.operands[2].storage.order == generator::column_major;
    const std::size_t step = down ? ldc() : 1;
    for (std::size_t row = 0; row < M(); ++row) {
        const float factor = scales.all * (scales.rows == nullptr ? 1.0F : scales.rows[row]);
        const std::int32_t* sums = c() + row * (down ? 1 : ldc());
        float* line = out + row * to;
        for (std::size_t column = 0; column < N(); ++column)
            line[column] = static_cast<float>(sums[column * step]) * factor;
        if (scales.columns == nullptr) continue;
        for (std::size_t column = 0; column < N(); ++column) line[column] *= scales.columns[column];
    }
}

}  // namespace bdforge
