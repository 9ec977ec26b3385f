// The copies between a user's array and a buffer: Layout::place, fetch and fault.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "bdforge/layout.hpp"
#include "block_floats.hpp"

namespace bdforge::generator {
namespace {

constexpr std::int64_t run_max = 4096;  // steps of a run that is made of several loops

/// A stretch at a place. There are few.
const Stretch &at(const std::vector<Stretch> &stretches, std::int64_t place) {
    auto found = stretches.begin();
    while (place >= found->last) ++found;
    return *found;
}

std::int64_t position(const Stretch &stretch, std::int64_t place) {
    return stretch.position < 0 ? -1 : stretch.position + (place - stretch.first);
}

/// What the innermost loops along one axis walk: places and elements from their first ones on.
struct Run {
    std::size_t axis = 1;
    std::int64_t span = 1;  // places from the first to behind the last one
    bool line = true;       // places side by side, elements `stride` apart
    std::int64_t count = 1, stride = 1;
    struct Step {
        std::int64_t place, element;
    };
    std::vector<Step> steps;  // where `line` is false
};

/// Takes the innermost loops from `loops`.
Run take_run(std::vector<ElementLoop> &loops) {
    while (loops.size() > 1 && loops.back().count == 1) loops.pop_back();
    const ElementLoop inner = loops.back();
    loops.pop_back();
    Run run{inner.axis, (inner.count - 1) * inner.step + 1, inner.step == 1, inner.count, inner.stride, {}};
    const auto joins = [&] { return !loops.empty() && loops.back().axis == run.axis && loops.back().count * run.count <= run_max; };
    if (run.line && !joins()) return run;
    for (std::int64_t i = 0; i < inner.count; ++i) run.steps.push_back({i * inner.step, i * inner.stride});
    for (run.line = false; joins(); loops.pop_back()) {
        const ElementLoop outer = loops.back();
        const std::size_t before = run.steps.size();
        for (std::int64_t i = 1; i < outer.count; ++i)
            for (std::size_t j = 0; j < before; ++j)
                run.steps.push_back({run.steps[j].place + i * outer.step, run.steps[j].element + i * outer.stride});
        run.span += (outer.count - 1) * outer.step;
        run.count *= outer.count;
    }
    return run;
}

/// Calls `act(place on axis 0, place on axis 1, element)` at every turn of the loops from number `level` on.
template <class Act>
void walk(const std::vector<ElementLoop> &loops, std::size_t level, std::array<std::int64_t, 2> places,
          std::int64_t element, Act &act) {
    if (level == loops.size()) return act(places, element);
    const ElementLoop &loop = loops[level];
    for (std::int64_t i = 0; i < loop.count; ++i) {
        walk(loops, level + 1, places, element, act);
        places[loop.axis] += loop.step;
        element += loop.stride;
    }
}

/// Elements of so many bytes, at any address.
template <std::size_t size>
struct Unit {
    std::byte bytes[size];
};

/// Copies elements of whole bytes between an array and a buffer; `in`: to the buffer.
template <class Element, bool in>
class Copier {
public:
    Copier(const Run &run, const std::array<const std::vector<Stretch> *, 2> &stretches, std::array<std::int64_t, 2> steps,
           Element *array, Element *buffer)
        : run_(run), stretches_(stretches), steps_(steps), array_(array), buffer_(buffer) {}

    void operator()(const std::array<std::int64_t, 2> &places, std::int64_t element) const {
        const std::size_t other = 1 - run_.axis;
        const std::int64_t line = position(at(*stretches_[other], places[other]), places[other]);
        Element *const array = array_ + std::max<std::int64_t>(line, 0) * steps_[other];
        run_.line ? copy_line(line < 0, array, places[run_.axis], buffer_ + element)
                  : copy_steps(line < 0, array, places[run_.axis], buffer_ + element);
    }

private:
    void copy_line(bool none, Element *array, std::int64_t place, Element *buffer) const {
        const std::int64_t step = steps_[run_.axis], end = place + run_.count;
        for (std::int64_t next = 0; place < end; place = next) {
            const Stretch &stretch = at(*stretches_[run_.axis], place);
            next = std::min(stretch.last, end);
            copy(none || stretch.position < 0, array + std::max<std::int64_t>(position(stretch, place), 0) * step, step,
                 buffer, next - place);
            buffer += (next - place) * run_.stride;
        }
    }

