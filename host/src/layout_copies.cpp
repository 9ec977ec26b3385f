// The copies between a user's array and a buffer: Layout::place, fetch and fault.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "layout.hpp"
#include "number_formats.hpp"

namespace bdforge::sequence {
namespace {

constexpr std::int64_t run_max = 4096;  // steps of a run that is made of several loops
using Places = std::array<std::int64_t, axes_max>;

/// A stretch at a place. There are few.
const Stretch& at(const std::vector<Stretch>& stretches, std::int64_t place) {
    auto found = stretches.begin();
    while (place >= found->last) ++found;
    return *found;
}

std::int64_t position(const Stretch& stretch, std::int64_t place) {
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
Run take_run(std::vector<ElementLoop>& loops) {
    while (loops.size() > 1 && loops.back().count == 1) loops.pop_back();
    const ElementLoop inner = loops.back();
    loops.pop_back();
    Run run{inner.axis, (inner.count - 1) * inner.step + 1, inner.step == 1, inner.count, inner.stride, {}};
    const auto joins = [&] {
        return !loops.empty() && loops.back().axis == run.axis && loops.back().count * run.count <= run_max;
    };
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
void walk(const std::vector<ElementLoop>& loops, std::int64_t element, const Act& act, Places&& places = {},
          std::size_t level = 0) {
    if (level == loops.size()) return act(places, element);
    const ElementLoop& loop = loops[level];
    for (std::int64_t i = 0; i < loop.count; ++i) {
        walk(loops, element, act, std::move(places), level + 1);
        places[loop.axis] += loop.step;
        element += loop.stride;
    }
    places[loop.axis] -= loop.count * loop.step;
}

/// The user's array, axis by axis: which positions places hold, and the elements from one position to the next.
struct UserArray {
    const std::vector<Positions>& axes;
    std::vector<std::int64_t> steps;

    const std::vector<Stretch>& stretches(std::size_t axis) const { return axes[axis].stretches; }

    /// The element of positions on all axes but one, from its first position on; -1 where one of them is none.
    std::int64_t beside(std::size_t axis, const Places& places) const {
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

/// A run, at each turn of the loops around it.
struct RunOf {
    RunOf(const Run& of, const UserArray& array)
        : run(of), user(array), stretches(array.stretches(run.axis)), step(array.steps[run.axis]) {}

    /// The user's element of the run's first place, where all of it holds positions one after another; else -1.
    std::int64_t whole(const Places& places) const {
        const std::int64_t line = user.beside(run.axis, places), place = places[run.axis];
        const Stretch& first = at(stretches, place);
        const bool together = line >= 0 && first.position >= 0 && place + run.span <= first.last;
        return together ? line + position(first, place) * step : -1;
    }

    /// Calls `act(user's element or -1, element)` for each place, elements from the run's first on.
    template <class Act>
    void each(const Places& places, const Act& act) const {
        if (const std::int64_t first = whole(places); first >= 0 && !run.line) {
            for (const auto& [beside, element] : run.steps) act(first + beside * step, element);
            return;
        }
        const std::int64_t line = user.beside(run.axis, places);
        for (std::int64_t i = 0; i < run.count; ++i) {
            const auto [beside, element] = run.at(i);
            const std::int64_t place = places[run.axis] + beside,
                               found = line < 0 ? -1 : position(at(stretches, place), place);
            act(found < 0 ? -1 : line + found * step, element);
        }
    }

    const Run& run;
    const UserArray& user;
    const std::vector<Stretch>& stretches;
    const std::int64_t step;
};

/// Elements of so many bytes, at any address.
template <std::size_t size>
struct Unit {
    std::byte bytes[size];
};

/// Copies elements of whole bytes between an array and a buffer; `in`: to the buffer.
template <class Element, bool in>
class Copier : RunOf {
public:
    Copier(const Run& of, const UserArray& user, void* array, void* buffer)
        : RunOf(of, user), array_(static_cast<Element*>(array)), buffer_(static_cast<Element*>(buffer)) {}

    void operator()(const Places& places, std::int64_t element) const {
        Element* const buffer = buffer_ + element;
        if (run.line) return copy_line(user.beside(run.axis, places), places[run.axis], buffer);
        each(places, [&](std::int64_t found, std::int64_t along) {
            if (found >= 0)
                exchange(array_[found], buffer[along]);
            else if (in)
                buffer[along] = Element{};
        });
    }

private:
    void copy_line(std::int64_t line, std::int64_t place, Element* buffer) const {
        const std::int64_t end = place + run.count;
        for (std::int64_t next = 0; place < end; place = next) {
            const Stretch& stretch = at(stretches, place);
            next = std::min(stretch.last, end);
            const bool none = line < 0 || stretch.position < 0;
            copy(none ? nullptr : array_ + line + position(stretch, place) * step, buffer, next - place);
            buffer += (next - place) * run.stride;
        }
    }

    /// Zeros for no array.
    void copy(Element* array, Element* buffer, std::int64_t count) const {
        if (array == nullptr && !in) return;
        const auto bytes = static_cast<std::size_t>(count) * sizeof(Element);
        if (array == nullptr && run.stride == 1) {
            std::memset(buffer, 0, bytes);
        } else if (array == nullptr) {
            for (std::int64_t i = 0; i < count; ++i) buffer[i * run.stride] = Element{};
        } else if (run.stride == 1 && step == 1) {
            in ? std::memcpy(buffer, array, bytes) : std::memcpy(array, buffer, bytes);
        } else {
            for (std::int64_t i = 0; i < count; ++i) exchange(array[i * step], buffer[i * run.stride]);
        }
    }

    static void exchange(Element& array, Element& buffer) { in ? buffer = array : array = buffer; }

    Element *const array_, *const buffer_;
};

/// Where a run is whole bytes, eight at least, `codes` to each: byte i holds places i, i + apart, i + 2 apart ...; else 0.
std::int64_t apart_of(const Run& run, std::int64_t codes) {
    const std::int64_t apart = run.count / codes;
    if (run.count % (8 * codes) != 0 || run.span != run.count) return 0;
    for (std::int64_t i = 0; i < run.count; ++i)
        if (const auto [place, element] = run.at(i); place != element / codes + element % codes * apart) return 0;
    return apart;
}

/// Copies values between bytes and codes of `bits` bits, several to a byte: with their sign, or with a bias added.
template <bool in>
class Packer : RunOf {
public:
    Packer(const Run& of, const UserArray& user, const Operand& operand, void* array, void* buffer)
        : RunOf(of, user),
          bits_(operand.bits),
          codes_(8 / operand.bits),
          mask_((1U << bits_) - 1),
          bias_(static_cast<std::uint8_t>(operand.bias)),
          sign_(operand.bias == 0 ? 1U << (bits_ - 1) : 0),
          less_(sign_ + bias_),
          apart_(less_ < 128 ? apart_of(run, codes_) : 0),
          array_(static_cast<std::uint8_t*>(array)),
          buffer_(static_cast<std::uint8_t*>(buffer)) {}

    void operator()(const Places& places, std::int64_t element) const {
        const std::int64_t first = apart_ > 0 && step == 1 && element % codes_ == 0 ? whole(places) : -1;
        if (first >= 0)
            return in ? pack(array_ + first, buffer_ + element / codes_)
                      : unpack(buffer_ + element / codes_, array_ + first);
        each(places, [&](std::int64_t found, std::int64_t along) {
            const auto shift = static_cast<unsigned>((element + along) % codes_) * bits_;
            std::uint8_t& byte = buffer_[(element + along) / codes_];
            if constexpr (in) {
                const unsigned code = ((found < 0 ? 0U : array_[found]) + bias_) & mask_;
                byte = static_cast<std::uint8_t>((byte & ~(mask_ << shift)) | code << shift);
            } else if (found >= 0) {
                array_[found] = static_cast<std::uint8_t>(((byte >> shift & mask_) ^ sign_) - less_);
            }
        });
    }

private:
    static constexpr std::uint64_t ones = 0x0101010101010101, high = 0x80 * ones;

    /// Eight bytes at a time: no code leaves its byte when it is added to, masked and shifted.
    void pack(const std::uint8_t* array, std::uint8_t* out) const {
        for (std::int64_t byte = 0; byte < apart_; byte += 8) {
            std::uint64_t packed = 0;
            for (std::int64_t field = 0; field < codes_; ++field) {
                std::uint64_t values = 0;
                std::memcpy(&values, array + byte + field * apart_, sizeof values);
                values = ((values & ~high) + bias_ * ones) ^ (values & high);
                packed |= (values & mask_ * ones) << (field * bits_);
            }
            std::memcpy(out + byte, &packed, sizeof packed);
        }
    }

    /// Likewise: what is borrowed ends in each byte's highest bit.
    void unpack(const std::uint8_t* packed, std::uint8_t* array) const {
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

    const unsigned bits_;
    const std::int64_t codes_;
    const unsigned mask_, bias_, sign_, less_;
    const std::int64_t apart_;
    std::uint8_t *const array_, *const buffer_;
};

/// Copies tiles of 8 x 8 floats, whose blocks lie along the last axis, or the first one.
template <bool in>
class TileCopier {
public:
    TileCopier(const UserArray& of, Blocked blocked, void* array, void* buffer)
        : of_(of),
          along_(blocked == Blocked::down ? 0 : 1),
          array_(static_cast<Unit<sizeof(float)>*>(array)),
          buffer_(static_cast<std::byte*>(buffer)) {}

    /// SequenceError for what blocks cannot hold.
    void operator()(const Places& places, std::int64_t element) const {
        const Sides sides = sides_of(places);
        std::byte* tile = buffer_ + element * tile_bytes;
        for (std::size_t i = 0; i < block_values; ++i, tile += block_bytes) {
            Block block;
            BlockValues values{};
            if (!in) {
                std::memcpy(block.data(), tile, block.size());
                values = decode(block);
            }
            for (std::size_t j = 0; j < block_values; ++j) {
                const std::int64_t across = sides[1 - along_][i], along = sides[along_][j];
                if (across < 0 || along < 0) continue;
                auto* const held = array_ + across * of_.steps[1 - along_] + along * of_.steps[along_];
                in ? std::memcpy(&values[j], held, sizeof(float)) : std::memcpy(held, &values[j], sizeof(float));
            }
            if (!in) continue;
            if (!finite(values))
                throw SequenceError(concat("infinite or no number near position ", places[0] * block_values, ", ",
                                         places[1] * block_values,
                                         "; block floats hold neither, clip or replace it first"));
            block = encode(values);
            std::memcpy(tile, block.data(), block.size());
        }
    }

private:
    using Sides = std::array<std::array<std::int64_t, block_values>, 2>;

    /// Positions of the tile's rows and columns, -1 for none.
    Sides sides_of(const Places& places) const {
        Sides sides;
        for (std::size_t axis = 0; axis < sides.size(); ++axis)
            for (std::size_t i = 0; i < block_values; ++i) {
                const std::int64_t place = places[axis] * block_values + static_cast<std::int64_t>(i);
                sides[axis][i] = position(at(of_.stretches(axis), place), place);
            }
        return sides;
    }

    const UserArray& of_;
    const std::size_t along_;
    Unit<sizeof(float)>* const array_;
    std::byte* const buffer_;
};

/// The first of a line's numbers outside of a range; `count` for none.
template <class Number>
std::int64_t first_outside(const Unit<sizeof(Number)>* line, std::int64_t count, std::int64_t low, std::int64_t high) {
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
        for (const Number value : values)
            any = static_cast<unsigned char>(any | (value < low_lane) | (value > high_lane));
        if (any) break;
    }
    while (first < count && !outside(first)) ++first;
    return first;
}

template <class Number>
std::optional<Layout::Fault> fault_in(const Layout& layout, const void* data, std::int64_t leading) {
    using Limits = std::numeric_limits<Number>;
    const auto low = std::max<std::int64_t>(layout.operand().values->first, Limits::min());
    const auto high = std::min<std::int64_t>(layout.operand().values->second, Limits::max());
    const auto* numbers = static_cast<const Unit<sizeof(Number)>*>(data);
    std::optional<Layout::Fault> found;
    for (std::int64_t line = 0; line < layout.lines(); ++line) {
        const std::int64_t i = first_outside<Number>(numbers + line * leading, layout.line(), low, high);
        if (i == layout.line()) continue;
        Number value;
        std::memcpy(&value, numbers + line * leading + i, sizeof value);
        const Layout::Fault fault =
            layout.column_major() ? Layout::Fault{i, line, value} : Layout::Fault{line, i, value};
        if (!found || std::pair(fault.row, fault.column) < std::pair(found->row, found->column)) found = fault;
        if (!layout.column_major()) break;
    }
    return found;
}

}  // namespace

std::optional<Layout::Fault> Layout::fault(const void* data, std::int64_t leading) const {
    if (!operand_.values || !operand_.type.starts_with("int") || operand_.blocked != Blocked::no) return std::nullopt;
    switch (element_bytes()) {
        case 1: return fault_in<std::int8_t>(*this, data, leading);
        case 2: return fault_in<std::int16_t>(*this, data, leading);
        case 4: return fault_in<std::int32_t>(*this, data, leading);
        default: return std::nullopt;
    }
}

template <bool in>
void Layout::copy(void* array, std::int64_t leading, void* buffer) const {
    const UserArray of{axes_, steps(leading)};
    if (operand_.blocked != Blocked::no)
        return walk(loops_, offset_, TileCopier<in>(of, operand_.blocked, array, buffer));
    std::vector<ElementLoop> loops = loops_;
    const Run run = take_run(loops);
    if (operand_.bits < 8) return walk(loops, offset_, Packer<in>(run, of, operand_, array, buffer));
    switch (operand_.bits / 8) {
        case 1: return walk(loops, offset_, Copier<Unit<1>, in>(run, of, array, buffer));
        case 2: return walk(loops, offset_, Copier<Unit<2>, in>(run, of, array, buffer));
        case 4: return walk(loops, offset_, Copier<Unit<4>, in>(run, of, array, buffer));
        case 8: return walk(loops, offset_, Copier<Unit<8>, in>(run, of, array, buffer));
        default: return walk(loops, offset_, Copier<Unit<tile_bytes>, in>(run, of, array, buffer));
    }
}

void Layout::place(const void* data, std::int64_t leading, void* buffer) const {
    copy<true>(const_cast<void*>(data), leading, buffer);  // which reads the array only
}

void Layout::fetch(const void* buffer, void* data, std::int64_t leading) const {
    copy<false>(data, leading, const_cast<void*>(buffer));
}

}  // namespace bdforge::sequence
