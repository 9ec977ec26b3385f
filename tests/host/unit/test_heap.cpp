// Buffer objects of the software NPU, whose sizes are no whole pages.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "npu/objects.hpp"
#include "unit.hpp"

using namespace unit;

namespace {

std::string refusal_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const npu::Refused& refused) {
        return std::to_string(refused.number);
    }
    return unit::nothing;
}

/// What is in an object, in each of its bytes.
bool holds(const npu::Object& object, std::byte what) {
    for (std::uint64_t i = 0; i < object.bytes; ++i)
        if (object.host[i] != what) return false;
    return true;
}

}  // namespace

UNIT_CASE("heap", objects_of_odd_sizes_do_not_overlap) {
    constexpr std::uint64_t page = 4096, heap_bytes = 64 * page;
    const std::uint64_t odd[] = {1, 4095, 4096, 4097, 12287, 12289, 3 * page};
    const int file = memfd_create("heap", 0);
    npu::Objects objects(file);
    objects.create(npu::ObjectType::dev_heap, heap_bytes, 0);
    std::map<std::uint32_t, std::byte> contents;
    std::mt19937 random(7);
    std::size_t full = 0;
    for (int step = 0; step < 600; ++step) {
        const bool more = random() % 8 != 0;
        const npu::ObjectType type = random() % 5 == 0 ? npu::ObjectType::share : npu::ObjectType::dev;
        const std::string what = "step " + std::to_string(step) + ", " + std::to_string(contents.size()) + " objects";
        if (contents.empty() || (more && contents.size() < 60)) {
            const std::uint64_t bytes = odd[random() % std::size(odd)];
            try {
                const std::uint32_t handle = objects.create(type, bytes, 0);
                const npu::ObjectPointer made = objects.find(handle);
                contents[handle] = static_cast<std::byte>(step);
                std::fill_n(made->host, made->bytes, contents[handle]);
                check(made->address % page == 0 && made->bytes == bytes, what + ": a page of its own, and its size");
            } catch (const npu::Refused&) {
                ++full;
            }
        } else {
            const auto one = std::next(contents.begin(), static_cast<std::ptrdiff_t>(random() % contents.size()));
            objects.close(one->first);
            contents.erase(one);
        }
        for (const auto& [handle, content] : contents) {
            const npu::ObjectPointer object = objects.find(handle);
            check(holds(*object, content), what + ": object " + std::to_string(handle) + " of " + std::to_string(object->bytes) +
                                               " bytes at " + std::to_string(object->address) + " was written over");
            check(objects.at(object->address + object->bytes - 1) == object, what + ": the last byte's object");
            if (object->bytes % page != 0)
                check(refusal_of([&] { objects.at(object->address + object->bytes); }) == "22", what + ": behind it is none's");
        }
    }
    check(full > 0, "the heap was full now and then");
    close(file);
}
