#pragma once
// Command packets, as XRT's user-space driver writes them.

#include "context.hpp"

namespace npu {

/// What a packet wants done, and which of the context's configurations it needs; control code may load another.
struct Wanted {
    Command command;
    std::uint32_t unit = 0;
};

/// EINVAL for packets that are none, or lead where no object is. `handles`: what the submission says it uses.
Wanted read_packet(const Objects& objects, const ObjectPointer& packet, const std::vector<ObjectPointer>& handles);

/// The configuration that a job's control code starts with loading; empty when it loads none.
Configuration loaded_by(const Objects& objects, const Job& job);

}  // namespace npu
