// A core's state: registers, program, what is under way. Events are steps of instructions, made by translation.
#pragma once

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace engine {

// Steps that loops are made of: compiled states (`compiled.hpp`) hold them themselves, with all that is constant left out.
// What these seldom come to is `BDFORGE_SELDOM`, and stays where it is.
#define BDFORGE_OFTEN [[gnu::always_inline]] inline
#define BDFORGE_INLINED __attribute__((always_inline))  // of lambdas
#define BDFORGE_SELDOM [[gnu::noinline]] inline

constexpr int kRing = 16;            // cycles that anything stays under way, at most
constexpr int kMostBuffer = 8 << 10; // bytes of what the instructions of a bundle have read and made, at most
constexpr int kRings = 4 * kRing * kMostBuffer;  // bytes of all rings of buffers: each at least twice the one before
constexpr int kRegisters = (1 << 12) + 33 * 64;  // bytes of registers; 4 KiB apart, loads would wait for stores
constexpr int kConstants = 1 << 20;  // places from here on are constants of the program
constexpr int kAddressMask = 0xFFFFF;
constexpr int kDepth = 12;           // cycles until all is done after the last bundle
constexpr int kMostMarks = 1 << 12;  // changes of part that are noted of a core's run

enum Phase { kLand, kForward, kRequest, kRead, kOperate, kStore, kPhases };
enum Status { kDone, kTranslate, kAsk, kFault, kBudget, kStepped, kRan, kRefused };
enum FaultKind { kOpen = 1, kAccess, kControl, kUnknown };

struct Core;
struct Event;
using Function = void (*)(Core&, const Event&, std::uint8_t*);

// One step: `a` are places: registers from 0 on, constants, and the instruction's buffer below 0 (~offset). `o` are options.
// `offset` is that of the instruction's buffer in its bundle's, `place` half the bundle's address.
struct Event {
    Function function;
    std::int32_t offset, place;
    std::int32_t a[8];
    std::int32_t o[4];
};

// Events of a bundle that are due in the same cycle and phase.
struct Group {
    std::int32_t delay, phase, first, count;
};

// A bundle: its address, its events, grouped, bytes of its buffer, its last delay, and where a call returns to. One that needs memory
// waits while an 8- or 16-bit store keeps it.
struct Bundle {
    std::vector<Event> events;
    std::vector<Group> groups;
    std::int32_t pc = 0, size = 0, after_slots = 0, buffer = 0, last = 0;
    std::int32_t needs = -1, keeps = 0;  // memory: from which cycle on, or -1; and for how many after it
};

// Where another part of the program begins to run.
struct Mark {
    std::int64_t cycle, conflicts;
    std::int64_t part;
};

struct State;
struct States;

struct Program {
    std::unique_ptr<Bundle> bundles[1 << 13];
    std::vector<std::unique_ptr<Bundle>> forgotten;  // which may still be under way
    std::vector<std::uint8_t> constants;
    std::int32_t most_buffer = 0;  // of all bundles
    std::atomic<std::int32_t> ring = 0;  // bytes in which the buffers of what is under way come round
    std::int32_t depth = 0;        // bundles that may be under way
    std::int32_t chain = 0;        // bytes of the buffers of a compiled chain, at most
    std::int32_t lc, ls, le;       // places of the loop's registers
    std::unique_ptr<States> states;
};

// What Python sees of a core, where it lies: `EngineState` of `engine_build.py` has the same fields.
struct alignas(64) Shared {
    std::int64_t cycle, bundles, conflicts;
    const std::int16_t* parts;     // which part of the program each bundle is in, by half its address; or null
    std::int32_t pc, fault, part, pending_stores;  // those that write in later cycles
    std::int32_t marked, assumes, request, request_bytes;  // `assumes`: whether it goes on where results are assumed
    std::uint8_t registers[2 * kRegisters];  // the second half as forwarding shows it
    std::uint8_t unknown[2 * kRegisters / 4];  // whether no source tells what a word of the registers holds
    std::int64_t counts[1 << 13];  // how often each bundle ran, by half its address
    std::int64_t macs[1 << 13];    // multiplications with accumulation, of lanes
    std::int64_t uses[16];         // accesses by bank: four of each of the four memories
    Mark marks[kMostMarks];        // of which `marked` are noted
    std::uint8_t* request_data;
    std::uint32_t request_values[5];
    std::int32_t assumed;        // which assumptions were made
    std::int32_t approximation;  // what becomes of approximations: nothing (0), the nearest value, a bound
    char message[256];
};

// What each cycle needs, first of all: near a pointer, instructions of this machine are short.
struct Often {
    std::uint8_t* constants;    // of the program, as a run begins
    std::uint64_t in_bank;      // accesses of each bank in this cycle, in 4 bits: all slots' instructions make fewer
    std::int64_t kept;          // memory is kept up to that cycle
    std::uint8_t* buffers;
    std::int32_t next_buffer, ring_end, slots_left;
    std::int32_t lc, ls, le;    // places of the loop's registers, as the program has them
};

// Buffers of bundles lie one behind the other, and come round when more are behind than can be under way: what is
// touched stays small. A program that turns out to have more under way gets a ring behind the one before.
struct alignas(64) Core : Often, Shared {
    std::unique_ptr<std::uint8_t[]> rings{new std::uint8_t[kRings]};  // not zeroed: hardly any of it is ever touched
    std::uint8_t* buffer_of[2 * kRing];  // of the last cycles, by cycle, and once more behind, which ages reach back from
    std::int32_t ring_first;
    std::unique_ptr<State[]> own;
    std::uint8_t* windows[4];
    std::uint8_t* written[4];
    Program* program;
    std::int32_t target, drained, stopping, middle, next_request;
    std::int32_t beside, unsampled;  // whether others run at the same time, and since when no state was counted then
    std::int64_t loop_start;
    State* state;
    std::uint8_t* usual[64];   // where address 0 would lie, for addresses of each bank whose memory nobody keeps account of
    const Bundle* bundle;
    [[gnu::noinline, gnu::cold]] void fail(int kind, const char* format, ...) {
        if (fault) return;
        fault = kind;
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
    }
    enum Assumption { kRounding, kSubnormal, kAssumptions };
    // A result rests on an assumption that stops cores, by its number: whether this one may go on.
    [[gnu::noinline, gnu::cold]] bool assume(int which) {
        static const char* const kReasons[] = {"a sum whose rounding is not told"};
        if (assumes) assumed |= 1 << which;
        else fail(kOpen, "%s", kReasons[which]);
        return assumes;
    }
    // A result is approximate, of the function with a number: whether the core may go on.
    [[gnu::noinline, gnu::cold]] bool approximates(int which, const char* name) {
        if (approximation) assumed |= 1 << (kAssumptions + which);
        else fail(kOpen, "%s is an approximation here, whose bits are not published", name);
        return approximation != 0;
    }
    BDFORGE_OFTEN std::uint8_t* at(std::int32_t place, std::uint8_t* buffer) {
        if (place < 0) return buffer + ~place;
        return place < kConstants ? registers + place : constants + (place - kConstants);
    }
};

// Copies to one or more places, in the widest registers of this machine.
template <int Bytes, class... To>
BDFORGE_OFTEN void move(const std::uint8_t* from, To*... to) {
    using Wide [[gnu::vector_size(64), gnu::aligned(1), gnu::may_alias]] = unsigned char;
    if constexpr (Bytes % sizeof(Wide)) (std::memcpy(to, from, Bytes), ...);
    else
#pragma GCC unroll 4
        for (std::size_t i = 0; i < Bytes; i += sizeof(Wide)) {
            const Wide piece = *reinterpret_cast<const Wide*>(from + i);
            ((*reinterpret_cast<Wide*>(to + i) = piece), ...);
        }
}

template <class T>
BDFORGE_OFTEN T load(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
BDFORGE_OFTEN void save(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

// The i-th place of an event as a 32-bit number.
BDFORGE_OFTEN std::uint32_t word(Core& core, const Event& event, std::uint8_t* buffer, int i) {
    return load<std::uint32_t>(core.at(event.a[i], buffer));
}

BDFORGE_OFTEN void put(Core& core, const Event& event, std::uint8_t* buffer, int i, std::uint32_t value) {
    save(core.at(event.a[i], buffer), value);
}

struct Named {
    const char* name;
    Function function;
};

}  // namespace engine
