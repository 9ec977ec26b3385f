#pragma once
// Floats of a layer's tensors, where jobs have them.

#include <cstddef>
#include <string>

#include "state.hpp"

namespace bdforge {

/// Floats of a tensor, row by row, where a job has it: of bf16 or f32.
class Elements {
public:
    Elements(const Job& job, const std::string& tensor);

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }
    /// Where they begin, for this moment.
    const void* first() const { return data(); }
    void write(std::size_t first, const float* values, std::size_t count);
    void read(std::size_t first, float* values, std::size_t count) const;
    /// Those of another tensor that stand where these do.
    void take(const Elements& from, std::size_t first, std::size_t count);

private:
    std::size_t place(std::size_t element) const { return element / columns_ * stride_ + element % columns_; }

    /// Where the first one is, for this moment, as the device left it; `written`: the host will write there.
    void* data() const;
    void* written();

    Job job_;
    Placed* placed_;
    void* lines_ = nullptr;  // of the job's own, where its buffer has another form
    std::size_t rows_, columns_, stride_;
    bool narrow_;
};

}  // namespace bdforge
