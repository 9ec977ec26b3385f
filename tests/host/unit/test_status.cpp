// What the C API makes of exceptions.

#include "c_api.hpp"

#include <new>

#include "bdforge/error.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;

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

UNIT_CASE("status", messages_are_bounded_and_printable) {
    const std::string e_acute = "\xC3\xA9", euro = "\xE2\x82\xAC", note = "\xF0\x9D\x84\x9E";
    const struct {
        std::string given, told;
    } cases[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {e_acute + euro + note, e_acute + euro + note},
        {std::string("\0", 1) + "\x1B[31m\x7F", "\\x00\\x1b[31m\\x7f"},
        {"\xC2\x9B" "31m \xE2\x80\xAE \xE2\x81\xA6", "\\u009b31m \\u202e \\u2066"},
        {"\xFF \xC3", "\\xff \\xc3"},                                  // no character begins so, or ends so
        {"\xC0\xAF \xED\xA0\x80", "\\xc0\\xaf \\xed\\xa0\\x80"},    // longer than need be, half of a pair
        {std::string(message_bytes, 'x'), std::string(message_bytes, 'x')},
    };
    for (const auto& [given, expected] : cases) check_equal(bounded(given), expected, expected);
    for (const std::string& many : {std::string("x"), std::string("\x1B"), std::string("\xFF"), e_acute, euro, note}) {
        std::string name;
        while (name.size() < (4U << 20)) name += many;
        for (const std::string& pad : {std::string(), std::string("a"), std::string("ab")}) {
            const std::string found = bounded("begins " + pad + name + " ends");
            check_equal(found.size() <= message_bytes && found.size() > message_bytes / 2, true, "bytes of " + unit::shown(found.size()));
            check_equal(bounded(found), found, "what is told is told as it is");
            check_equal(found.substr(0, 7) + found.substr(found.size() - 5), "begins  ends", "both ends");
        }
    }
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