    void copy(bool none, Element *array, std::int64_t step, Element *buffer, std::int64_t count) const {
        if (none && !in) return;
        const bool together = run_.stride == 1 && step == 1;
        const auto bytes = static_cast<std::size_t>(count) * sizeof(Element);
        if (none && run_.stride == 1) {
            std::memset(buffer, 0, bytes);
        } else if (none) {
            for (std::int64_t i = 0; i < count; ++i) buffer[i * run_.stride] = Element{};
        } else if (together) {
            in ? std::memcpy(buffer, array, bytes) : std::memcpy(array, buffer, bytes);
        } else {
            for (std::int64_t i = 0; i < count; ++i) exchange(array[i * step], buffer[i * run_.stride]);
        }
    }

    static void exchange(Element &array, Element &buffer) { in ? buffer = array : array = buffer; }

    void copy_steps(bool none, Element *array, std::int64_t place, Element *buffer) const {
        const Stretch &first = at(*stretches_[run_.axis], place);
        const std::int64_t step = steps_[run_.axis];
        if (!none && first.position >= 0 && place + run_.span <= first.last) {
            array += position(first, place) * step;
            for (const auto &[beside, element] : run_.steps) exchange(array[beside * step], buffer[element]);
            return;
        }
        for (const auto &[beside, element] : run_.steps) {
            const std::int64_t found = none ? -1 : position(at(*stretches_[run_.axis], place + beside), place + beside);
            if (found >= 0)
                exchange(array[found * step], buffer[element]);
            else if (in)
                buffer[element] = Element{};
        }
    }

    const Run &run_;
    const std::array<const std::vector<Stretch> *, 2> stretches_;
    const std::array<std::int64_t, 2> steps_;
    Element *const array_, *const buffer_;
};

/// Codes of `bits` bits, several to a byte.
class Packer {
public:
    Packer(const Run &run, const std::array<Positions, 2> &axes, std::array<std::int64_t, 2> steps, std::int64_t bits,
           std::int64_t bias, const std::uint8_t *array, std::uint8_t *buffer)
        : run_(run), axes_(axes), steps_(steps), bits_(static_cast<unsigned>(bits)), codes_(8 / bits),
          mask_(static_cast<std::uint8_t>((1U << bits_) - 1)), bias_(static_cast<std::uint8_t>(bias)), array_(array),
          buffer_(buffer), held_(static_cast<std::size_t>(run.count)) {
        if (run_.line)
            for (std::int64_t i = 0; i < run_.count; ++i) steps_of_run_.push_back({i, i * run_.stride});
        else
            steps_of_run_ = run_.steps;
        find_bytes();
    }

