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
using Places = std::array<std::int64_t, axes_max>;

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

    Step at(std::int64_t i) const { return line ? Step{i, i * stride} : steps[static_cast<std::size_t>(i)]; }
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

/// Calls `act(place on each axis, element)` at every turn of the loops from number `level` on.
template <class Act>
void walk(const std::vector<ElementLoop> &loops, std::size_t level, Places &places, std::int64_t element, Act &act) {
    if (level == loops.size()) return act(places, element);
    const ElementLoop &loop = loops[level];
    for (std::int64_t i = 0; i < loop.count; ++i) {
        walk(loops, level + 1, places, element, act);
        places[loop.axis] += loop.step;
        element += loop.stride;
    }
    places[loop.axis] -= loop.count * loop.step;
}

template <class Act>
void walk(const std::vector<ElementLoop> &loops, std::int64_t offset, Act &act) {
    Places places{};
    walk(loops, 0, places, offset, act);
}

/// The user's array, axis by axis: which positions places hold, and the elements from one position to the next.
struct Array {
    const std::vector<Positions> &axes;
    std::vector<std::int64_t> steps;

    const std::vector<Stretch> &stretches(std::size_t axis) const { return axes[axis].stretches; }

    /// The element of positions on all axes but one, from its first position on; -1 where one of them is none.
    std::int64_t beside(std::size_t axis, const Places &places) const {
        std::int64_t element = 0;
        for (std::size_t other = 0; other < axes.size(); ++other) {
            if (other == axis) continue;
            const std::int64_t held = position(at(stretches(other), places[other]), places[other]);
            if (held < 0) return -1;
            element += held * steps[other];
        }
        return element;
    }
};

/// Elements of so many bytes, at any address.
template <std::size_t size>
struct Unit {
    std::byte bytes[size];
};

/// Copies elements of whole bytes between an array and a buffer; `in`: to the buffer.
template <class Element, bool in>
class Copier {
public:
    Copier(const Run &run, const Array &of, Element *array, Element *buffer)
        : run_(run), of_(of), stretches_(of.stretches(run.axis)), step_(of.steps[run.axis]), array_(array), buffer_(buffer) {}

    void operator()(const Places &places, std::int64_t element) const {
        const std::int64_t line = of_.beside(run_.axis, places);
        Element *const array = array_ + std::max<std::int64_t>(line, 0);
        run_.line ? copy_line(line < 0, array, places[run_.axis], buffer_ + element)
                  : copy_steps(line < 0, array, places[run_.axis], buffer_ + element);
    }

private:
    void copy_line(bool none, Element *array, std::int64_t place, Element *buffer) const {
        const std::int64_t end = place + run_.count;
        for (std::int64_t next = 0; place < end; place = next) {
            const Stretch &stretch = at(stretches_, place);
            next = std::min(stretch.last, end);
            copy(none || stretch.position < 0, array + std::max<std::int64_t>(position(stretch, place), 0) * step_, buffer,
                 next - place);
            buffer += (next - place) * run_.stride;
        }
    }

    void copy(bool none, Element *array, Element *buffer, std::int64_t count) const {
        if (none && !in) return;
        const bool together = run_.stride == 1 && step_ == 1;
        const auto bytes = static_cast<std::size_t>(count) * sizeof(Element);
        if (none && run_.stride == 1) {
            std::memset(buffer, 0, bytes);
        } else if (none) {
            for (std::int64_t i = 0; i < count; ++i) buffer[i * run_.stride] = Element{};
        } else if (together) {
            in ? std::memcpy(buffer, array, bytes) : std::memcpy(array, buffer, bytes);
        } else {
            for (std::int64_t i = 0; i < count; ++i) exchange(array[i * step_], buffer[i * run_.stride]);
        }
    }

    static void exchange(Element &array, Element &buffer) { in ? buffer = array : array = buffer; }

    void copy_steps(bool none, Element *array, std::int64_t place, Element *buffer) const {
        const Stretch &first = at(stretches_, place);
        if (!none && first.position >= 0 && place + run_.span <= first.last) {
            array += position(first, place) * step_;
            for (const auto &[beside, element] : run_.steps) exchange(array[beside * step_], buffer[element]);
            return;
        }
        for (const auto &[beside, element] : run_.steps) {
            const std::int64_t found = none ? -1 : position(at(stretches_, place + beside), place + beside);
            if (found >= 0)
                exchange(array[found * step_], buffer[element]);
            else if (in)
                buffer[element] = Element{};
        }
    }

    const Run &run_;
    const Array &of_;
    const std::vector<Stretch> &stretches_;
    const std::int64_t step_;
    Element *const array_, *const buffer_;
};

