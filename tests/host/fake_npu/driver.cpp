#include "driver.hpp"

#include <drm/amdxdna_accel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "bdforge/manifest.hpp"
#include "emulated/emulated_backend.hpp"

namespace fake_npu {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::chrono::minutes run_limit{2};
constexpr std::uint32_t completed = 4, failed = 5, timed_out = 8;                             // ERT command states
constexpr std::uint32_t opcode_start = 0, opcode_chain = 19, opcode_elf = 22;  // of command packets
constexpr std::size_t chain_header_words = 6;  // count, submit and error index, 3 reserved
constexpr unsigned gem_close = 0x09;           // DRM's own
constexpr std::uint64_t heap_address = std::uint64_t{1} << 26;

const char* setting(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Mode chosen_mode() {
    const std::string mode = setting("BDFORGE_FAKE_NPU_MODE");
    if (mode == "lose-chain") return Mode::lose_chain;
    return mode == "hang" ? Mode::hang : mode == "error" ? Mode::error : Mode::compute;
}

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

/// A full ELF's stream loads the configuration first, which the array has by then.
std::vector<std::uint32_t> without_configuration(std::vector<std::uint32_t> stream) {
    constexpr std::size_t header_words = 4, load_words = 4, load_pdi = 8;
    if (stream.size() < header_words + load_words || (stream[header_words] & 0xFF) != load_pdi) return stream;
    stream.erase(stream.begin() + header_words, stream.begin() + header_words + load_words);
    stream[2] -= 1;  // operations
    stream[3] -= load_words * sizeof(std::uint32_t);
    return stream;
}

std::uint64_t wide(const std::uint32_t* words) { return words[0] | std::uint64_t{words[1]} << 32; }

}  // namespace

Driver::Driver() : memory_(memfd_create("fake_npu", 0)), mode_(chosen_mode()) {}

int Driver::ioctl(unsigned number, void* argument) {
    if (number == gem_close) return close_object(argument);
    if (number < DRM_COMMAND_BASE) return 0;
    switch (number - DRM_COMMAND_BASE) {
        case DRM_AMDXDNA_CREATE_HWCTX: {
            auto& context = *static_cast<amdxdna_drm_create_hwctx*>(argument);
            context.handle = 1;
            context.syncobj_handle = 0;  // XRT then waits by WAIT_CMD
            log("context of " + std::to_string(context.num_tiles) + " cores");
            return 0;
        }
        case DRM_AMDXDNA_DESTROY_HWCTX: log("context destroyed"); return 0;
        case DRM_AMDXDNA_CREATE_BO: return create_object(argument);
        case DRM_AMDXDNA_GET_BO_INFO: return object_info(argument);
        case DRM_AMDXDNA_GET_INFO: return information(argument);
        case DRM_AMDXDNA_EXEC_CMD: return execute(argument);
        case DRM_AMDXDNA_WAIT_CMD: return wait(argument);
        case DRM_AMDXDNA_CONFIG_HWCTX:
        case DRM_AMDXDNA_SYNC_BO:
        case DRM_AMDXDNA_SET_STATE: return 0;
        default: errno = EINVAL; return -1;
    }
}

std::byte* Driver::grow(std::size_t bytes, std::uint64_t& offset) {
    offset = end_;
    end_ += whole_pages(bytes);
    if (ftruncate(memory_, static_cast<off_t>(end_)) != 0) std::abort();
    void* mapped =
        mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(mapped);
}

int Driver::create_object(void* argument) {
    auto& wanted = *static_cast<amdxdna_drm_create_bo*>(argument);
    Object object{AMDXDNA_INVALID_ADDR, next_address_, nullptr, wanted.size};
    if (wanted.type == AMDXDNA_BO_DEV) {
        object.address = heap_.address + heap_used_;
        object.host = heap_.host + heap_used_;
        heap_used_ += whole_pages(wanted.size);
    } else if (wanted.vaddr != 0) {  // the caller's memory, in one piece
        const auto& table = *reinterpret_cast<const amdxdna_drm_va_tbl*>(wanted.vaddr);
        object.host = reinterpret_cast<std::byte*>(table.va_entries[0].vaddr);
        object.bytes = table.va_entries[0].len;
        log("memory of the caller, " + std::to_string(object.bytes) + " bytes");
    } else {
        object.host = grow(wanted.size, object.offset);
    }
    if (wanted.type == AMDXDNA_BO_DEV_HEAP) {
        object.address = heap_address;
        heap_ = object;
    }
    next_address_ += whole_pages(object.bytes);
    wanted.handle = next_handle_++;
    objects_[wanted.handle] = object;
    return 0;
}

int Driver::object_info(void* argument) {
    auto& info = *static_cast<amdxdna_drm_get_bo_info*>(argument);
    const auto found = objects_.find(info.handle);
    if (found == objects_.end()) return errno = ENOENT, -1;
    const Object& object = found->second;
    info.map_offset = object.offset;
    info.vaddr = object.offset == AMDXDNA_INVALID_ADDR ? reinterpret_cast<std::uint64_t>(object.host) : 0;
    info.xdna_addr = object.address;
    return 0;
}

int Driver::close_object(void* argument) {
    std::uint32_t handle = 0;
    std::memcpy(&handle, argument, sizeof handle);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return errno = ENOENT, -1;
    if (found->second.offset != AMDXDNA_INVALID_ADDR) munmap(found->second.host, whole_pages(found->second.bytes));
    objects_.erase(found);
    return 0;
}

int Driver::information(void* argument) {
    auto& wanted = *static_cast<amdxdna_drm_get_info*>(argument);
    auto* buffer = reinterpret_cast<void*>(wanted.buffer);
    std::memset(buffer, 0, wanted.buffer_size);
    if (wanted.param != DRM_AMDXDNA_QUERY_AIE_METADATA) return 0;
    auto& metadata = *static_cast<amdxdna_drm_query_aie_metadata*>(buffer);
    metadata.cols = 8;
    metadata.rows = 6;
    metadata.core.row_count = 4;
    metadata.core.row_start = 2;
    metadata.mem.row_count = metadata.shim.row_count = metadata.mem.row_start = 1;
    return 0;
}

/// The heap is a buffer, and holds others.
Memory Driver::object_at(std::uint64_t address) const {
    for (const auto& [handle, object] : objects_) {
        if (address < object.address || address >= object.address + object.bytes) continue;
        const std::uint64_t inside = address - object.address;
        return {object.host + inside, object.bytes - inside};
    }
    throw std::runtime_error("no buffer at address " + std::to_string(address));
}

int Driver::execute(void* argument) {
    auto& command = *static_cast<amdxdna_drm_exec_cmd*>(argument);
    const auto handle = static_cast<std::uint32_t>(command.cmd_handles);
    auto* packet = reinterpret_cast<std::uint32_t*>(objects_.at(handle).host);
    command.seq = ++submitted_;
    log("command " + std::to_string(packet[0] >> 23 & 0x1F));
    if (mode_ == Mode::hang) return 0;
    packet[0] = (packet[0] & ~0xFU) | finish(packet);
    return 0;
}

/// Does what a packet asks; returns the state it ends with.
std::uint32_t Driver::finish(std::uint32_t* packet) {
    const std::uint32_t opcode = packet[0] >> 23 & 0x1F;
    if (mode_ == Mode::error) return failed;
    if (mode_ == Mode::lose_chain && opcode == opcode_chain) {
        mode_ = Mode::compute;
        return timed_out;
    }
    try {
        // Behind header and CU mask. The kernel's registers as in kernels.json: opcode 0, instructions 8, count 0x10,
        // operands from 0x14; or of an ELF: three addresses, three sizes in bytes, properties, operands.
        const std::uint32_t* payload = packet + 2;
        if (opcode == opcode_start) run(wide(payload + 2), payload[4], payload + 5);
        if (opcode == opcode_elf) run(wide(payload), payload[6] / 4, payload + 10 + payload[9]);
        for (std::uint32_t i = 0; opcode == opcode_chain && i < packet[1]; ++i) {
            const std::uint64_t handle = wide(packet + 1 + chain_header_words + 2 * i);
            auto* part = reinterpret_cast<std::uint32_t*>(objects_.at(static_cast<std::uint32_t>(handle)).host);
            part[0] = (part[0] & ~0xFU) | finish(part);
        }
        return completed;
    } catch (const std::exception& error) {
        log(std::string("fault: ") + error.what());
        return failed;
    }
}

/// Executes the instruction stream at `instructions` on the operands whose addresses stand in `addresses`.
void Driver::run(std::uint64_t instructions, std::uint32_t words, const std::uint32_t* addresses) {
    static const bdforge::Manifest manifest = bdforge::load_manifest(setting("BDFORGE_FAKE_NPU_MANIFEST"));
    if (!array_) array_ = bdforge::open_emulated()->load({"", false, manifest});
    const auto* first = reinterpret_cast<const std::uint32_t*>(object_at(instructions).data);
    const std::vector<std::uint32_t> stream = without_configuration({first, first + words});
    bdforge::Arguments operands;
    for (std::size_t i = 0; i < manifest.view().at("arguments").elements().size(); ++i) {
        const Memory memory = object_at(wide(addresses + 2 * i));
        operands.push_back(array_->adopt(i, memory.data, memory.bytes));
    }
    const auto command = array_->command({array_->instructions(stream), ""}, operands);
    command->start();
    if (command->wait(run_limit) != bdforge::Outcome::completed) throw std::runtime_error("no end");
    for (const auto& operand : operands) operand->from_device();
    log("computed " + std::to_string(words) + " words");
}

int Driver::wait(void* argument) {
    const auto& wanted = *static_cast<amdxdna_drm_wait_cmd*>(argument);
    if (mode_ != Mode::hang) return 0;
    usleep(wanted.timeout * 1000);
    errno = ETIME;
    return -1;
}

void Driver::log(const std::string& line) {
    if (std::FILE* file = std::fopen(setting("BDFORGE_FAKE_NPU_LOG"), "a")) {
        std::fprintf(file, "%s\n", line.c_str());
        std::fclose(file);
    }
}

}  // namespace fake_npu