    void operator()(const std::array<std::int64_t, 2> &places, std::int64_t element) {
        const std::size_t axis = run_.axis, other = 1 - axis;
        const std::int64_t place = places[axis], line = position(at(axes_[other].stretches, places[other]), places[other]);
        const Stretch &first = at(axes_[axis].stretches, place);
        const bool together = line >= 0 && steps_[axis] == 1 && first.position >= 0 && place + run_.span <= first.last;
        const std::uint8_t *const array = array_ + std::max<std::int64_t>(line, 0) * steps_[other];
        if (lanes_ && together && element % codes_ == 0)
            return pack_lanes(array + position(first, place), buffer_ + element / codes_);
        for (std::size_t i = 0; together && i < held_.size(); ++i)
            held_[i] = static_cast<std::uint8_t>(array[position(first, place) + steps_of_run_[i].place] + bias_) & mask_;
        for (std::size_t i = 0; !together && i < held_.size(); ++i) {
            const std::int64_t at_place = place + steps_of_run_[i].place;
            const std::int64_t found = line < 0 ? -1 : position(at(axes_[axis].stretches, at_place), at_place);
            held_[i] = static_cast<std::uint8_t>((found < 0 ? 0 : array[found * steps_[axis]]) + bias_) & mask_;
        }
        for (std::size_t i = 0; i < held_.size(); ++i) put(element + steps_of_run_[i].element, held_[i]);
    }

private:
    /// Whether the run is whole bytes, eight at least: byte i holds places i, i + apart, i + 2 apart ...
    void find_bytes() {
        apart_ = run_.count / codes_;
        lanes_ = run_.count % (8 * codes_) == 0 && bias_ < 128 && run_.span == run_.count;
        for (const auto &[place, element] : steps_of_run_)
            lanes_ = lanes_ && place == element / codes_ + element % codes_ * apart_;
    }

    /// Eight bytes at a time: no code leaves its byte when it is added to, masked and shifted.
    void pack_lanes(const std::uint8_t *array, std::uint8_t *out) const {
        constexpr std::uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
        const std::uint64_t bias = bias_ * ones, mask = mask_ * ones;
        for (std::int64_t byte = 0; byte < apart_; byte += 8) {
            std::uint64_t packed = 0;
            for (std::int64_t field = 0; field < codes_; ++field) {
                std::uint64_t values = 0;
                std::memcpy(&values, array + byte + field * apart_, sizeof values);
                values = ((values & ~high) + bias) ^ (values & high);
                packed |= (values & mask) << (field * bits_);
            }
            std::memcpy(out + byte, &packed, sizeof packed);
        }
    }

    void put(std::int64_t element, std::uint8_t code) const {
        const auto shift = static_cast<unsigned>(element % codes_) * bits_;
        std::uint8_t &byte = buffer_[element / codes_];
        byte = static_cast<std::uint8_t>((byte & ~(mask_ << shift)) | code << shift);
    }

    const Run &run_;
    const std::array<Positions, 2> &axes_;
    const std::array<std::int64_t, 2> steps_;
    const unsigned bits_;
    const std::int64_t codes_;
    const std::uint8_t mask_, bias_;
    const std::uint8_t *const array_;
    std::uint8_t *const buffer_;
    std::vector<std::uint8_t> held_;
    std::vector<Run::Step> steps_of_run_;
    std::int64_t apart_ = 0;
    bool lanes_ = false;
};

/// A tile of 8 x 8 floats, whose blocks lie along the last axis, or the first one.
class Tiles {
public:
    Tiles(const std::array<Positions, 2> &axes, std::array<std::int64_t, 2> steps, Blocked blocked)
        : axes_(axes), steps_(steps), along_(blocked == Blocked::down ? 0 : 1) {}

    /// Writes a tile; SequenceError for what blocks cannot hold.
    void place(const std::array<std::int64_t, 2> &places, const Unit<sizeof(float)> *array, std::byte *tile) const {
        const Sides sides = sides_of(places, false);
        for (std::size_t i = 0; i < block_values; ++i, tile += block_bytes) {
            std::array<float, block_values> values{};
            for (std::size_t j = 0; j < block_values; ++j)
                if (sides[1 - along_][i] >= 0 && sides[along_][j] >= 0)
                    std::memcpy(&values[j], array + index(sides, i, j), sizeof(float));
            if (!finite(values))
                throw SequenceError("infinite or no number near position " + std::to_string(places[0] * block_values) +
                                    ", " + std::to_string(places[1] * block_values) +
                                    "; block floats hold neither, clip or replace it first");
            const Block block = encode(values);
            std::memcpy(tile, block.data(), block.size());
        }
    }

