// staging_probe MANIFEST...: stages A and B and fetches C for the sizes on stdin, "design M K N lda ldb ldc" to a line.
//
// Prints for each line the staged shapes of A, B and C ("- -" for none), whether A is in slabs, and "ok" or the first
// difference of each operand.
//
// Every buffer is as long as it must be and no longer, so that sanitizers see a step outside. What belongs at (i, j) is
// written down here a second time: position and line by order, block by block of 8 rows x 8 columns for block floats.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "generator.hpp"

using bdforge::generator::Buffer;
using bdforge::generator::Problem;
using bdforge::generator::Storage;

static std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Rows and columns that one position holds, and the elements of the position along a line.
static std::int64_t blocks(const Storage &s, std::int64_t value) { return (value + s.block - 1) / s.block; }

/// Index of the first element of block (i, j), of which `leading` positions lie between lines.
static std::int64_t at(const Storage &s, std::int64_t i, std::int64_t j, std::int64_t leading) {
    if (s.order == bdforge::generator::column_major)
        return j * leading + i;
    return i * blocks(s, leading) * s.block * s.run + j * s.block * s.run;
}

static std::vector<std::int16_t> numbered(std::int64_t count) {
    std::vector<std::int16_t> values(size(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::int16_t>(1 + i % 32749);
    return values;
}

/// Elements of a user's matrix up to its last.
static std::int64_t extent(const Storage &s, const Buffer &matrix, std::int64_t leading) {
    const std::int64_t i = blocks(s, matrix.rows) - 1, j = blocks(s, matrix.columns) - 1;
    return at(s, i, j, leading) + s.block * s.run;
}

struct Case {
    const Storage &storage;
    Buffer matrix, held;
    std::int64_t leading, whole, gap;  // columns from `whole` on stand `gap` further right

    std::int64_t element_count() const { return s().block * s().run; }
    const Storage &s() const { return storage; }
    std::int64_t held_line() const {
        return s().order == bdforge::generator::column_major ? held.rows : held.columns;
    }

    /// Where the buffer holds block (i, j) of the matrix.
    std::int64_t place(std::int64_t i, std::int64_t j) const {
        const std::int64_t column = j * s().block >= whole ? j + gap / s().block : j;
        return at(s(), i, column, held_line());
    }

    template <typename Check>
    bool each(Check check) const {
        for (std::int64_t i = 0; i < blocks(s(), matrix.rows); ++i)
            for (std::int64_t j = 0; j < blocks(s(), matrix.columns); ++j)
                for (std::int64_t e = 0; e < element_count(); ++e)
                    if (!check(size(place(i, j) + e), size(at(s(), i, j, leading) + e)))
                        return false;
        return true;
    }
};

/// The first difference: where, which element of the source stands there (0 or less: none) and which should; "" if none.
static std::string difference(const char *what, const std::vector<std::int16_t> &found,
                              const std::vector<std::int16_t> &expected) {
    const auto [at, other] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (at == found.end())
        return "";
    return std::string(" ") + what + "[" + std::to_string(at - found.begin()) + "] is element " + std::to_string(*at - 1) +
           ", expected " + std::to_string(*other - 1) + ";";
}

template <typename Stage>
static std::string staged_whole(const char *what, const Case &c, Stage stage) {
    const std::vector<std::int16_t> source = numbered(extent(c.storage, c.matrix, c.leading));
    std::vector<std::int16_t> buffer(size(bdforge::generator::elements(c.storage, c.held)), 99);
    std::vector<std::int16_t> expected(buffer.size());
    stage(source.data(), buffer.data());
    c.each([&](std::size_t to, std::size_t from) { return expected[to] = source[from], true; });
    return difference(what, buffer, expected);
}

static std::string fetched_whole(const Case &c, const bdforge::generator::Staging &staging, const Problem &p,
                                 const bdforge::generator::Layouts &layouts) {
    const std::vector<std::int16_t> buffer = numbered(bdforge::generator::elements(c.storage, c.held));
    std::vector<std::int16_t> out(size(extent(c.storage, c.matrix, c.leading)), -1), expected = out;
    bdforge::generator::fetch_c(layouts, staging, p, buffer.data(), out.data());
    c.each([&](std::size_t from, std::size_t to) { return expected[to] = buffer[from], true; });
    return difference("C", out, expected);
}

static void print(const std::optional<Buffer> &buffer) {
    if (buffer)
        std::printf("%lld %lld ", static_cast<long long>(buffer->rows), static_cast<long long>(buffer->columns));
    else
        std::printf("- - ");
}

/// What is wrong with the copies of what is staged; "" for nothing.
static std::string wrong_copies(const bdforge::generator::Layouts &layouts, const bdforge::generator::Staging &staging,
                                const Problem &p) {
    const bdforge::generator::Storages &stores = layouts.operands;
    std::string wrong;
    if (staging.a) {
        const std::int64_t granule = bdforge::generator::detail::Request(layouts, p).k.granule;
        const std::int64_t walked = (p.K + granule - 1) / granule * granule;
        const std::int64_t whole = staging.a_in_slabs ? p.K / layouts.k_mt * layouts.k_mt : p.K + 8;
        const Case c{stores.a, {p.M, p.K}, *staging.a, p.lda, whole, staging.a->columns - walked};
        wrong += staged_whole("A", c, [&](const auto *from, auto *to) { stage_a(layouts, staging, p, from, to); });
    }
    if (staging.b) {
        const Case c{stores.b, {p.K, p.N}, *staging.b, p.ldb, p.K + p.N + 8, 0};
        wrong += staged_whole("B", c, [&](const auto *from, auto *to) { stage_b(layouts, staging, p, from, to); });
    }
    if (staging.c)
        wrong += fetched_whole({stores.c, {p.M, p.N}, *staging.c, p.ldc, p.M + p.N + 8, 0}, staging, p, layouts);
    return wrong;
}

int main(int count, char **paths) {
    std::vector<std::unique_ptr<bdforge::Generator>> designs;
    for (int i = 1; i < count; ++i)
        designs.push_back(std::make_unique<bdforge::Generator>(bdforge::load_manifest(paths[i])));
    std::size_t index;
    std::int64_t M, K, N, lda, ldb, ldc;
    while (std::cin >> index >> M >> K >> N >> lda >> ldb >> ldc) {
        const bdforge::generator::Layouts &layouts = designs.at(index)->layouts();
        const Problem p(M, K, N, lda, ldb, ldc);
        const bdforge::generator::Staging staging = bdforge::generator::staging(layouts, p);
        print(staging.a), print(staging.b), print(staging.c);
        const std::string wrong = wrong_copies(layouts, staging, p);
        std::printf("%d %s\n", staging.a_in_slabs, wrong.empty() ? "ok" : wrong.c_str());
    }
}
