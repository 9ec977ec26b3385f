#pragma once
// Floats of a layer's tensors, where jobs or the host have them.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "state.hpp"

namespace bdforge {

/// Floats of a tensor, row by row, where a job has it: of bf16 or f32.
class Elements {
public:
    Elements(const Job& job, const std::string& tensor);

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }
    void write(std::size_t first, const float* values, std::size_t count);
    void read(std::size_t first, float* values, std::size_t count) const;
    /// The first elements of another tensor.
    void take(const Elements& from, std::size_t count);

private:
    std::size_t place(std::size_t element) const { return element / columns_ * stride_ + element % columns_; }

    Job job_;
    Placed* placed_;
    void* data_;
    std::size_t rows_, columns_, stride_;
    bool narrow_;
};

/// Keys or values of a layer: in the memory of a composition for tokens, or, where there is none, in the host's.
class KeptRows {
public:
    explicit KeptRows(Elements cache) : cache_(std::move(cache)) {}
    explicit KeptRows(std::size_t elements) : own_(elements) {}

    void write(std::size_t first, const float* values, std::size_t count) {
        cache_ ? cache_->write(first, values, count)
               : void(std::copy_n(values, count, own_.begin() + difference(first)));
    }
    void read(std::size_t first, float* values, std::size_t count) const {
        cache_ ? cache_->read(first, values, count)
               : void(std::copy_n(own_.begin() + difference(first), count, values));
    }
    /// The first elements of what a prompt made.
    void take(const Elements& from, std::size_t count) {
        cache_ ? cache_->take(from, count) : from.read(0, own_.data(), count);
    }
    /// Those of another one, which becomes too small.
    void take(const KeptRows& from, std::size_t count) {
        if (from.cache_) return take(*from.cache_, count);
        std::copy_n(from.own_.begin(), difference(count), own_.begin());
    }

private:
    static std::ptrdiff_t difference(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }

    std::optional<Elements> cache_;
    std::vector<float> own_;
};

}  // namespace bdforge
