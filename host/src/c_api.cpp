#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "c_api.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge::c_api {

std::string& message() {
    thread_local std::string text;
    return text;
}

namespace {

bdforge_status failed(bdforge_status status, const char* text) noexcept {
    try {
        message() = bdforge::bounded(text);
    } catch (...) {
        return BDFORGE_INTERNAL;  // no memory for the message either
    }
    return status;
}

}  // namespace

bdforge_status status_of_exception() noexcept {
    try {
        throw;
    } catch (const Error& error) {
        return failed(error.status(), error.what());
    } catch (const std::bad_alloc&) {
        return failed(BDFORGE_INTERNAL, "out of memory; free some and try again");
    } catch (const std::exception& error) {
        return failed(BDFORGE_INTERNAL, error.what());
    } catch (...) {
        return failed(BDFORGE_INTERNAL, "unknown fault; please report it");
    }
}

}  // namespace bdforge::c_api

namespace {

using namespace bdforge::c_api;

bdforge::Sizes sizes_of(const bdforge_size* sizes, std::size_t count) {
    bdforge::Sizes found;
    for (const bdforge_size& size : listed("sizes", sizes, count)) {
        if (!found.emplace(given(size.name, "a size's name"), size.value).second)
            throw bdforge::ArgumentError(bdforge::concat("size ", size.name, " stands twice; give it once"));
    }
    return found;
}

std::vector<bdforge::Resident> residents_of(bdforge_resident* const* residents, std::size_t count) {
    std::vector<bdforge::Resident> found;
    for (bdforge_resident* resident : listed("residents", residents, count))
        found.push_back(given(resident, "a resident")->resident);
    return found;
}

/// A batch of the jobs of handles.
template <class Handle, class JobOf>
bdforge_status batched(const bdforge_design* design, const char* names, const char* name, Handle* const* handles,
                       std::size_t count, bdforge_batch** batch, JobOf job_of) {
    return made(batch, [&] {
        std::vector<bdforge::Job> jobs;
        for (Handle* handle : listed(names, handles, count)) jobs.push_back(job_of(*given(handle, name)));
        return bdforge::Batch::of(given(design, "design")->design, jobs);
    });
}

}  // namespace

#define FREED(kind) \
    void bdforge_##kind##_free(bdforge_##kind* handle) { delete handle; }
FREED(device)
FREED(design)
FREED(weights)
FREED(gemm)
FREED(batch)
FREED(job)

