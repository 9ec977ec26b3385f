#pragma once
/// ggml's ternary matrices as the array takes them.

#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "ternary.hpp"

namespace bdforge::ggml {

/// Some of a matrix's blocks along K, in which each of the N columns of K x N has one scale: a product of its own.
struct Part {
    std::size_t first, depth;
    std::vector<float> scales;
    Resident b;
    std::optional<Resident> column_scales;  // of designs that scale on the array
};

/// A matrix, packed and resident: one part where the scale is the same all along K, as in BitNet, up to one a block.
class Matrix {
public:
    /// WeightError for values that are not ternary; errors as of Resident.
    Matrix(const Design& design, bool scaled, const Plane& plane, const Workers& workers);
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;

    std::size_t N() const { return N_; }
    const std::vector<Part>& parts() const { return parts_; }

private:
    std::size_t N_;
    std::vector<Part> parts_;
};

/// Which graph-computing stream asks.
using User = std::uint64_t;

/// Keeps matrices whose memory is marked as weights, so that each is packed once, whatever streams come and go. ggml does
/// not tell when a model is gone: what no living stream has used goes when something else is packed, and at an address
/// that was used again another model's content is noticed by blocks all over the matrix. Not for two threads at once.
class Store {
public:
    /// `forgot` is called when matrices went, for those who hold on to them.
    explicit Store(std::function<void()> forgot) : forgot_(std::move(forgot)) {}

    /// The matrix of a plane; `make` packs it where it is not there.
    template <class Make>
    std::shared_ptr<const Matrix> find(const Plane& plane, User user, Make make) {
        const Key key{plane.data, plane.type, plane.K, plane.N, plane.stride};
        std::vector<std::byte> probes = probes_of(plane);
        const auto found = kept_.find(key);
        if (found != kept_.end() && found->second.probes == probes) {
            found->second.user = user;
            return found->second.matrix;
        }
        const std::size_t before = kept_.size();
        if (found != kept_.end()) kept_.erase(found);
        forget_unused();
        if (kept_.size() < before) forgot_();
        return kept_.emplace(key, Kept{make(), std::move(probes), user}).first->second.matrix;
    }

    void began(User user) { living_.insert(user); }
    void ended(User user) { living_.erase(user); }

private:
    using Key = std::tuple<const std::byte*, ggml_type, std::size_t, std::size_t, std::size_t>;
    struct Kept {
        std::shared_ptr<const Matrix> matrix;
        std::vector<std::byte> probes;
        User user;
    };
    static constexpr std::size_t probes_most = 64;

    /// Blocks from the first to the last.
    static std::vector<std::byte> probes_of(const Plane& plane) {
        const std::size_t blocks = plane.blocks() * plane.N, count = std::min(blocks, probes_most);
        std::vector<std::byte> found;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = i * (blocks - 1) / std::max<std::size_t>(count - 1, 1);
            const std::byte* const block = plane.block(at / plane.blocks(), at % plane.blocks());
            found.insert(found.end(), block, block + ggml_type_size(plane.type));
        }
        return found;
    }

    void forget_unused() {
        for (auto each = kept_.begin(); each != kept_.end();)
            each = living_.count(each->second.user) == 0 ? kept_.erase(each) : std::next(each);
    }

    std::function<void()> forgot_;
    std::map<Key, Kept> kept_;
    std::set<User> living_;
};

}  // namespace bdforge::ggml
