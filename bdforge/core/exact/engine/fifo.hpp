// FIFOs between memory and registers: two lines of 64 bytes, and a count of bytes in them.
#pragma once

#include "steps.hpp"
#include "width.hpp"

namespace engine::fifo {

using U = std::uint32_t;

constexpr U kLine = 64, kLines = 2 * kLine;
constexpr int kNext = 4, kCount = 16, kStored = 20, kAddress = 24;  // places in the buffer of an instruction

enum Kind { kFill, kPop, kPush, kFlush };

// a: pointer, count; o: kind, bytes that are moved, whether the pointer is stepped behind that.
inline void fifo_step(Core& core, const Event& event, std::uint8_t* buffer) {
    const U pointer = word(core, event, buffer, 0), count = word(core, event, buffer, 1), size = U(event.o[1]);
    const U at = (pointer + count) & kAddressMask, room = kLine - pointer % kLine;
    U address = pointer, stored = 0, behind = count;
    switch (event.o[0]) {
        case kFill: address = at - at % kLine; behind += kLine - at % kLine; break;
        case kPop: address = at - at % kLine; behind += kLine - size; break;
        case kPush: stored = std::uint64_t(count) + size >= room ? room : 0; behind += size - stored; break;
        case kFlush: stored = std::min(count, room); behind -= stored; break;
    }
    save(buffer + kNext, (pointer + (event.o[0] == kPop ? size : stored)) & kAddressMask);
    save(buffer + kCount, event.o[2] ? 0 : behind);
    save(buffer + kStored, stored);
    save(buffer + kAddress, address);
}

constexpr U kRegister = 72;  // bytes of one with exponents

// Numbers in a block of so many bytes that are moved at once, 0 if there are no exponents.
inline int block_of(U size) { return size == 72 ? 8 : size == 68 ? 16 : 0; }

// Of memory's order, exponents first, to that of registers, mantissas first, or back.
inline void reorder(const std::uint8_t* from, std::uint8_t* to, U size, bool to_register) {
    const int block = block_of(size);
    if (!block) return void(std::memcpy(to, from, size));
    for (int i = 0; i < int(kLine) / block; ++i)
        for (int j = 0; j <= block; ++j) {
            const int in_memory = (block + 1) * i + j, in_register = j ? block * i + j - 1 : int(kLine) + i;
            if (to_register) to[in_register] = from[in_memory];
            else to[in_memory] = from[in_register];
        }
}

// a: line, the last two, and they with it.
inline void fifo_fill(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint8_t* to = core.at(event.a[2], buffer);
    std::memcpy(to, core.at(event.a[1], buffer) + kLine, kLine);
    std::memcpy(to + kLine, core.at(event.a[0], buffer), kLine);
}

// a: line, the last two, pointer, position, d, the last two with it; o: bytes.
inline void fifo_pop(Core& core, const Event& event, std::uint8_t* buffer) {
    const U size = U(event.o[0]), position = word(core, event, buffer, 3);
    const U at = (word(core, event, buffer, 2) + position) & kAddressMask;
    if (position > kLines || position + kLine < size)
        return core.fail(kAccess, "takes %u bytes of a FIFO at position %u: it has two lines and loads a third", size, position);
    if (at % kLine)
        return core.fail(kOpen, "a FIFO whose lines end at %#x is open: that is no multiple of 64", at);
    std::uint8_t window[kLines + kLine];
    std::memcpy(window, core.at(event.a[1], buffer), kLines);
    std::memcpy(window + kLines, core.at(event.a[0], buffer), kLine);
    std::uint8_t* const to = core.at(event.a[4], buffer);
    reorder(window + kLines - position, to, size, true);
    if (size > kLine) std::memset(to + size, 0, kRegister - size);
    std::memcpy(core.at(event.a[5], buffer), window + kLine, kLines);
}

// What is stored, of bytes that wait and those behind them, and what waits then.
inline void split(Core& core, const Event& event, std::uint8_t* buffer, const std::uint8_t* whole, U all, int data) {
    const U stored = load<U>(buffer + kStored);
    std::uint8_t* left = core.at(event.a[data + 1], buffer);
    std::memcpy(core.at(event.a[data], buffer), whole, stored);
    std::memset(left, 0, kLines);
    std::memcpy(left, whole + stored, all - stored);
}

inline void push(Core& core, const Event& event, std::uint8_t* buffer, const std::uint8_t* source, int count_at) {
    const U size = U(event.o[0]), count = word(core, event, buffer, count_at);
    if (count > kLines || count + size - load<U>(buffer + kStored) > kLines)
        return core.fail(kAccess, "puts %u bytes behind %u into a FIFO of 128", size, count);
    std::uint8_t whole[kLines + 2 * kLine];
    std::memcpy(whole, core.at(event.a[0], buffer), count);
    reorder(source, whole + count, size, false);
    split(core, event, buffer, whole, count + size, count_at + 1);
}

// a: what waits, source, pointer, count, what is stored, what waits then; o: bytes.
inline void fifo_push(Core& core, const Event& event, std::uint8_t* buffer) {
    push(core, event, buffer, core.at(event.a[1], buffer), 3);
}

// a: as of `fifo_push`, rounding behind the source, which are 64 numbers that become block floats.
inline void fifo_push_blocks(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint8_t made[72];
    if (width::as_blocks(core, core.at(event.a[1], buffer), word(core, event, buffer, 2), made))
        push(core, event, buffer, made, 4);
}

// a: what waits, pointer, count, what is stored, what waits then; o: whether the pointer is stepped then.
inline void fifo_flush(Core& core, const Event& event, std::uint8_t* buffer) {
    const U count = word(core, event, buffer, 2);
    if (count > kLines) return core.fail(kAccess, "flushes %u bytes of a FIFO of 128", count);
    const U left = count - load<U>(buffer + kStored);
    if (event.o[0] && left) return core.fail(kOpen, "a flush that leaves %u bytes and steps the pointer is open", left);
    std::uint8_t whole[kLines];
    std::memcpy(whole, core.at(event.a[0], buffer), count);
    split(core, event, buffer, whole, count, 3);
}

inline constexpr Named kTable[] = {
    {"fifo_step", fifo_step}, {"fifo_fill", fifo_fill}, {"fifo_pop", fifo_pop}, {"fifo_push", fifo_push},
    {"fifo_push_blocks", fifo_push_blocks}, {"fifo_flush", fifo_flush},
};

}  // namespace engine::fifo
