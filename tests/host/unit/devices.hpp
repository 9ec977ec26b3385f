#pragma once
// Devices for tests: the emulated array behind the name of an NPU, which can hang or fail, and says what it was given; and
// one that is memory alone.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bdforge/bdforge.hpp"

namespace unit {

enum class Behaviour { good, hangs, fails };

/// What a scripted device saw, and how it behaves from now on.
struct Script {
    Behaviour behaviour = Behaviour::good;
    std::size_t loads = 0;
    std::size_t starts = 0;
    std::vector<std::vector<std::uint32_t>> streams;
    std::vector<std::string> sequences;  // of commands that run one of an ELF
    std::vector<std::size_t> batches;  // commands of each submission that was prepared
    std::size_t failing_batches = 0;   // so many submissions fail, the first ones that are awaited
    std::size_t hanging_waits = 0;     // so many waits for single commands end without a result
};

/// A device called `name`, an NPU as far as the library can tell: what either side writes the other one sees only when it is
/// told to.
bdforge::Device scripted_device(const std::shared_ptr<Script>& script, const std::string& name = "NPU Strix Halo");

/// A device of buffers, whose runs end at once and write nothing: for all that a manifest alone decides. Each calls `act`.
bdforge::Device memory_device(std::function<void()> act = [] {});

/// The device that needs no NPU.
bdforge::Device emulated_device();

/// Path of a design that the Python side made; its manifest lies beside.
std::string design_path(const std::string& name);

}  // namespace unit