/// Where a run is whole bytes, eight at least, `codes` to each: byte i holds places i, i + apart, i + 2 apart ...; else 0.
std::int64_t apart_of(const Run &run, std::int64_t codes) {
    const std::int64_t apart = run.count / codes;
    if (run.count % (8 * codes) != 0 || run.span != run.count) return 0;
    for (std::int64_t i = 0; i < run.count; ++i)
        if (const auto [place, element] = run.at(i); place != element / codes + element % codes * apart) return 0;
    return apart;
}

/// Codes of `bits` bits, several to a byte.
class Packer {
public:
    Packer(const Run &run, const Array &of, std::int64_t bits, std::int64_t bias, const std::uint8_t *array,
           std::uint8_t *buffer)
        : run_(run), of_(of), stretches_(of.stretches(run.axis)), step_(of.steps[run.axis]), bits_(static_cast<unsigned>(bits)), codes_(8 / bits),
          mask_(static_cast<std::uint8_t>((1U << bits_) - 1)), bias_(static_cast<std::uint8_t>(bias)), array_(array),
          buffer_(buffer), held_(static_cast<std::size_t>(run.count)), apart_(bias_ < 128 ? apart_of(run, codes_) : 0) {
        for (std::int64_t i = 0; i < run_.count; ++i) steps_of_run_.push_back(run_.at(i));
    }

    void operator()(const Places &places, std::int64_t element) {
        const std::int64_t place = places[run_.axis], line = of_.beside(run_.axis, places);
        const Stretch &first = at(stretches_, place);
        const bool together = line >= 0 && step_ == 1 && first.position >= 0 && place + run_.span <= first.last;
        const std::uint8_t *const array = array_ + std::max<std::int64_t>(line, 0);
        if (apart_ > 0 && together && element % codes_ == 0)
            return pack_lanes(array + position(first, place), buffer_ + element / codes_);
        for (std::size_t i = 0; together && i < held_.size(); ++i)
            held_[i] = static_cast<std::uint8_t>(array[position(first, place) + steps_of_run_[i].place] + bias_) & mask_;
        for (std::size_t i = 0; !together && i < held_.size(); ++i) {
            const std::int64_t at_place = place + steps_of_run_[i].place;
            const std::int64_t found = line < 0 ? -1 : position(at(stretches_, at_place), at_place);
            held_[i] = static_cast<std::uint8_t>((found < 0 ? 0 : array[found * step_]) + bias_) & mask_;
        }
        for (std::size_t i = 0; i < held_.size(); ++i) put(element + steps_of_run_[i].element, held_[i]);
    }

private:
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
    const Array &of_;
    const std::vector<Stretch> &stretches_;
    const std::int64_t step_;
    const unsigned bits_;
    const std::int64_t codes_;
    const std::uint8_t mask_, bias_;
    const std::uint8_t *const array_;
    std::uint8_t *const buffer_;
    std::vector<std::uint8_t> held_;
    std::vector<Run::Step> steps_of_run_;
    const std::int64_t apart_;
};

/// Values of the codes of `bits` bits that a Packer wrote: with their sign, or without their bias.
class Unpacker {
public:
    Unpacker(const Run &run, const Array &of, std::int64_t bits, std::int64_t bias, const std::uint8_t *buffer,
             std::uint8_t *array)
        : run_(run), of_(of), stretches_(of.stretches(run.axis)), step_(of.steps[run.axis]), bits_(static_cast<unsigned>(bits)),
          codes_(8 / bits), mask_((1U << bits_) - 1), sign_(bias == 0 ? 1U << (bits_ - 1) : 0),
          less_(sign_ + static_cast<std::uint8_t>(bias)), apart_(less_ < 128 ? apart_of(run, codes_) : 0), buffer_(buffer),
          array_(array) {}

    void operator()(const Places &places, std::int64_t element) const {
        const std::int64_t place = places[run_.axis], line = of_.beside(run_.axis, places);
        if (line < 0) return;
        const Stretch &first = at(stretches_, place);
        if (apart_ > 0 && step_ == 1 && first.position >= 0 && place + run_.span <= first.last && element % codes_ == 0)
            return unpack_lanes(buffer_ + element / codes_, array_ + line + position(first, place));
        for (std::int64_t i = 0; i < run_.count; ++i) {
            const auto [beside, along] = run_.at(i);
            const std::int64_t found = position(at(stretches_, place + beside), place + beside);
            if (found >= 0) array_[line + found * step_] = value(element + along);
        }
    }

private:
    std::uint8_t value(std::int64_t element) const {
        const unsigned code = buffer_[element / codes_] >> (static_cast<unsigned>(element % codes_) * bits_) & mask_;
        return static_cast<std::uint8_t>((code ^ sign_) - less_);
    }

