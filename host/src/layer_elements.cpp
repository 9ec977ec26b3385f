#include "layer_elements.hpp"

#include <cstring>
#include <vector>

#include "bdforge/error.hpp"
#include "number_formats.hpp"

namespace bdforge {

Elements::Elements(const Job& job, const std::string& tensor) : job_(job), placed_(&job_.state()->operand(tensor)) {
    const sequence::Layout& layout = placed_->layout;
    const std::string& type = layout.operand().type;
    if (type != "bf16" && type != "f32")
        throw ArgumentError(job_.state()->design->manifest.design + ": " + tensor + " is of type " + type +
                            ", expected bf16 or f32");
    if (!placed_->direct) lines_ = job_.memory(tensor);
    rows_ = static_cast<std::size_t>(layout.rows()), columns_ = static_cast<std::size_t>(layout.columns());
    stride_ = job_.stride(tensor), narrow_ = type == "bf16";
}

void* Elements::data() const {
    if (!placed_->direct) return lines_;
    return static_cast<std::byte*>(job_.state()->memory_of(*placed_).current()) + placed_->direct->first;
}

void* Elements::written() {
    void* const found = data();
    if (placed_->direct) job_.state()->memory_of(*placed_).touched = true;
    return found;
}

void Elements::write(std::size_t first, const float* values, std::size_t count) {
    void* const to = written();
    for (std::size_t i = 0; i < count; ++i)
        if (narrow_)
            static_cast<Bf16*>(to)[place(first + i)] = narrowed(values[i]);
        else
            static_cast<float*>(to)[place(first + i)] = values[i];
}

void Elements::read(std::size_t first, float* values, std::size_t count) const {
    const void* const from = data();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = place(first + i);
        values[i] = narrow_ ? widened(static_cast<const Bf16*>(from)[at]) : static_cast<const float*>(from)[at];
    }
}

void Elements::take(const Elements& from, std::size_t first, std::size_t count) {
    if (narrow_ && from.narrow_ && stride_ == columns_ && from.stride_ == from.columns_) {
        const auto* const others = static_cast<const Bf16*>(from.data());
        std::memcpy(static_cast<Bf16*>(written()) + first, others + first, count * sizeof(Bf16));
        return;
    }
    std::vector<float> values(count);
    from.read(first, values.data(), count);
    write(first, values.data(), count);
}

}  // namespace bdforge
