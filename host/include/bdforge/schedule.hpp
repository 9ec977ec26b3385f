// When the steps of a sequence start and end: the same as `bdforge/design/sequences/interpret.py`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/program.hpp"
#include "bdforge/stream.hpp"

namespace bdforge::generator {

/// Steps of one run: its stream would have tens of MiB.
constexpr std::size_t steps_max = std::size_t{1} << 14;

namespace detail {

/// What a step starts with, in order: a task with its BDs, or a write of registers.
struct Item {
    const Task *task;  // null for a write
    std::uint32_t first, second;  // column and runs, address and number of values
    std::uint32_t bds;
};

struct ChainedBd {
    BdWords words;
    std::uint32_t argument;
};

/// A step whose BDs have no numbers yet.
struct Planned {
    std::vector<Item> items;
    std::vector<ChainedBd> bds;
    std::vector<std::uint32_t> written;  // values of all writes
    std::vector<std::uint32_t> needs;  // BDs by column
    bool tasks = false;

    void clear() {
        items.clear(), bds.clear(), written.clear();
        std::fill(needs.begin(), needs.end(), 0);
        tasks = false;
    }
};

struct Wait {
    Direction direction;
    std::uint32_t channel, column, columns;
};

/// The BDs of one shim, taken and freed in order.
struct Ring {
    std::uint32_t head = 0, used = 0;
};

/// Runs steps in order, as many at a time as BDs and `in_flight` allow.
class Schedule {
public:
    Schedule(const Design &design, Writer &writer)
        : design_(design), writer_(writer), rings_(design.target.columns) {}

    void start(const Planned &step, std::vector<Wait> waits) {
        if (++steps_ > steps_max)
            throw SequenceError("the sequence takes more than " + std::to_string(steps_max) +
                                " steps; split the problem");
        while (!running_.empty() && (running_.size() == design_.program.in_flight || !fits(step.needs)))
            end_oldest();
        if (!fits(step.needs))
            throw SequenceError("a step needs more than the " + std::to_string(design_.target.bds) +
                                " BDs of a shim; start less at a time");
        const ChainedBd *bds = step.bds.data();
        const std::uint32_t *written = step.written.data();
        for (const Item &item : step.items) {
            item.task ? run(item, bds) : writer_.write(item.first, written, item.second);
            bds += item.bds, written += item.task ? 0 : item.second;
        }
        running_.push_back({step.needs, std::move(waits), step.tasks});
    }

    void finish() {
        for (; !running_.empty(); running_.pop_front())
            await(running_.front());
    }

private:
    struct Running {
        std::vector<std::uint32_t> needs;
        std::vector<Wait> waits;
        bool tasks;
    };

    bool fits(const std::vector<std::uint32_t> &needs) const {
        for (std::size_t column = 0; column < needs.size(); ++column)
            if (rings_[column].used + needs[column] > design_.target.bds)
                return false;
        return true;
    }

    void end_oldest() {
        const Running &oldest = running_.front();
        if (oldest.tasks && oldest.waits.empty())
            throw SequenceError("a step awaits no token; nothing says when its BDs are free");
        await(oldest);
        for (std::size_t column = 0; column < rings_.size(); ++column)
            rings_[column].used -= oldest.needs[column];
        running_.pop_front();
    }

    void await(const Running &step) {
        for (const auto &[direction, channel, column, columns] : step.waits) {
            const std::uint32_t width = design_.wide ? columns : 1;
            for (std::uint32_t first = column; first < column + columns; first += width)
                writer_.await(direction, channel, first, width);
        }
    }

    void run(const Item &item, const ChainedBd *bds) {
        Ring &ring = rings_[item.first];
        const std::uint32_t first = ring.head;
        for (std::uint32_t i = 0; i < item.bds; ++i) {
            const std::uint32_t id = ring.head, next = (ring.head + 1) % design_.target.bds;
            writer_.configure(item.first, id, i + 1 < item.bds ? &next : nullptr, bds[i].words, bds[i].argument);
            ring.head = next;
        }
        ring.used += item.bds;
        writer_.push(*item.task, item.first, item.second, first);
    }

    const Design &design_;
    Writer &writer_;
    std::vector<Ring> rings_;
    std::deque<Running> running_;
    std::size_t steps_ = 0;
};

}  // namespace detail
}  // namespace bdforge::generator
