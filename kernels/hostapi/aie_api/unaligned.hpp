// Loads and stores at any element, and iterators that go around a buffer.
#pragma once

#include "memory.hpp"

namespace hostapi {

/// Faults where p is no multiple of `elements` elements, as a caller of an unaligned access promises.
template <class T> void require_multiple(const char *call, const T *p, unsigned elements) {
    const unsigned bytes = elements * element<T>::bits / 8;
    if (bytes > 1 && reinterpret_cast<std::uintptr_t>(p) % bytes != 0)
        fail_alignment(call, elements, p, bytes);
}

template <class T> const T *floored(const T *p, unsigned bytes) {
    return reinterpret_cast<const T *>(reinterpret_cast<std::uintptr_t>(p) / bytes * bytes);
}

}  // namespace hostapi

namespace aie {

/// N lanes from any element, or any multiple of `aligned_elements`. The device reads the words around them, too.
template <unsigned N, class T> vector<T, N> load_unaligned_v(const T *p, unsigned aligned_elements = 1) {
    hostapi::require_multiple("aie::load_unaligned_v", p, aligned_elements);
    vector<T, N> v;
    std::memcpy(v.write(), p, v.memory_bytes());
    return v;
}
template <class T> auto load_unaligned_v(const T *p, unsigned aligned_elements = 1) {
    return load_unaligned_v<native_vector_length_v<T>>(p, aligned_elements);
}

/// To any element. The device writes the words around them again: nothing else may write there meanwhile.
template <class T, unsigned N> T *store_unaligned_v(T *p, const vector<T, N> &v, unsigned aligned_elements = 1) {
    hostapi::require_multiple("aie::store_unaligned_v", p, aligned_elements);
    std::memcpy(p, v.read("aie::store_unaligned_v"), v.memory_bytes());
    return p;
}

/// N lanes from the boundary of `bytes` at or before p, by default the one that load_v asks for.
template <unsigned N, class T>
vector<T, N> load_floor_bytes_v(const T *p, unsigned bytes = hostapi::access_alignment(vector<T, N>::bits())) {
    return load_v<N>(hostapi::floored(p, bytes));
}
/// The same, in elements of 8 bits or more.
template <unsigned N, class T> vector<T, N> load_floor_v(const T *p, unsigned elements) {
    static_assert(hostapi::element<T>::bits >= 8, "aie::load_floor_v: of 4-bit elements releases differ");
    return load_floor_bytes_v<N>(p, elements * sizeof(T));
}
template <unsigned N, class T> vector<T, N> load_floor_v(const T *p) { return load_floor_bytes_v<N>(p); }

/// Iterator in steps of N lanes that begins again at the end of `elements` elements.
template <class T, unsigned N> class circular_iterator {
  public:
    using value_type = vector<std::remove_const_t<T>, N>;
    using difference_type = std::ptrdiff_t;

    circular_iterator(T *p, unsigned elements, difference_type at = 0) : p_(p), steps_(elements / N), at_(at) {
        if (elements == 0 || elements % N != 0)
            hostapi::fail("aie::begin_vector_circular", "a buffer of " + std::to_string(elements) + " elements is no "
                                                            "whole number of vectors of " + std::to_string(N));
    }

    auto operator*() const { return *(vector_iterator<T, N>(p_) + at_); }
    circular_iterator &operator+=(difference_type n) {
        at_ = ((at_ + n) % steps_ + steps_) % steps_;
        return *this;
    }
    circular_iterator &operator-=(difference_type n) { return *this += -n; }
    circular_iterator &operator++() { return *this += 1; }
    circular_iterator &operator--() { return *this -= 1; }
    circular_iterator operator++(int) {
        const circular_iterator old = *this;
        ++*this;
        return old;
    }
    friend circular_iterator operator+(circular_iterator it, difference_type n) { return it += n; }
    friend bool operator==(const circular_iterator &, const circular_iterator &) = default;

  private:
    T *p_;
    difference_type steps_, at_;
};

#define HOSTAPI_CIRCULAR(name, element)                                 \
    template <unsigned N, class T> auto name(element *p, unsigned n) {   \
        return circular_iterator<element, N>(p, n);                      \
    }                                                                    \
    template <unsigned N, unsigned Elements, class T> auto name(element *p) { return name<N>(p, Elements); }
HOSTAPI_CIRCULAR(begin_vector_circular, T)
HOSTAPI_CIRCULAR(cbegin_vector_circular, const T)
HOSTAPI_CIRCULAR(begin_restrict_vector_circular, T)
HOSTAPI_CIRCULAR(cbegin_restrict_vector_circular, const T)
HOSTAPI_CIRCULAR(begin_vector_random_circular, T)
HOSTAPI_CIRCULAR(cbegin_vector_random_circular, const T)
#undef HOSTAPI_CIRCULAR

}  // namespace aie
