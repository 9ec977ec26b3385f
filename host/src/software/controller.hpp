#pragma once
#include <array>
#include <map>

#include "channel.hpp"
#include "facts.hpp"

namespace bdforge::software {

/// The shims' channels and the cores' parameters after an instruction stream: what the array is asked to do.
class Controller {
public:
    using Operands = std::array<Memory, operand_count>;

    Controller(const Facts& facts, const Operands& operands);

    /// Executes every operation; RunError names the word of one that this device does not know.
    void execute(const std::uint32_t* words, std::size_t count);

    Channel& channel(Operand operand, std::size_t column);
    std::uint32_t k_steps() const { return k_steps_; }
    std::uint32_t output_tiles() const { return output_tiles_; }

private:
    static constexpr std::size_t bd_words = 8;
    struct Bd {
        std::array<std::uint32_t, bd_words> words{};
        std::uint64_t offset_bytes = 0;
        std::uint32_t argument = UINT32_MAX;  // until patched
    };

    void check_header(const std::uint32_t* words, std::size_t count) const;
    void write(std::uint32_t address, std::uint32_t value);
    void block_write(std::uint32_t address, const std::uint32_t* data, std::size_t count);
    void patch(std::uint32_t address, std::uint32_t argument, std::uint64_t offset_bytes);
    void await(const std::uint32_t* words);
    void push(Operand operand, std::size_t column, std::uint32_t entry);
    void run_bd(Operand operand, std::size_t column, const Bd& bd, std::uint32_t turn);
    Bd& bd_at(std::uint32_t address);
    void collect_parameters();

    const Facts& facts_;
    std::vector<Channel> channels_;
    std::vector<Bd> bds_;
    std::map<std::uint32_t, std::uint32_t> registers_;
    std::uint32_t k_steps_ = 0;
    std::uint32_t output_tiles_ = 0;
};

}  // namespace bdforge::software
