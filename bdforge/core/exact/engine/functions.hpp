// All functions of steps: by number, and a number's at compile time.
#pragma once

#include <iterator>

#include "fifo.hpp"
#include "floats.hpp"
#include "lanes.hpp"
#include "multiply.hpp"
#include "nonlinear.hpp"
#include "places.hpp"
#include "scalar.hpp"
#include "steps.hpp"
#include "width.hpp"

namespace engine {

inline constexpr Named kSteps[] = {
    {"copy", copy<>}, {"copy4", copy<4>}, {"copy32", copy<32>}, {"copy64", copy<64>},
    {"copy256", copy<256>}, {"land_word", land_word}, {"land", land<>}, {"land32", land<32>},
    {"land64", land<64>}, {"land256", land<256>}, {"forward", forward<>}, {"forward64", forward<64>},
    {"forward256", forward<256>}, {"walk_index", walk_index}, {"walk_post", walk_post}, {"walk_2d", walk_2d},
    {"walk_3d", walk_3d}, {"load", load_memory}, {"load32", load_fixed<32>}, {"load64", load_fixed<64>}, {"load_line", load_line}, {"gather", gather},
    {"store", store_memory}, {"store_some", store_some}, {"branch", branch}, {"ask", ask},
    {"known", known}, {"tell", tell}, {"land_part", land_part}, {"count_part", count_part}, {"low_half", low_half},
    {"polled", polled}, {"land_forwarded", land_forwarded<>}, {"land_forwarded64", land_forwarded<64>},
    {"land_forwarded256", land_forwarded<256>},
};

template <class F>
constexpr void each_function(F f) {
    for (const Named& n : kSteps) f(n);
    for (const Named& n : scalar::kTable) f(n);
    for (const Named& n : lanes::kTable) f(n);
    for (const Named& n : places::kTable) f(n);
    for (const Named& n : width::kTable) f(n);
    for (const Named& n : multiply::kTable) f(n);
    for (const Named& n : fifo::kTable) f(n);
    for (const Named& n : floats::kTable) f(n);
    for (const Named& n : nonlinear::kTable) f(n);
}

// The function with a number.
constexpr Function function_of(int number) {
    Function found = nullptr;
    each_function([&](const Named& n) {
        if (!number--) found = n.function;
    });
    return found;
}

inline int number_of(Function function) {
    static const std::map<Function, int> numbers = [] {
        std::map<Function, int> all;
        each_function([&](const Named& n) { all.emplace(n.function, int(all.size())); });
        return all;
    }();
    return numbers.at(function);
}

// What is the same for all programs, which a library of compiled states takes from the engine.
struct Tables {
    const multiply::Shapes& shapes = multiply::kShapes;
    const places::Routes& routes = places::kRoutes;
    const nonlinear::Rows& rows = nonlinear::kRows;
    bytes::Product product = bytes::product;
};

inline void take(const Tables& from) {
    for (std::size_t i = 0; i < multiply::kShapes.size(); ++i) multiply::kShapes[i] = from.shapes[i];
    places::kRoutes = from.routes;
    nonlinear::kRows = from.rows;
    bytes::product = from.product;
}

}  // namespace engine
