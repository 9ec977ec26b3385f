// aie::sliding_mul: products of coefficients and a window that slides along the data.
#pragma once

#include "products.hpp"

namespace hostapi {

/// Lane l gets the sum over p of coefficients[c + p * StepC] * data[d + l * StepY + p * StepX], both wrapping around.
template <unsigned Points, int StepC, int StepX, int StepY, class Tag, unsigned Lanes, class C, unsigned M, class T,
          unsigned N>
auto slid(const aie::accum<Tag, Lanes> &before, const aie::vector<C, M> &coefficients, unsigned c,
          const aie::vector<T, N> &data, unsigned d) {
    static_assert(is_float<C> == is_float<T>, "aie::sliding_mul: both operands are integers or both are floats");
    auto acc = before;
    const auto around = [](int at, int size) { return static_cast<unsigned>((at % size + size) % size); };
    for (int p = 0; p < static_cast<int>(Points); ++p) {
        aie::vector<T, Lanes> window;
        for (int lane = 0; lane < static_cast<int>(Lanes); ++lane)
            window.set(data.get(around(static_cast<int>(d) + lane * StepY + p * StepX, N)), lane);
        acc = aie::mac(acc, window, coefficients.get(around(static_cast<int>(c) + p * StepC, M)));
    }
    return acc;
}

/// The tag that accauto stands for, or the one that is given.
template <class Tag, class A, class B>
using tag_of_product = std::conditional_t<!std::is_same_v<Tag, accauto>, Tag,
                                          std::conditional_t<is_float<A>, accfloat, product_tag<A, B>>>;

}  // namespace hostapi

namespace aie {

template <unsigned Lanes, unsigned Points, int CoeffStep = 1, int DataStepX = 1, int DataStepY = DataStepX,
          class AccumTag = accauto, class C, unsigned M, class T, unsigned N>
auto sliding_mul(const vector<C, M> &coeff, unsigned coeff_start, const vector<T, N> &data, unsigned data_start) {
    return hostapi::slid<Points, CoeffStep, DataStepX, DataStepY>(
        zeros<hostapi::tag_of_product<AccumTag, C, T>, Lanes>(), coeff, coeff_start, data, data_start);
}
template <unsigned Lanes, unsigned Points, int CoeffStep = 1, int DataStepX = 1, int DataStepY = DataStepX, class Tag,
          class C, unsigned M, class T, unsigned N>
auto sliding_mac(const accum<Tag, Lanes> &acc, const vector<C, M> &coeff, unsigned coeff_start,
                 const vector<T, N> &data, unsigned data_start) {
    return hostapi::slid<Points, CoeffStep, DataStepX, DataStepY>(acc, coeff, coeff_start, data, data_start);
}

template <unsigned Lanes, unsigned Points, int CoeffStep, int DataStepX, int DataStepY, class CoeffType = int16,
          class DataType = CoeffType, class AccumTag = accauto>
struct sliding_mul_ops {
    static constexpr unsigned lanes = Lanes, points = Points;
    using accum_tag = hostapi::tag_of_product<AccumTag, CoeffType, DataType>;
    using accum_type = accum<accum_tag, Lanes>;

    template <unsigned M, unsigned N>
    static auto mul(const vector<CoeffType, M> &coeff, unsigned coeff_start, const vector<DataType, N> &data,
                    unsigned data_start) {
        return mac(zeros<accum_tag, Lanes>(), coeff, coeff_start, data, data_start);
    }
    template <unsigned M, unsigned N>
    static auto mac(const accum_type &acc, const vector<CoeffType, M> &coeff, unsigned coeff_start,
                    const vector<DataType, N> &data, unsigned data_start) {
        return sliding_mac<Lanes, Points, CoeffStep, DataStepX, DataStepY>(acc, coeff, coeff_start, data, data_start);
    }
};
template <unsigned Lanes, unsigned Points, int CoeffStep = 1, int DataStepX = 1, class CoeffType = int16,
          class DataType = CoeffType, class AccumTag = accauto>
using sliding_mul_x_ops = sliding_mul_ops<Lanes, Points, CoeffStep, DataStepX, 1, CoeffType, DataType, AccumTag>;
template <unsigned Lanes, unsigned Points, int CoeffStep = 1, int DataStepY = 1, class CoeffType = int16,
          class DataType = CoeffType, class AccumTag = accauto>
using sliding_mul_y_ops = sliding_mul_ops<Lanes, Points, CoeffStep, 1, DataStepY, CoeffType, DataType, AccumTag>;

}  // namespace aie
