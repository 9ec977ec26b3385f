// pack_probe MANIFEST [WEIGHTS.npy PACKED]...: packs int8 weights for a design, as Design::pack does.

#include <cstdio>
#include <exception>
#include <fstream>

#include "bdforge/npy.hpp"
#include "placing.hpp"

int main(int count, char** words) {
    try {
        const bdforge::Manifest manifest = bdforge::load_manifest(words[1]);
        for (int i = 2; i + 1 < count; i += 2) {
            const bdforge::Int8Matrix matrix = bdforge::load_npy(words[i]);
            const bdforge::Placing placed = bdforge::placing(manifest, matrix.rows, matrix.columns);
            std::vector<std::uint8_t> packed(placed.bytes());
            bdforge::pack({matrix.values.data(), matrix.rows, matrix.columns, matrix.columns}, placed.rows,
                          placed.columns, bdforge::packed_tile(manifest), packed.data());
            std::ofstream(words[i + 1], std::ios::binary)
                .write(reinterpret_cast<const char*>(packed.data()), static_cast<std::streamsize>(packed.size()));
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
