/// libggml-bdforge.so: what ggml finds when GGML_BACKEND_PATH names this library. An accelerator beside the CPU: memory
/// is the CPU backend's, so that weights stay where they are mapped and results need no copies.

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <string>

#include "mul_mat.hpp"
#include "tables.hpp"
#include "messages.hpp"

namespace {

using namespace bdforge::ggml;

constexpr const char* name = "bdforge";
constexpr std::int32_t versions[] = {2, 3};  // of the tables, that were tried

Stream& stream_of(ggml_backend_t backend) { return *static_cast<Stream*>(backend->context); }

void set_threads(ggml_backend_t backend, int threads) { stream_of(backend).set_threads(threads); }

ggml_status compute(ggml_backend_t backend, ggml_cgraph* graph) {
    try {
        stream_of(backend).compute(graph);
        return GGML_STATUS_SUCCESS;
    } catch (const std::bad_alloc&) {
        say("out of memory");
        return GGML_STATUS_ALLOC_FAILED;
    } catch (const std::exception& error) {
        say(error.what());
        return GGML_STATUS_FAILED;
    }
}

ggml_backend_t new_stream(ggml_backend_dev_t device, const char*) {
    static ggml_guid guid = {0xbd, 0xf0, 0x96, 0x0e, 0x5b, 0x1d, 0x4a, 0x7c,
                             0x8f, 0x32, 0x61, 0x07, 0x2e, 0xc4, 0x93, 0x58};
    auto* const made = new ggml_backend{};
    made->guid = &guid;
    made->get_name = [](ggml_backend_t) { return name; };
    made->free = [](ggml_backend_t backend) {
        delete &stream_of(backend);
        delete backend;
    };
    made->graph_compute = compute;
    made->device = device;
    made->context = new Stream;
    return made;
}

const char* description(ggml_backend_dev_t) {
    static const std::string words = device_words();
    return words.c_str();
}

void memory(ggml_backend_dev_t, std::size_t* free, std::size_t* total) {
    *free = *total = 0;
}  // the host's, which others count

void properties(ggml_backend_dev_t device, ggml_backend_dev_props* found) {
    *found = {};
    found->name = name;
    found->description = description(device);
    found->type = GGML_BACKEND_DEVICE_TYPE_ACCEL;
    found->caps.buffer_from_host_ptr = found->caps.mmap_support = true;
}

ggml_backend_device make_device(ggml_backend_reg_t reg) {
    ggml_backend_device made{};
    made.get_name = [](ggml_backend_dev_t) { return name; };
    made.get_description = description;
    made.get_memory = memory;
    made.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; };
    made.get_props = properties;
    made.init_backend = new_stream;
    made.get_buffer_type = [](ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); };
    made.buffer_from_host_ptr = [](ggml_backend_dev_t, void* data, std::size_t bytes, std::size_t) {
        return ggml_backend_cpu_buffer_from_ptr(data, bytes);
    };
    made.supports_op = [](ggml_backend_dev_t, const ggml_tensor* node) { return takes(*node); };
    made.supports_buft = [](ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_is_host(type);
    };
    made.reg = reg;
    return made;
}

ggml_backend_dev_t device(ggml_backend_reg_t reg, std::size_t) {
    static ggml_backend_device made = make_device(reg);
    return &made;
}

void* proc_address(ggml_backend_reg_t, const char* wanted) {
    return std::strcmp(wanted, "ggml_backend_set_n_threads") == 0 ? reinterpret_cast<void*>(&set_threads) : nullptr;
}

/// The version that the process wants: that of a backend that it took before ours. 0: there is none.
std::int32_t wanted_version() { return ggml_backend_reg_count() == 0 ? 0 : ggml_backend_reg_get(0)->api_version; }

/// Says why this version cannot be served.
bool served(std::int32_t version) {
    if (std::find(std::begin(versions), std::end(versions), version) != std::end(versions)) return true;
    if (version == 0)
        say("no backend was loaded before this one, and it tells the API version: load ggml's CPU backend first");
    else
        say(bdforge::concat("this ggml's backends have API version ", version, ", this library serves ", bdforge::listed(versions),
                 "; build bdforge for it, or use ggml 0.25 to 0.27"));
    return false;
}

}  // namespace

extern "C" ggml_backend_reg_t ggml_backend_init() {
    static ggml_backend_reg reg{};
    try {
        reg.api_version = wanted_version();
        if (!served(reg.api_version)) return nullptr;
        start();
        say_once("start", "MUL_MAT with TQ1_0 or TQ2_0 weights runs by " + device_words() +
                              "; all else stays with other backends");
    } catch (const std::exception& error) {
        say(bdforge::concat(error.what(), " (not used; other backends go on)"));
        return nullptr;
    }
    reg.get_name = [](ggml_backend_reg_t) { return name; };
    reg.get_device_count = [](ggml_backend_reg_t) { return std::size_t{1}; };
    reg.get_device = device;
    reg.get_proc_address = proc_address;
    return &reg;
}
