#include "driver.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>

#include "log.hpp"
#include "messages.hpp"

namespace npu {
namespace {

using bdforge::emulated::Form;

constexpr std::uint32_t units_most = 32, handles_most = 4096;

/// A structure of the program's that is read, answered in, and written back.
template <class Structure, class Answer>
void exchange(std::uint64_t argument, Answer&& answer) {
    auto structure = from_user<Structure>(argument);
    answer(structure);
    copy_out(argument, &structure, sizeof structure);
}

}  // namespace

Driver::Driver(bdforge::emulated::File memory, std::string folder)
    : memory_(std::move(memory)), folder_(std::move(folder)), objects_(memory_.number()) {}

int Driver::ioctl(unsigned number, std::uint64_t argument) {
    try {
        if (number == gem_close)
            close_object(from_user<CloseObject>(argument).handle);
        else if (number >= first_driver_ioctl)
            serve(static_cast<Ioctl>(number - first_driver_ioctl), argument);
        else
            throw Refused{EOPNOTSUPP};
        return 0;
    } catch (const Refused& refused) {
        errno = refused.number;
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
    } catch (const std::exception& error) {
        report("driver", error.what());
        errno = EIO;
    }
    return -1;
}

void Driver::serve(Ioctl number, std::uint64_t argument) {
    switch (number) {
        case Ioctl::create_hwctx:
            return exchange<CreateContext>(argument, [this](auto& wanted) { create_context(wanted); });
        case Ioctl::destroy_hwctx: {
            const auto handle = from_user<DestroyContext>(argument).handle;
            const auto ended = context(handle);  // outlives the guard: its end waits for others
            const std::lock_guard<std::mutex> lock(guard_);
            contexts_.erase(handle);
            return trace(ended->name() + ": destroyed");
        }
        case Ioctl::config_hwctx: return configure(from_user<ConfigureContext>(argument));
        case Ioctl::create_bo: return exchange<CreateObject>(argument, [this](auto& wanted) { create_object(wanted); });
        case Ioctl::get_bo_info: return exchange<ObjectInfo>(argument, [this](auto& wanted) { object_info(wanted); });
        case Ioctl::sync_bo: {
            const auto wanted = from_user<SyncObject>(argument);
            const std::lock_guard<std::mutex> lock(guard_);
            const auto object = objects_.find(wanted.handle);
            if (wanted.direction > 1 || wanted.offset > object->bytes || wanted.size > object->bytes - wanted.offset)
                throw Refused{EINVAL};
            return;
        }
        case Ioctl::exec_cmd: return exchange<Execute>(argument, [this](auto& wanted) { execute(wanted); });
        case Ioctl::wait_cmd: {
            const auto wanted = from_user<Wait>(argument);
            return context(wanted.hwctx)->wait(wanted.seq, wanted.timeout_ms);
        }
        case Ioctl::get_info: return exchange<GetInfo>(argument, [this](auto& wanted) { information(wanted); });
        case Ioctl::get_array: return exchange<GetArray>(argument, [this](auto& wanted) { array(wanted); });
        default: throw Refused{EOPNOTSUPP};
    }
}

std::shared_ptr<Context> Driver::context(std::uint32_t handle) const {
    const std::lock_guard<std::mutex> lock(guard_);
    const auto found = contexts_.find(handle);
    if (found == contexts_.end()) throw Refused{ENOENT};
    return found->second;
}

void Driver::create_context(CreateContext& wanted) {
    std::ifstream file(folder_ + "/info/arrays");  // cores of a column, and what 1, 2, ... columns are called
    std::uint32_t rows = 0;
    file >> rows;
    if (rows == 0 || wanted.num_tiles == 0 || wanted.num_tiles % rows != 0) throw Refused{EINVAL};
    const std::uint32_t columns = wanted.num_tiles / rows;
    std::string array;
    for (std::uint32_t i = 0; i < columns; ++i)
        if (!(file >> array)) throw Refused{EINVAL};
    const std::lock_guard<std::mutex> lock(guard_);
    wanted.handle = next_context_++;
    wanted.syncobj_handle = 0;  // XRT then waits by wait_cmd
    contexts_[wanted.handle] = std::make_shared<Context>(wanted.handle, columns, array);
}

void Driver::configure(const ConfigureContext& wanted) {
    const auto chosen = context(wanted.handle);
    if (wanted.param_type != config_cu) throw Refused{EOPNOTSUPP};
    const auto count = from_user<std::uint16_t>(wanted.param_val);
    if (count == 0 || count > units_most || wanted.param_val_size < 8 * (std::uint32_t{count} + 1))
        throw Refused{EINVAL};
    std::vector<Configuration> units;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto unit = from_user<UnitConfig>(wanted.param_val + 8 * (i + 1));
        const std::lock_guard<std::mutex> lock(guard_);
        const auto object = objects_.find(unit.bo);
        if (object->bytes > configuration_bytes_most) throw Refused{EINVAL};
        units.emplace_back(object->host, object->host + object->bytes);
    }
    chosen->boot(units[0], opened_images());
    const std::lock_guard<std::mutex> lock(guard_);
    if (!chosen->units.empty()) throw Refused{EINVAL};
    chosen->units = std::move(units);
}