#define RUN(kind)                                                                                 \
    bdforge_status bdforge_##kind##_run(bdforge_##kind* handle, unsigned timeout_ms) {            \
        return guarded([&] { given(handle, #kind)->kind.run(milliseconds(timeout_ms)); });        \
    }                                                                                             \
    bdforge_status bdforge_##kind##_run_async(bdforge_##kind* handle) {                           \
        return guarded([&] { given(handle, #kind)->kind.run_async(); });                          \
    }                                                                                             \
    bdforge_status bdforge_##kind##_wait(bdforge_##kind* handle, unsigned timeout_ms) {           \
        return guarded([&] { given(handle, #kind)->kind.wait(milliseconds(timeout_ms)); });       \
    }
RUN(gemm)
RUN(batch)
RUN(job)

const char* bdforge_message(void) { return message().c_str(); }

const char* bdforge_status_name(bdforge_status status) {
    constexpr const char* names[] = {"OK",      "FILE", "MANIFEST", "DEVICE", "ARGUMENT",
                                     "WEIGHTS", "RUN",  "TIMEOUT",  "STATE",  "INTERNAL"};
    const auto index = static_cast<std::size_t>(status);
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : "UNKNOWN";
}

const char* bdforge_xrt_version(void) {
    static const std::string version = bdforge::xrt_version();
    return version.c_str();
}

bdforge_status bdforge_device_open(const char* name, bdforge_device** device) {
    return made(device, [&] { return bdforge::Device::open(given(name, "name")); });
}

const char* bdforge_device_name(const bdforge_device* device) {
    thread_local std::string name;
    name = device == nullptr ? "" : device->device.name();
    return name.c_str();
}

int bdforge_device_is_npu(const bdforge_device* device) { return device != nullptr && device->device.is_npu(); }

bdforge_status bdforge_design_load(const bdforge_device* device, const char* path, bdforge_design** design) {
    return made(design, [&] { return bdforge::Design::load(given(device, "device")->device, given(path, "path")); });
}

bdforge_status bdforge_weights_pack(const bdforge_design* design, const void* weights, size_t K, size_t N,
                                    size_t stride, bdforge_weights** packed) {
    return made(packed, [&] { return given(design, "design")->design.pack(weights, K, N, stride); });
}

bdforge_status bdforge_weights_packed(const bdforge_design* design, const void* data, size_t bytes, size_t K, size_t N,
                                      bdforge_weights** packed) {
    return made(packed, [&] { return given(design, "design")->design.packed(data, bytes, K, N); });
}

size_t bdforge_weights_bytes(const bdforge_weights* weights) {
    return weights == nullptr ? 0 : weights->resident.bytes();
}

bdforge_status bdforge_gemm_create(const bdforge_design* design, size_t M, const bdforge_weights* weights,
                                   bdforge_gemm** gemm) {
    return bdforge_gemm_create_shared(design, M, weights, nullptr, 0, nullptr, 0, gemm);
}

bdforge_status bdforge_gemm_create_shared(const bdforge_design* design, size_t M, const bdforge_weights* weights,
                                          void* a, size_t a_stride, void* c, size_t c_stride, bdforge_gemm** gemm) {
    return made(gemm, [&] {
        const bdforge::GemmOptions options{{a, a_stride}, {c, c_stride}};
        const bdforge::Weights b(given(weights, "weights")->resident);
        return bdforge::Gemm(given(design, "design")->design, M, b, options);
    });
}

int8_t* bdforge_gemm_a(bdforge_gemm* gemm) {
    int8_t* a = nullptr;
    guarded([&] { a = given(gemm, "gemm")->gemm.a(); });
    return a;
}
void* bdforge_gemm_a_memory(bdforge_gemm* gemm) { return gemm == nullptr ? nullptr : gemm->gemm.a_memory(); }
size_t bdforge_gemm_a_stride(const bdforge_gemm* gemm) { return gemm == nullptr ? 0 : gemm->gemm.lda(); }
const int32_t* bdforge_gemm_c(const bdforge_gemm* gemm) {
    const int32_t* c = nullptr;
    guarded([&] { c = given(gemm, "gemm")->gemm.c(); });
    return c;
}
const void* bdforge_gemm_c_memory(const bdforge_gemm* gemm) {
    return gemm == nullptr ? nullptr : gemm->gemm.c_memory();
}
size_t bdforge_gemm_c_stride(const bdforge_gemm* gemm) { return gemm == nullptr ? 0 : gemm->gemm.ldc(); }

bdforge_status bdforge_gemm_run_copy(bdforge_gemm* gemm, const void* a, size_t a_stride, void* c, size_t c_stride,
                                     unsigned timeout_ms) {
    return guarded([&] { given(gemm, "gemm")->gemm.run(a, a_stride, c, c_stride, milliseconds(timeout_ms)); });
}

bdforge_status bdforge_gemm_scaled(const bdforge_gemm* gemm, float* out, size_t stride, const float* row_scales,
                                   const float* column_scales, float scale) {
    return guarded([&] { given(gemm, "gemm")->gemm.scaled(out, stride, {row_scales, column_scales, scale}); });
}

bdforge_status bdforge_batch_create(const bdforge_design* design, bdforge_gemm* const* gemms, size_t count,
                                    bdforge_batch** batch) {
    return batched(design, "gemms", "a gemm", gemms, count, batch, [](const bdforge_gemm& gemm) { return gemm.job.job; });
}

bdforge_status bdforge_batch_create_jobs(const bdforge_design* design, bdforge_job* const* jobs, size_t count,
                                         bdforge_batch** batch) {
    return batched(design, "jobs", "a job", jobs, count, batch, [](const bdforge_job& job) { return job.job; });
}

bdforge_status bdforge_resident_create(const bdforge_design* design, const char* operand, const bdforge_size* sizes,
                                       size_t size_count, bdforge_resident** resident) {
    return made(resident, [&] {
        const bdforge::Design& of = given(design, "design")->design;
        const std::string name = given(operand, "operand");
        if (of.state()->operand(name).out)
            throw bdforge::ArgumentError("operand " + name +
                                         " is an output; only inputs stay, give a job memory for it");
        return bdforge::Resident(of, name, sizes_of(sizes, size_count));
    });
}

bdforge_status bdforge_resident_place(bdforge_resident* resident, const char* operand, const void* data, size_t bytes,
                                      size_t stride) {
    return guarded(
        [&] { given(resident, "resident")->resident.place(given(operand, "operand"), {data, bytes, stride}); });
}

bdforge_status bdforge_job_create(const bdforge_design* design, const bdforge_parts* parts, bdforge_job** job) {
    return made(job, [&] {
        given(parts, "parts");
        bdforge::JobOptions options;
        for (const bdforge_memory& memory : listed("memory", parts->memory, parts->memory_count))
            options.memory[given(memory.operand, "an operand's name")] = memory.data;
        options.residents = residents_of(parts->residents, parts->resident_count);
        return bdforge::Job(given(design, "design")->design, sizes_of(parts->sizes, parts->size_count), options);
    });
}

bdforge_status bdforge_job_beside(const bdforge_job* job, const char* const* operands, size_t operand_count,
                                  bdforge_resident* const* residents, size_t resident_count, bdforge_job** beside) {
    return made(beside, [&] {
        std::vector<std::string> own;
        for (const char* operand : listed("operands", operands, operand_count))
            own.emplace_back(given(operand, "an operand's name"));
        return given(job, "job")->job.beside(own, residents_of(residents, resident_count));
    });
}

bdforge_status bdforge_job_create_beside(const bdforge_job* job, const bdforge_design* design, const bdforge_parts* parts,
                                         const bdforge_place* places, size_t place_count, bdforge_job** beside) {
    return made(beside, [&] {
        const bdforge_parts& of = *given(parts, "parts");
        if (of.memory_count != 0) throw bdforge::ArgumentError("a job beside another takes no memory; leave it out");
        std::map<std::string, std::string> operands;
        for (const bdforge_place& place : listed("places", places, place_count))
            operands[given(place.operand, "an operand's name")] = given(place.theirs, "the name of its place");
        return given(job, "job")->job.beside(given(design, "design")->design, sizes_of(of.sizes, of.size_count), operands,
                                             residents_of(of.residents, of.resident_count));
    });
}

bdforge_status bdforge_job_resized(const bdforge_job* job, const bdforge_size* sizes, size_t size_count,
                                   bdforge_job** resized) {
    return made(resized, [&] { return given(job, "job")->job.resized(sizes_of(sizes, size_count)); });
}

bdforge_job* bdforge_gemm_job(bdforge_gemm* gemm) { return gemm == nullptr ? nullptr : &gemm->job; }

size_t bdforge_job_operand_count(const bdforge_job* job) { return job == nullptr ? 0 : job->operands.size(); }

bdforge_status bdforge_job_operand(const bdforge_job* job, size_t index, bdforge_operand* operand) {
    return guarded([&] {
        const std::size_t count = given(job, "job")->operands.size();
        if (index >= count) throw bdforge::ArgumentError(bdforge::concat("operand ", index, " of ", count));
        const bdforge::OperandShape& shape = job->operands[index];
        *given(operand, "the operand's place") = {shape.name.c_str(), shape.type.c_str(), shape.output,
                                                  shape.column_major, shape.rows,         shape.columns,
                                                  shape.element_bytes};
    });
}

bdforge_status bdforge_job_place(bdforge_job* job, const char* operand, const void* data, size_t bytes, size_t stride) {
    return guarded([&] { given(job, "job")->job.place(given(operand, "operand"), {data, bytes, stride}); });
}

bdforge_status bdforge_job_fetch(const bdforge_job* job, const char* operand, void* data, size_t bytes, size_t stride) {
    return guarded([&] { given(job, "job")->job.fetch(given(operand, "operand"), {data, bytes, stride}); });
}

bdforge_status bdforge_job_memory(bdforge_job* job, const char* operand, void** data, size_t* stride) {
    return guarded([&] {
        bdforge::Job& own = given(job, "job")->job;
        *given(data, "the memory's place") = own.memory(given(operand, "operand"));
        *given(stride, "the stride's place") = own.stride(operand);
    });
}
