// Loads, stores and vector iterators. 4-bit pointers step in bytes, as with Peano.
#pragma once

#include <cstddef>
#include <iterator>

#include "vector.hpp"

namespace hostapi {

/// Alignment in bytes that the architecture demands of an access of so many bits.
constexpr unsigned access_alignment(unsigned bits) {
    if (bits <= 128)
        return 16;
    return bits <= 256 ? 32 : aie::vector_decl_align;
}

template <class T, unsigned N> HOSTAPI_INLINE void require_aligned(const char *call, const void *address) {
    constexpr unsigned alignment = access_alignment(aie::vector<T, N>::bits());
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) [[unlikely]]
        fail_alignment(call, N, address, alignment);
}

}  // namespace hostapi

namespace aie {

template <unsigned N, class T> HOSTAPI_INLINE vector<T, N> load_v(const T *p) {
    hostapi::require_aligned<T, N>("aie::load_v", p);
    vector<T, N> v;
    std::memcpy(v.write(), p, v.memory_bytes());
    return v;
}

template <class T> HOSTAPI_INLINE vector<T> load_v(const T *p) { return load_v<native_vector_length_v<T>>(p); }

/// Returns p itself: a store does not advance.
template <class T, unsigned N> HOSTAPI_INLINE T *store_v(T *p, const vector<T, N> &v) {
    hostapi::require_aligned<T, N>("aie::store_v", p);
    std::memcpy(p, v.read("aie::store_v"), v.memory_bytes());
    return p;
}

template <class T, class U, unsigned N>
    requires(!std::is_same_v<T, U>)
T *store_v(T *, const vector<U, N> &) {
    static_assert(std::is_same_v<T, U>, "aie::store_v: the pointer's type must be the vector's element type; cast it");
}

/// Iterator in steps of N lanes; T is const for reading only.
template <class T, unsigned N> class vector_iterator {
    using Element = std::remove_const_t<T>;

    class reference {
      public:
        using proxied = vector<Element, N>;
        explicit reference(T *p) : p_(p) {}
        operator vector<Element, N>() const { return load_v<N>(static_cast<const Element *>(p_)); }
        const reference &operator=(const vector<Element, N> &v) const {
            static_assert(!std::is_const_v<T>, "aie::cbegin_vector: the iterator is for reading only");
            store_v(p_, v);
            return *this;
        }

      private:
        T *p_;
    };

  public:
    using value_type = vector<Element, N>;
    using difference_type = std::ptrdiff_t;

    explicit vector_iterator(T *p) : p_(p) {}

    auto operator*() const {
        if constexpr (std::is_const_v<T>)
            return load_v<N>(p_);
        else
            return reference(p_);
    }
    auto operator[](difference_type n) const { return *(*this + n); }

    vector_iterator &operator+=(difference_type n) {
        p_ += n * step;
        return *this;
    }
    vector_iterator &operator-=(difference_type n) { return *this += -n; }
    vector_iterator &operator++() { return *this += 1; }
    vector_iterator &operator--() { return *this -= 1; }
    vector_iterator operator++(int) {
        const vector_iterator old = *this;
        ++*this;
        return old;
    }
    vector_iterator operator--(int) {
        const vector_iterator old = *this;
        --*this;
        return old;
    }
    friend vector_iterator operator+(vector_iterator it, difference_type n) { return it += n; }
    friend vector_iterator operator-(vector_iterator it, difference_type n) { return it -= n; }
    friend difference_type operator-(const vector_iterator &a, const vector_iterator &b) {
        return (a.p_ - b.p_) / step;
    }
    friend bool operator==(const vector_iterator &, const vector_iterator &) = default;

  private:
    static constexpr difference_type step = value_type::memory_bytes() / sizeof(T);
    T *p_;
};

template <unsigned N, class T> auto begin_vector(T *p) { return vector_iterator<T, N>(p); }
template <unsigned N, class T> auto cbegin_vector(const T *p) { return vector_iterator<const T, N>(p); }
template <unsigned N, class T> auto begin_restrict_vector(T *p) { return vector_iterator<T, N>(p); }
template <unsigned N, class T> auto cbegin_restrict_vector(const T *p) { return vector_iterator<const T, N>(p); }

}  // namespace aie
