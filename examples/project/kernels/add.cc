// add: y = x + ADDED for one tile of TILE x TILE int32; the DMAs turn it. x and y do not overlap.
#include <aie_api/aie.hpp>

extern "C" void add(const int32_t *__restrict x, int32_t *__restrict y) {
    constexpr unsigned lanes = 16;
    const aie::vector<int32_t, lanes> added = aie::broadcast<int32_t, lanes>(ADDED);
    for (unsigned i = 0; i < TILE * TILE; i += lanes)
        aie::store_v(y + i, aie::add(aie::load_v<lanes>(x + i), added));
}