    void fetch(const std::array<std::int64_t, 2> &places, Unit<sizeof(float)> *array, const std::byte *tile) const {
        const Sides sides = sides_of(places, true);
        for (std::size_t i = 0; i < block_values; ++i, tile += block_bytes) {
            Block block;
            std::memcpy(block.data(), tile, block.size());
            const std::array<float, block_values> values = decode(block);
            for (std::size_t j = 0; j < block_values; ++j)
                if (sides[1 - along_][i] >= 0 && sides[along_][j] >= 0)
                    std::memcpy(array + index(sides, i, j), &values[j], sizeof(float));
        }
    }

private:
    using Sides = std::array<std::array<std::int64_t, block_values>, 2>;

    /// Positions of the tile's rows and columns, -1 for none.
    Sides sides_of(const std::array<std::int64_t, 2> &places, bool found) const {
        Sides sides;
        for (std::size_t axis = 0; axis < sides.size(); ++axis)
            for (std::size_t i = 0; i < block_values; ++i) {
                const std::int64_t place = places[axis] * block_values + static_cast<std::int64_t>(i);
                sides[axis][i] = position(at(found ? axes_[axis].found : axes_[axis].stretches, place), place);
            }
        return sides;
    }

    std::int64_t index(const Sides &sides, std::size_t i, std::size_t j) const {
        return sides[1 - along_][i] * steps_[1 - along_] + sides[along_][j] * steps_[along_];
    }

