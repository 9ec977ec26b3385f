// Rounding and saturation as another kernel on the same core would set or find them.
#include <aie_api/aie.hpp>

extern "C" {

void set_modes(unsigned rounding, unsigned saturation) {
    aie::set_rounding(static_cast<aie::rounding_mode>(rounding));
    aie::set_saturation(static_cast<aie::saturation_mode>(saturation));
}
void get_modes(uint32 *out) {
    out[0] = static_cast<uint32>(aie::get_rounding());
    out[1] = static_cast<uint32>(aie::get_saturation());
}
/// Sets a mode, then misuses an accumulator.
void set_rounding_and_fault(unsigned rounding, int32 *out) {
    aie::set_rounding(static_cast<aie::rounding_mode>(rounding));
    aie::store_v(out, aie::accum<acc32, 16>().to_vector<int32>());
}
void swap_modes(unsigned rounding, unsigned saturation, uint32 *old) {
    old[0] = static_cast<uint32>(aie::swap_rounding(static_cast<aie::rounding_mode>(rounding)));
    old[1] = static_cast<uint32>(aie::swap_saturation(static_cast<aie::saturation_mode>(saturation)));
}

}  // extern "C"
