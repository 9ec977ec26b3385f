#include "bdforge/gemm.hpp"

#include <cstring>

#include "bdforge/error.hpp"
#include "extent.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

using sequence::Layout;

/// ArgumentError for a design of another operator; what it calls A, B, C, M, K, N is then taken for what it says.
void require_gemm(const DesignState& design) {
    const std::string& kind = design.manifest.kind;
    if (kind != "gemm") throw ArgumentError(design.manifest.design + " is " + kind + ", no gemm; run it as a Job");
}

/// A manifest may say anything of its operands' sizes: a caller's array has those that it asked for.
void require_shape(const DesignState& design, const Layout& layout, std::size_t rows, std::size_t columns) {
    const auto same = [](std::int64_t found, std::size_t wanted) { return static_cast<std::size_t>(found) == wanted; };
    if (same(layout.rows(), rows) && same(layout.columns(), columns)) return;
    throw ManifestError(concat(design.manifest.file, ": operand ", layout.operand().name, " has ", layout.rows(), " x ",
                               layout.columns(), " elements for ", rows, " x ", columns, "; build the design again"));
}

const Layout& b_of(const Resident& resident) {
    for (const Layout& layout : resident.state()->layouts)
        if (layout.operand().name == "B") return layout;
    throw ArgumentError("these weights hold no B but " + resident.state()->layouts.front().operand().name +
                        "; make those of a GEMM by pack");
}

Weights weights_of(const Design& design, std::size_t K, std::size_t N) {
    Weights made(Resident(design, "B", {{"K", K}, {"N", N}}));
    require_shape(*design.state(), b_of(made), K, N);
    return made;
}

void refuse_gap(const char* name, const CallerMemory& memory, std::size_t line) {
    if (memory.data == nullptr && memory.stride != 0 && memory.stride != line)
        throw ArgumentError(concat(name, " has a stride but no memory; give both"));
}

Job job_of(const Design& design, std::size_t M, const Weights& weights, const GemmOptions& options) {
    require_gemm(*design.state());
    b_of(weights);
    const Sizes sizes{
        {"M", M}, {"K", weights.K()}, {"N", weights.N()}, {"lda", options.a.stride}, {"ldc", options.c.stride}};
    Job job(design, sizes, {{{"A", options.a.data}, {"C", options.c.data}}, {weights}});
    JobState& state = *job.state();
    const Layout &a = state.operand("A").layout, &c = state.operand("C").layout;
    require_shape(*design.state(), a, M, weights.K());
    require_shape(*design.state(), c, M, weights.N());
    refuse_gap("A", options.a, static_cast<std::size_t>(a.line()));
    refuse_gap("C", options.c, static_cast<std::size_t>(c.line()));
    job.memory("A");  // takes what it needs
    return job;
}

void require_type(const Job& job, const char* operand, const char* type, const char* call) {
    const JobState& state = *job.state();
    const std::string& own = state.design->operand(operand).type;
    if (own != type)
        throw ArgumentError(
            concat(operand, " of ", state.design->manifest.design, " is ", own, ", not ", type, "; use ", call));
}

/// An operand's lines where the job has them, and the caller's distance from line to line; block floats in their own form.
struct OwnLines {
    Layout layout;
    std::int64_t leading;
    void* memory;
};

OwnLines own_lines(const Job& job, const char* name, const void* callers, std::size_t stride) {
    const Placed& placed = job.state()->operand(name);
    const Layout& own = placed.direct ? placed.layout : placed.lines;
    const std::int64_t given = leading_of(placed.lines, callers, SIZE_MAX, stride), side = own.side();
    void* const memory =
        placed.direct ? job.state()->memory_of(placed).shown() : const_cast<std::byte*>(placed.memory.data());
    OwnLines found{own.units(), given / side + (given % side != 0), memory};
    refuse_overlap({name, callers, found.layout.extent(found.leading)},
                   {concat("the Gemm's ", name), memory, found.layout.reach()},
                   "what lies there already is run without a copy");
    return found;
}

}  // namespace

