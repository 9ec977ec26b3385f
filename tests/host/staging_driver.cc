// Stages A and fetches C for the sizes on stdin, between guard elements; prints "ok" for each.
#include <cstdio>
#include <iostream>
#include <vector>

#include "bdforge/staging.hpp"

static const std::vector<bdforge::generator::Design> designs = {
#include "designs.inc"
};

static bool a_is_copied(const bdforge::generator::Staging &staging, const bdforge::generator::Problem &p) {
    std::vector<std::int8_t> a(static_cast<std::size_t>((p.M - 1) * p.lda + p.K));  // ends with the last element
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<std::int8_t>(i * 31 % 127);
    std::vector<std::int8_t> buffer(static_cast<std::size_t>(staging.a->rows * staging.a->columns), 99);
    bdforge::generator::stage_a(staging, p, a.data(), buffer.data());
    for (std::int64_t row = 0; row < staging.a->rows; ++row)
        for (std::int64_t column = 0; column < staging.a->columns; ++column) {
            const bool inside = row < p.M && column < p.K;
            const std::int8_t expected = inside ? a[static_cast<std::size_t>(row * p.lda + column)] : std::int8_t{99};
            if (buffer[static_cast<std::size_t>(row * staging.a->columns + column)] != expected)
                return false;
        }
    return true;
}

static bool c_is_fetched(const bdforge::generator::Staging &staging, const bdforge::generator::Problem &p) {
    std::vector<std::int32_t> buffer(static_cast<std::size_t>(staging.c->rows * staging.c->columns));
    for (std::size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = static_cast<std::int32_t>(i);
    std::vector<std::int32_t> c(static_cast<std::size_t>(p.M * p.ldc), -1);
    bdforge::generator::fetch_c(staging, p, buffer.data(), c.data());
    for (std::int64_t row = 0; row < p.M; ++row)
        for (std::int64_t column = 0; column < p.ldc; ++column) {
            const auto expected = static_cast<std::int32_t>(column < p.N ? row * staging.c->columns + column : -1);
            if (c[static_cast<std::size_t>(row * p.ldc + column)] != expected)
                return false;
        }
    return true;
}

int main() {
    std::size_t index;
    std::int64_t M, K, N, lda, ldc;
    while (std::cin >> index >> M >> K >> N >> lda >> ldc) {
        const bdforge::generator::Problem p(M, K, N, lda, ldc);
        const bdforge::generator::Staging staging = bdforge::generator::staging(designs.at(index), p);
        const bool good = (!staging.a || a_is_copied(staging, p)) && (!staging.c || c_is_fetched(staging, p));
        std::printf("%s\n", good ? "ok" : "wrong");
    }
}