void Driver::create_object(CreateObject& wanted) {
    std::uint64_t callers = 0;
    if (wanted.vaddr != 0) {  // the program's own memory, in one piece
        const auto table = from_user<CallersTable>(wanted.vaddr);
        if (table.entries != 1) throw Refused{table.entries == 0 ? EOPNOTSUPP : EINVAL};
        const auto entry = from_user<CallersEntry>(wanted.vaddr + sizeof table);
        if (entry.vaddr == 0) throw Refused{EINVAL};
        callers = entry.vaddr;
        wanted.size = entry.bytes;
        trace(bdforge::concat("memory of the program's own, ", entry.bytes, " bytes"));
    }
    const std::lock_guard<std::mutex> lock(guard_);
    wanted.handle = objects_.create(wanted.type, wanted.size, callers);
}

void Driver::object_info(ObjectInfo& wanted) const {
    const std::lock_guard<std::mutex> lock(guard_);
    const auto object = objects_.find(wanted.handle);
    wanted.map_offset = Objects::map_offset(*object);
    wanted.vaddr = object->callers != 0              ? object->callers
                   : object->type == ObjectType::dev ? reinterpret_cast<std::uint64_t>(object->host)
                                                     : 0;
    wanted.xdna_addr = object->address;
}

void Driver::close_object(std::uint32_t handle) {
    const std::lock_guard<std::mutex> lock(guard_);
    const auto object = objects_.find(handle);
    objects_.close(handle);
    for (const auto& [number, one] : contexts_) one->forget(*object);
}

void Driver::execute(Execute& wanted) {
    const auto chosen = context(wanted.hwctx);
    if (wanted.type != 0) throw Refused{EOPNOTSUPP};
    if (wanted.cmd_count != 1 || wanted.arg_count > handles_most) throw Refused{EINVAL};
    std::vector<std::uint32_t> handles(wanted.arg_count);
    copy_in(handles.data(), wanted.args, handles.size() * sizeof handles[0]);
    Wanted found;
    Configuration needed;
    {
        const std::lock_guard<std::mutex> lock(guard_);
        std::vector<ObjectPointer> uses;
        for (const std::uint32_t handle : handles) uses.push_back(objects_.find(handle));
        found = read_packet(objects_, objects_.find(static_cast<std::uint32_t>(wanted.cmd_handles)), uses);
        for (const Job& job : found.command.jobs) {
            if (job.run.form != Form::control_code) continue;
            Configuration loaded = loaded_by(objects_, job);
            if (!needed.empty() && loaded != needed) throw Refused{EOPNOTSUPP};  // another configuration within a chain
            needed = std::move(loaded);
        }
        if (needed.empty()) {
            if (found.unit >= chosen->units.size()) throw Refused{EINVAL};
            needed = chosen->units[found.unit];
        }
    }
    chosen->boot(needed, opened_images());
    wanted.seq = chosen->submit(std::move(found.command));
}

void Driver::information(GetInfo& wanted) const {
    std::string answer;
    if (wanted.param == query_contexts) {
        for (ContextEntry entry : entries()) {
            entry.hwctx_id = 0;
            answer.append(reinterpret_cast<const char*>(&entry), sizeof entry);
        }
    } else {
        std::ifstream file(folder_ + "/info/" + std::to_string(wanted.param), std::ios::binary);
        if (!file) throw Refused{EOPNOTSUPP};
        answer.assign(std::istreambuf_iterator<char>(file), {});
    }
    const auto bytes = std::min<std::size_t>(answer.size(), wanted.buffer_size);
    copy_out(wanted.buffer, answer.data(), bytes);
    wanted.buffer_size = static_cast<std::uint32_t>(answer.size());
    if (bytes < answer.size() && wanted.param == query_contexts) throw Refused{ENOSPC};
}

void Driver::array(GetArray& wanted) const {
    if (wanted.param != all_contexts) throw Refused{EOPNOTSUPP};
    const std::vector<ContextEntry> all = entries();
    const std::size_t told = std::min<std::size_t>(all.size(), wanted.num_element);
    const std::size_t size = std::min<std::size_t>(sizeof(ContextEntry), wanted.element_size);
    for (std::size_t i = 0; i < told; ++i) copy_out(wanted.buffer + i * wanted.element_size, &all[i], size);
    wanted.num_element = static_cast<std::uint32_t>(told);
}

std::vector<ContextEntry> Driver::entries() const {
    const std::lock_guard<std::mutex> lock(guard_);
    std::vector<ContextEntry> all;
    for (const auto& [handle, one] : contexts_) all.push_back(one->entry());
    return all;
}

}  // namespace npu
