// What the C API makes of exceptions.

#include "c_api.hpp"

#include <new>

#include "bdforge/error.hpp"
#include "unit.hpp"

using namespace bdforge;
using unit::check_equal;

namespace {

template <class Fault>
std::function<void()> throwing(const Fault& fault) {
    return [fault] { throw fault; };
}

}  // namespace

UNIT_CASE("status", every_kind_of_error_has_its_own) {
    const struct {
        std::function<void()> act;
        bdforge_status status;
        const char *name, *message;
    } cases[] = {
        {[] {}, BDFORGE_OK, "OK", ""},
        {throwing(FileError("f")), BDFORGE_FILE, "FILE", "f"},
        {throwing(ManifestError("m")), BDFORGE_MANIFEST, "MANIFEST", "m"},
        {throwing(DeviceError("d")), BDFORGE_DEVICE, "DEVICE", "d"},
        {throwing(ArgumentError("a")), BDFORGE_ARGUMENT, "ARGUMENT", "a"},
        {throwing(WeightError("w")), BDFORGE_WEIGHTS, "WEIGHTS", "w"},
        {throwing(RunError("r")), BDFORGE_RUN, "RUN", "r"},
        {throwing(TimeoutError("t")), BDFORGE_TIMEOUT, "TIMEOUT", "t"},
        {throwing(StateError("s")), BDFORGE_STATE, "STATE", "s"},
        {throwing(std::bad_alloc()), BDFORGE_INTERNAL, "INTERNAL", "out of memory; free some and try again"},
        {throwing(std::runtime_error("other")), BDFORGE_INTERNAL, "INTERNAL", "other"},
        {throwing(7), BDFORGE_INTERNAL, "INTERNAL", "unknown fault; please report it"},
        {[] {}, BDFORGE_OK, "OK", ""},  // which forgets the message before it
    };
    for (const auto& [act, status, name, message] : cases) {
        const bdforge_status found = c_api::guarded(act);
        check_equal(std::string(bdforge_status_name(found)), name, message);
        check_equal(static_cast<int>(found), static_cast<int>(status), name);
        check_equal(std::string(bdforge_message()), message, name);
    }
    check_equal(std::string(bdforge_status_name(static_cast<bdforge_status>(BDFORGE_INTERNAL + 1))), "UNKNOWN", "no status");
}

UNIT_CASE("status", nothing_can_be_asked_of_no_handle) {
    check_equal(bdforge_gemm_a(nullptr) == nullptr && bdforge_gemm_c(nullptr) == nullptr, true, "typed memory");
    check_equal(bdforge_gemm_a_memory(nullptr) == nullptr && bdforge_gemm_c_memory(nullptr) == nullptr, true, "memory");
    check_equal(bdforge_gemm_a_stride(nullptr) + bdforge_gemm_c_stride(nullptr), 0U, "strides");
    check_equal(bdforge_weights_bytes(nullptr) + bdforge_job_operand_count(nullptr), 0U, "counts");
    check_equal(bdforge_gemm_job(nullptr) == nullptr, true, "job");
    check_equal(std::string(bdforge_device_name(nullptr)), "", "name of a device");
    check_equal(bdforge_device_is_npu(nullptr), 0, "whether it is an NPU");
}
