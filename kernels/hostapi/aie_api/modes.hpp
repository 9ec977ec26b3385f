// Rounding and saturation: registers of a core that persist from one kernel call to the next.
#pragma once

namespace aie {

/// Codes as in the core's control register.
enum class rounding_mode : unsigned {
    floor = 0,
    ceil = 1,
    symmetric_floor = 2,
    symmetric_ceil = 3,
    negative_inf = 8,
    positive_inf = 9,
    symmetric_zero = 10,
    symmetric_inf = 11,
    conv_even = 12,
    conv_odd = 13,
};

enum class saturation_mode : unsigned { none = 0, saturate = 1, truncate = 1, symmetric = 3 };

}  // namespace aie

namespace hostapi {

/// What one core remembers between calls, as it stands after reset.
struct CoreState {
    aie::rounding_mode rounding = aie::rounding_mode::floor;
    aie::saturation_mode saturation = aie::saturation_mode::none;
};

/// State of the core that runs on this thread. Hidden, so that two kernel libraries in one process do not share it.
[[gnu::visibility("hidden")]] inline constinit thread_local CoreState core_state{};

}  // namespace hostapi

namespace aie {

inline rounding_mode get_rounding() { return hostapi::core_state.rounding; }
inline void set_rounding(rounding_mode mode) { hostapi::core_state.rounding = mode; }
inline rounding_mode swap_rounding(rounding_mode mode) {
    const rounding_mode old = get_rounding();
    set_rounding(mode);
    return old;
}

inline saturation_mode get_saturation() { return hostapi::core_state.saturation; }
inline void set_saturation(saturation_mode mode) { hostapi::core_state.saturation = mode; }
inline saturation_mode swap_saturation(saturation_mode mode) {
    const saturation_mode old = get_saturation();
    set_saturation(mode);
    return old;
}

/// The core that a kernel runs on.
class tile {
  public:
    static tile current() { return {}; }
    rounding_mode get_rounding() const { return aie::get_rounding(); }
    void set_rounding(rounding_mode mode) const { aie::set_rounding(mode); }
    saturation_mode get_saturation() const { return aie::get_saturation(); }
    void set_saturation(saturation_mode mode) const { aie::set_saturation(mode); }
};

}  // namespace aie
