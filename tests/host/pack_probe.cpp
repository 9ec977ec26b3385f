// pack_probe MANIFEST [VALUES.npy K N B]...: makes B for a design, as Design::pack does, of int8 values that lie as the
// design stores B (row-major where it is packed); for bf16 designs they become bf16 first.

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

#include "bdforge/npy.hpp"
#include "placing.hpp"

static std::vector<std::uint16_t> bf16(const std::vector<std::int8_t>& values) {
    std::vector<std::uint16_t> words;
    for (const std::int8_t value : values) {
        const auto wide = static_cast<float>(value);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &wide, sizeof bits);
        words.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    return words;
}

int main(int count, char** words) {
    try {
        const bdforge::Manifest manifest = bdforge::load_manifest(words[1]);
        const bdforge::Generator generator(manifest);
        for (int i = 2; i + 3 < count; i += 4) {
            const bdforge::Int8Matrix matrix = bdforge::load_npy(words[i]);
            const std::size_t K = std::stoul(words[i + 1]), N = std::stoul(words[i + 2]);
            const std::vector<std::uint16_t> wide = bf16(matrix.values);
            const void* data = manifest.operands[1].type == "bf16" ? static_cast<const void*>(wide.data())
                                                                   : matrix.values.data();
            std::vector<char> b(generator.b_bytes(K, N));
            bdforge::write_b(manifest, generator, {data, K, N, matrix.columns}, b.data());
            std::ofstream(words[i + 3], std::ios::binary).write(b.data(), static_cast<std::streamsize>(b.size()));
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
