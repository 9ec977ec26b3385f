// One line of the stencil: half of itself, half of its four neighbours, rounded down; zero left and right of it.
// WIDTH int32 each; lines are not overlapped by `out`.
#include <cstdint>

extern "C" void smooth(const std::int32_t *__restrict above, const std::int32_t *__restrict line,
                       const std::int32_t *__restrict below, std::int32_t *__restrict out) {
    const auto smoothed = [&](int i, std::int32_t left, std::int32_t right) {
        out[i] = (4 * line[i] + above[i] + below[i] + left + right) >> 3;
    };
    smoothed(0, 0, line[1]);
    for (int i = 1; i < WIDTH - 1; ++i)
        smoothed(i, line[i - 1], line[i + 1]);
    smoothed(WIDTH - 1, line[WIDTH - 2], 0);
}
