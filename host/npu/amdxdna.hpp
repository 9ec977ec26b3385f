#pragma once
// What XRT's user-space driver and the kernel driver amdxdna say to each other, as far as it is served: numbers and
// structures of Linux's include/uapi/drm/amdxdna_accel.h, which older systems lack, and of XRT's command packets (ert.h).

#include <cstdint>

namespace npu {

constexpr unsigned gem_close = 0x09, first_driver_ioctl = 0x40;  // DRM's own

enum class Ioctl : unsigned {
    create_hwctx, destroy_hwctx, config_hwctx, create_bo, get_bo_info, sync_bo, exec_cmd, get_info, set_state, wait_cmd,
    get_array,
};

struct CreateContext {
    std::uint64_t ext, ext_flags, qos;
    std::uint32_t umq_bo, log_buf_bo, max_opc, num_tiles, mem_size, umq_doorbell, handle, syncobj_handle;
};

struct DestroyContext {
    std::uint32_t handle, pad;
};

struct ConfigureContext {
    std::uint32_t handle, param_type;
    std::uint64_t param_val;
    std::uint32_t param_val_size, pad;
};
constexpr std::uint32_t config_cu = 0;  // param_type: a count of 16 bits, padded to 8 bytes, then UnitConfig

struct UnitConfig {
    std::uint32_t bo;
    std::uint8_t function, pad[3];
};

enum class ObjectType : std::uint32_t { invalid, share, dev_heap, dev, cmd };

struct CreateObject {
    std::uint64_t flags, vaddr, size;
    ObjectType type;
    std::uint32_t handle;
};

/// What CreateObject::vaddr leads to: so many entries follow.
struct CallersTable {
    std::int32_t dmabuf_fd;
    std::uint32_t entries;
};

struct CallersEntry {
    std::uint64_t vaddr, bytes;
};

struct ObjectInfo {
    std::uint64_t ext, ext_flags;
    std::uint32_t handle, pad;
    std::uint64_t map_offset, vaddr, xdna_addr;
};

struct CloseObject {
    std::uint32_t handle, pad;
};

struct SyncObject {
    std::uint32_t handle, direction;
    std::uint64_t offset, size;
};

struct Execute {
    std::uint64_t ext, ext_flags;
    std::uint32_t hwctx, type;
    std::uint64_t cmd_handles, args;
    std::uint32_t cmd_count, arg_count;
    std::uint64_t seq;
};

struct Wait {
    std::uint32_t hwctx, timeout_ms;
    std::uint64_t seq;
};

struct GetInfo {
    std::uint32_t param, buffer_size;
    std::uint64_t buffer;
};
constexpr std::uint32_t query_contexts = 5;  // ContextEntry of each

struct GetArray {
    std::uint32_t param, element_size, num_element, pad;
    std::uint64_t buffer;
};
constexpr std::uint32_t all_contexts = 0;

/// Of a context, as get_array tells it; get_info's is the first part, with `reserved` in the place of hwctx_id.
struct ContextEntry {
    std::uint32_t context_id, start_col, num_col, hwctx_id;
    std::int64_t pid;
    std::uint64_t submissions, completions, migrations, preemptions, errors;
};

constexpr std::uint64_t no_address = ~std::uint64_t{0};

/// The first word of a command packet: state [3:0], further masks of units [11:10], words that follow [22:12], opcode
/// [27:23].
enum class State : std::uint32_t { fresh = 1, completed = 4, error = 5, abort = 6, timeout = 8 };
enum class Opcode : std::uint32_t {
    start_unit = 0, chain = 19, start_npu = 20, start_npu_preempt = 21, start_npu_elf = 22,
};

static_assert(sizeof(CreateContext) == 56 && sizeof(ConfigureContext) == 24 && sizeof(CreateObject) == 32);
static_assert(sizeof(ObjectInfo) == 48 && sizeof(Execute) == 56 && sizeof(Wait) == 16 && sizeof(GetInfo) == 16);
static_assert(sizeof(GetArray) == 24 && sizeof(ContextEntry) == 64 && sizeof(SyncObject) == 24);

}  // namespace npu