    /// Eight bytes at a time: what is borrowed ends in each byte's highest bit.
    void unpack_lanes(const std::uint8_t *packed, std::uint8_t *array) const {
        constexpr std::uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
        for (std::int64_t byte = 0; byte < apart_; byte += 8) {
            std::uint64_t codes = 0;
            std::memcpy(&codes, packed + byte, sizeof codes);
            for (std::int64_t field = 0; field < codes_; ++field, codes >>= bits_) {
                const std::uint64_t raised = (codes & mask_ * ones) ^ (sign_ * ones);
                const std::uint64_t values = ((raised | high) - less_ * ones) ^ high;
                std::memcpy(array + byte + field * apart_, &values, sizeof values);
            }
        }
    }

    const Run &run_;
    const Array &of_;
    const std::vector<Stretch> &stretches_;
    const std::int64_t step_;
    const unsigned bits_;
    const std::int64_t codes_;
    const unsigned mask_, sign_, less_;
    const std::int64_t apart_;
    const std::uint8_t *const buffer_;
    std::uint8_t *const array_;
};

/// A tile of 8 x 8 floats, whose blocks lie along the last axis, or the first one.
class Tiles {
public:
    Tiles(const Array &of, Blocked blocked) : of_(of), along_(blocked == Blocked::down ? 0 : 1) {}

    /// Writes a tile; SequenceError for what blocks cannot hold.
    void place(const Places &places, const Unit<sizeof(float)> *array, std::byte *tile) const {
        const Sides sides = sides_of(places);
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

    void fetch(const Places &places, Unit<sizeof(float)> *array, const std::byte *tile) const {
        const Sides sides = sides_of(places);
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
    Sides sides_of(const Places &places) const {
        Sides sides;
        for (std::size_t axis = 0; axis < sides.size(); ++axis)
            for (std::size_t i = 0; i < block_values; ++i) {
                const std::int64_t place = places[axis] * block_values + static_cast<std::int64_t>(i);
                sides[axis][i] = position(at(of_.stretches(axis), place), place);
            }
        return sides;
    }

    std::int64_t index(const Sides &sides, std::size_t i, std::size_t j) const {
        return sides[1 - along_][i] * of_.steps[1 - along_] + sides[along_][j] * of_.steps[along_];
    }

    const Array &of_;
    const std::size_t along_;
};

template <std::size_t size, bool in>
void copy_units(std::vector<ElementLoop> loops, const Array &of, std::int64_t offset, void *array, void *buffer) {
    const Run run = take_run(loops);
    Copier<Unit<size>, in> copier(run, of, static_cast<Unit<size> *>(array), static_cast<Unit<size> *>(buffer));
    walk(loops, offset, copier);
}

/// Copies elements of so many bytes.
template <bool in>
void copy(std::int64_t bits, const std::vector<ElementLoop> &loops, const Array &of, std::int64_t offset, void *array,
          void *buffer) {
    switch (bits / 8) {
    case 1: return copy_units<1, in>(loops, of, offset, array, buffer);
    case 2: return copy_units<2, in>(loops, of, offset, array, buffer);
    case 4: return copy_units<4, in>(loops, of, offset, array, buffer);
    case 8: return copy_units<8, in>(loops, of, offset, array, buffer);
    default: return copy_units<tile_bytes, in>(loops, of, offset, array, buffer);
    }
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
    const Array of{axes_, steps(leading)};
    if (operand_.blocked != Blocked::no) {
        const Tiles tiles(of, operand_.blocked);
        auto act = [&](const Places &places, std::int64_t element) {
            tiles.place(places, static_cast<const Unit<sizeof(float)> *>(data),
                        static_cast<std::byte *>(buffer) + element * tile_bytes);
        };
        return walk(loops_, offset_, act);
    }
    if (operand_.bits >= 8)  // which reads the array only
        return copy<true>(operand_.bits, loops_, of, offset_, const_cast<void *>(data), buffer);
    std::vector<ElementLoop> loops = loops_;
    const Run run = take_run(loops);
    Packer packer(run, of, operand_.bits, operand_.bias, static_cast<const std::uint8_t *>(data),
                  static_cast<std::uint8_t *>(buffer));
    walk(loops, offset_, packer);
}

void Layout::fetch(const void *buffer, void *data, std::int64_t leading) const {
    const Array of{axes_, steps(leading)};
    if (operand_.blocked != Blocked::no) {
        const Tiles tiles(of, operand_.blocked);
        auto act = [&](const Places &places, std::int64_t element) {
            tiles.fetch(places, static_cast<Unit<sizeof(float)> *>(data),
                        static_cast<const std::byte *>(buffer) + element * tile_bytes);
        };
        return walk(loops_, offset_, act);
    }
    if (operand_.bits >= 8) return copy<false>(operand_.bits, loops_, of, offset_, data, const_cast<void *>(buffer));
    std::vector<ElementLoop> loops = loops_;
    const Run run = take_run(loops);
    const Unpacker unpacker(run, of, operand_.bits, operand_.bias, static_cast<const std::uint8_t *>(buffer),
                            static_cast<std::uint8_t *>(data));
    walk(loops, offset_, unpacker);
}

}  // namespace bdforge::generator