    const std::array<Positions, 2> &axes_;
    const std::array<std::int64_t, 2> steps_;
    const std::size_t along_;
};

template <std::size_t size, bool in, class Array, class Bytes>
void copy_units(std::vector<ElementLoop> loops, const std::array<const std::vector<Stretch> *, 2> &stretches,
                std::array<std::int64_t, 2> steps, std::int64_t offset, Array *array, Bytes *buffer) {
    const Run run = take_run(loops);
    Copier<Unit<size>, in> copier(run, stretches, steps, static_cast<Unit<size> *>(array),
                                  static_cast<Unit<size> *>(buffer));
    walk(loops, 0, {0, 0}, offset, copier);
}

/// Copies elements of so many bytes.
template <bool in>
void copy(std::int64_t bits, const std::vector<ElementLoop> &loops, const std::array<const std::vector<Stretch> *, 2> &stretches,
          std::array<std::int64_t, 2> steps, std::int64_t offset, void *array, void *buffer) {
    switch (bits / 8) {
    case 1: return copy_units<1, in>(loops, stretches, steps, offset, array, buffer);
    case 2: return copy_units<2, in>(loops, stretches, steps, offset, array, buffer);
    case 4: return copy_units<4, in>(loops, stretches, steps, offset, array, buffer);
    case 8: return copy_units<8, in>(loops, stretches, steps, offset, array, buffer);
    default: return copy_units<tile_bytes, in>(loops, stretches, steps, offset, array, buffer);
    }
}

/// Elements of the user's from row to row and from column to column.
std::array<std::int64_t, 2> steps_of(bool column_major, std::int64_t leading) {
    return column_major ? std::array<std::int64_t, 2>{1, leading} : std::array<std::int64_t, 2>{leading, 1};
}

/// The first of a line's numbers outside of a range; `count` for none.
template <class Number>
std::int64_t first_outside(const Unit<sizeof(Number)> *line, std::int64_t count, std::int64_t low, std::int64_t high) {
    constexpr std::int64_t lanes = 64;
    const auto outside = [&](std::int64_t i) {
        Number value;
        std::memcpy(&value, line + i, sizeof value);
        return value < low || value > high;
    };
    std::int64_t first = 0;
    const auto low_lane = static_cast<Number>(low), high_lane = static_cast<Number>(high);
    for (; low <= high && first + lanes <= count; first += lanes) {
        Number values[lanes];
        std::memcpy(values, line + first, sizeof values);
        unsigned char any = 0;
        for (const Number value : values) any = static_cast<unsigned char>(any | (value < low_lane) | (value > high_lane));
        if (any) break;
    }
    while (first < count && !outside(first)) ++first;
    return first;
}

template <class Number>
std::optional<Layout::Fault> fault_in(const Layout &layout, const void *data, std::int64_t leading) {
    using Limits = std::numeric_limits<Number>;
    const auto low = std::max<std::int64_t>(layout.operand().values->first, Limits::min());
    const auto high = std::min<std::int64_t>(layout.operand().values->second, Limits::max());
    const auto *numbers = static_cast<const Unit<sizeof(Number)> *>(data);
    std::optional<Layout::Fault> found;
    for (std::int64_t line = 0; line < layout.lines(); ++line) {
        const std::int64_t i = first_outside<Number>(numbers + line * leading, layout.line(), low, high);
        if (i == layout.line()) continue;
        Number value;
        std::memcpy(&value, numbers + line * leading + i, sizeof value);
        const Layout::Fault fault = layout.column_major() ? Layout::Fault{i, line, value} : Layout::Fault{line, i, value};
        if (!found || std::pair(fault.row, fault.column) < std::pair(found->row, found->column)) found = fault;
        if (!layout.column_major()) break;
    }
    return found;
}

}  // namespace

std::optional<Layout::Fault> Layout::fault(const void *data, std::int64_t leading) const {
    if (!operand_.values || operand_.type.rfind("int", 0) != 0 || operand_.blocked != Blocked::no) return std::nullopt;
    if (element_bytes() == 1) return fault_in<std::int8_t>(*this, data, leading);
    if (element_bytes() == 2) return fault_in<std::int16_t>(*this, data, leading);
    return element_bytes() == 4 ? fault_in<std::int32_t>(*this, data, leading) : std::nullopt;
}

void Layout::place(const void *data, std::int64_t leading, void *buffer) const {
    const std::array<std::int64_t, 2> steps = steps_of(column_major(), leading);
    if (operand_.blocked != Blocked::no) {
        const Tiles tiles(axes_, steps, operand_.blocked);
        auto act = [&](const std::array<std::int64_t, 2> &places, std::int64_t element) {
            tiles.place(places, static_cast<const Unit<sizeof(float)> *>(data),
                        static_cast<std::byte *>(buffer) + element * tile_bytes);
        };
        return walk(loops_, 0, {0, 0}, offset_, act);
    }
    if (operand_.bits >= 8)  // which reads the array only
        return copy<true>(operand_.bits, loops_, {&axes_[0].stretches, &axes_[1].stretches}, steps, offset_,
                          const_cast<void *>(data), buffer);
    std::vector<ElementLoop> loops = loops_;
    const Run run = take_run(loops);
    Packer packer(run, axes_, steps, operand_.bits, operand_.bias, static_cast<const std::uint8_t *>(data),
                  static_cast<std::uint8_t *>(buffer));
    walk(loops, 0, {0, 0}, offset_, packer);
}

void Layout::fetch(const void *buffer, void *data, std::int64_t leading) const {
    const std::array<std::int64_t, 2> steps = steps_of(column_major(), leading);
    if (operand_.blocked != Blocked::no) {
        const Tiles tiles(axes_, steps, operand_.blocked);
        auto act = [&](const std::array<std::int64_t, 2> &places, std::int64_t element) {
            tiles.fetch(places, static_cast<Unit<sizeof(float)> *>(data),
                        static_cast<const std::byte *>(buffer) + element * tile_bytes);
        };
        return walk(loops_, 0, {0, 0}, offset_, act);
    }
    copy<false>(operand_.bits, loops_, {&axes_[0].found, &axes_[1].found}, steps, offset_, data,
                const_cast<void *>(buffer));
}

}  // namespace bdforge::generator
