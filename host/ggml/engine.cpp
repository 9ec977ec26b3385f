#include "engine.hpp"

#include <algorithm>
#include <filesystem>

#include "state.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t rows_kept = 3;  // numbers of rows whose memory and runs are kept: a micro-batch, a rest, a token
constexpr std::chrono::hours patience{24};  // with the emulated array

std::string type_of(const LoadedManifest& manifest, const char* name) {
    for (const sequence::Operand& operand : manifest.source.program.operands)
        if (operand.name == name) return operand.type;
    return "";
}

/// Whether an int8 x int2 design scales to bf16 on the array; else it leaves int32 sums to the host. ArgumentError for others.
bool scaling(const LoadedManifest& manifest) {
    const bool gemm = manifest.kind == "gemm" && type_of(manifest, "A") == "int8" && type_of(manifest, "B") == "int2";
    const bool sums = type_of(manifest, "C") == "int32" && type_of(manifest, "row_scales").empty();
    const bool scaled = type_of(manifest, "C") == "bf16" && !type_of(manifest, "row_scales").empty();
    bool more = !type_of(manifest, "bias").empty();
    if (gemm && !more) more = manifest.view().at("document").at("made_from").at("epilogue").at("relu").boolean();
    if (!gemm || more || sums == scaled)
        throw ArgumentError("BDFORGE_GGML_DESIGN: " + manifest.design +
                            " is no GEMM of int8 with int2 to int32, or scaled to bf16 and nothing more; "
                            "gemm_i8_i2_bf16 is one");
    return scaled;
}

Design loaded(const Settings& settings) {
    std::error_code fault;
    if (!std::filesystem::exists(settings.design, fault))
        throw ArgumentError("BDFORGE_GGML_DESIGN=" + settings.design +
                            ": there is no such folder or file; build the design");
    return Design::load(Device::open(settings.device), settings.design);
}

}  // namespace

Engine::Engine(const Settings& settings) : design_(loaded(settings)), scaled_(scaling(design_.state()->manifest)) {}

std::string Engine::described() const {
    return design_.manifest().design + " on " + (is_npu() ? design_.device().name() : "the emulated array");
}

std::string Engine::refusal(std::size_t M, std::size_t K, std::size_t N) const {
    const std::lock_guard<std::mutex> lock(guard_);
    const auto [found, fresh] = refusals_.try_emplace({M, K, N});
    if (!fresh) return found->second;
    try {
        design_.check(M, K, N);
    } catch (const Error& error) {
        found->second = error.what();
    }
    return found->second;
}

std::shared_ptr<const Matrix> Engine::pack(const Plane& plane, const Workers& workers) const {
    return std::make_shared<const Matrix>(design_, scaled_, plane, workers);
}

void Engine::multiply(const Codes& codes, const std::vector<Product>& products, bool again, const Workers& workers) {
    try {
        Rows& rows = rows_of(codes.rows);
        std::vector<const Matrix*> key;
        for (const Product& product : products) key.push_back(product.matrix.get());
        auto known = rows.runs.find(key);
        if (known == rows.runs.end()) known = rows.runs.emplace(key, prepared(rows, products)).first;
        start(rows, known->second, codes);
        deliver(known->second, codes, products, workers);
        if (!again) rows.runs.erase(known);
    } catch (...) {
        forget();  // a run that hangs may write to what later ones would share
        throw;
    }
}

Engine::Rows& Engine::rows_of(std::size_t M) {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Rows& rows) { return rows.M == M; });
    if (found != rows_.end()) {
        rows_.splice(rows_.begin(), rows_, found);
        return rows_.front();
    }
    rows_.push_front({M, {}, {}, std::nullopt, {}});
    if (scaled_) rows_.front().scales.emplace(design_, "row_scales", Sizes{{"M", M}});
    if (rows_.size() > rows_kept) rows_.pop_back();
    return rows_.front();
}

Engine::Run Engine::prepared(Rows& rows, const std::vector<Product>& products) const {
    Run made;
    for (const Product& product : products) {
        made.matrices.push_back(product.matrix);
        for (const Part& part : product.matrix->parts()) {
            made.jobs.push_back(job(rows, part, product.matrix->N(), made.jobs.size()));
            const Range range{part.first, part.depth};
            if (std::find(made.inputs.begin(), made.inputs.end(), range) == made.inputs.end())
                made.inputs.push_back(range);
        }
    }
    if (made.jobs.size() > 1) made.batch.emplace(Batch::of(design_, made.jobs));
    return made;
}

Job Engine::job(Rows& rows, const Part& part, std::size_t N, std::size_t place) const {
    const auto resident = [&](auto& of, const Range& key, const char* name, const Sizes& sizes) {
        const auto found = of.find(key);
        return found != of.end() ? found->second : of.emplace(key, Resident(design_, name, sizes)).first->second;
    };
    JobOptions options;
    options.residents = {part.b,
                         resident(rows.inputs, {part.first, part.depth}, "A", {{"M", rows.M}, {"K", part.depth}}),
                         resident(rows.outputs, {N, place}, "C", {{"M", rows.M}, {"N", N}})};
    if (part.column_scales) options.residents.insert(options.residents.end(), {*part.column_scales, *rows.scales});
    return Job(design_, {{"M", rows.M}, {"K", part.depth}, {"N", N}}, options);
}

void Engine::start(Rows& rows, Run& run, const Codes& codes) const {
    for (const auto& [first, depth] : run.inputs) {
        const std::size_t bytes = (codes.rows - 1) * codes.K + depth;
        rows.inputs.at({first, depth}).place("A", {codes.codes.data() + first, bytes, codes.K});
    }
    if (rows.scales) rows.scales->place("row_scales", {codes.scales.data(), codes.rows * sizeof(float)});
    const std::chrono::milliseconds timeout = is_npu() ? default_timeout * run.jobs.size() : patience;
    if (!run.batch) return run.jobs.front().run(timeout);
    run.batch->run(timeout);
    if (!run.batch->note().empty()) say(run.batch->note());
}

void Engine::deliver(const Run& run, const Codes& codes, const std::vector<Product>& products,
                     const Workers& workers) const {
    std::size_t next = 0;
    for (const Product& product : products) {
        Target target{product.y, product.stride, false};
        for (const Part& part : product.matrix->parts()) {
            const Job& job = run.jobs[next++];
            const void* const c = job.memory("C");
            const std::size_t stride = job.stride("C");
            if (scaled_)
                widen(static_cast<const std::uint16_t*>(c), stride, codes.rows, part.scales.size(), workers, target);
            else
                scale(static_cast<const std::int32_t*>(c), stride, codes.scales, part.scales, workers, target);
            target.add = true;
        }
    }
}

}  // namespace bdforge::ggml