void Design::check(std::size_t M, std::size_t K, std::size_t N) const {
    require_gemm(*state_);
    state_->streams.values(all_parameters(*state_, {{"M", M}, {"K", K}, {"N", N}}));
}

Weights Design::pack(const void* weights, std::size_t K, std::size_t N, std::size_t stride) const {
    check(1, K, N);
    Weights made = weights_of(*this, K, N);
    const Layout& b = b_of(made);
    const std::int64_t leading = leading_of(b, weights, SIZE_MAX, stride);
    made.place("B", {weights, b.extent(leading), stride});
    return made;
}

Weights Design::packed(const void* data, std::size_t bytes, std::size_t K, std::size_t N) const {
    check(1, K, N);
    Weights made = weights_of(*this, K, N);
    made.place_bytes(data, bytes);
    return made;
}

Gemm::Gemm(const Design& design, std::size_t M, const Weights& weights, const GemmOptions& options)
    : job_(job_of(design, M, weights, options)) {}

std::int8_t* Gemm::a() {
    require_type(job_, "A", "int8", "a_memory");
    return static_cast<std::int8_t*>(a_memory());
}

const std::int32_t* Gemm::c() const {
    require_type(job_, "C", "int32", "c_memory");
    return static_cast<const std::int32_t*>(c_memory());
}

void Gemm::run(const void* a, std::size_t a_stride, void* c, std::size_t c_stride, std::chrono::milliseconds timeout) {
    const JobState& state = *job_.state();
    const Users::Turn turn = state.turn();
    if (a == nullptr || c == nullptr) throw ArgumentError(state.execution.what() + ": A or C is null; pass both");
    state.execution.check(timeout);
    if (state.users->running()) throw StateError(state.execution.what() + " is running; wait for it first");
    const OwnLines in = own_lines(job_, "A", a, a_stride), out = own_lines(job_, "C", c, c_stride);
    state.users->check_place(state.execution.what(), "A");
    in.layout.place(a, in.leading, in.memory);
    run(timeout);
    out.layout.fetch(out.memory, c, out.leading);
}

void Gemm::scaled(float* out, std::size_t stride, const Scales& scales) const {
    JobState& state = *job_.state();
    const Users::Turn turn = state.turn();
    if (state.users->running()) throw StateError(state.execution.what() + " is running; wait for it first");
    state.users->fetch(state.execution.what());
    if (out == nullptr) throw ArgumentError("scaled: the floats' place is null; give memory for rows of N");
    if (stride != 0 && stride < N())
        throw ArgumentError(concat("the floats: a stride of ", stride, " is below the ", N(),
                                   " elements of a line; lines would overlap, give more or 0"));
    const std::size_t to = stride == 0 ? N() : stride, size = sizeof(float);
    const Extent floats{"the floats", out,
                        bytes_of("the floats", M() - 1, bytes_of("the floats", to, size), N() * size)};
    const Layout& layout = job_.state()->operand("C").layout;
    const std::int32_t* const sums = c();
    const auto leading = static_cast<std::int64_t>(ldc());
    for (const Extent& read :
         {Extent{"C", sums, layout.extent(leading)}, Extent{"the row scales", scales.rows, M() * size},
          Extent{"the column scales", scales.columns, N() * size}})
        refuse_overlap(floats, read, "give the floats memory of their own");
    const std::size_t down = layout.column_major() ? 1 : ldc(), step = layout.column_major() ? ldc() : 1;
    for (std::size_t row = 0; row < M(); ++row) {
        const float factor = scales.all * (scales.rows == nullptr ? 1.0F : scales.rows[row]);
        float* line = out + row * to;
        for (std::size_t column = 0; column < N(); ++column)
            line[column] = static_cast<float>(sums[row * down + column * step]) * factor;
        if (scales.columns == nullptr) continue;
        for (std::size_t column = 0; column < N(); ++column) line[column] *= scales.columns[column];
    }
}

}  // namespace bdforge
