// operand_probe: places and fetches operands as orders on stdin say, a line each:
//
//     MANIFEST WAY OPERAND STRIDE ARRAY BUFFER SIZE...
//
// WAY is `place` (the array in file ARRAY to the buffer in file BUFFER), `fetch` (the other way round, into an array of
// the file's length), `resident` (as place, of the operand's own sizes) or `direct` (tells where the buffer holds the
// array's lines as they stand: elements from line to line and the first byte, or none). SIZE is name=value. A buffer that
// is not there is zeros. Both are on the heap and as long as they must be, so that sanitizers see a step outside. Prints "ok" and what is told, or the error's kind
// and text.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bdforge/error.hpp"
#include "sizes.hpp"
#include "state.hpp"

using namespace bdforge;

constexpr std::size_t most = std::size_t{1} << 26;

static std::vector<char> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void write(const std::string& path, const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

static std::string follow(const DesignState& design, std::istringstream& words) {
    std::string way, name, array_path, buffer_path;
    std::size_t stride = 0;
    words >> way >> name >> stride >> array_path >> buffer_path;
    Sizes sizes;
    for (std::string word; words >> word;)
        sizes[word.substr(0, word.find('='))] = std::stoul(word.substr(word.find('=') + 1));
    const std::size_t index = operand_index(design, name);
    const std::size_t argument = design.program().operands[index].argument;
    const auto values = way == "resident" ? design.streams.values(some_parameters(design, sizes))
                                          : design.streams.values(all_parameters(design, sizes));
    if (way == "resident") require_known(design, design.program().operands[index], values);
    const Layouts found = layouts(design, values, &argument);
    if (found.bytes[argument] > most) throw ManifestError("no test has buffers of that size");
    std::vector<char> array = read(array_path), buffer = read(buffer_path);
    if (buffer.empty()) buffer.resize(found.bytes[argument]);
    if (buffer.size() != found.bytes[argument]) throw ArgumentError("the buffer has another size");
    for (const generator::Layout& layout : found.operands) {
        if (layout.operand().name != name) continue;
        if (way == "direct") {
            const auto lines = layout.direct();
            return lines ? std::to_string(lines->leading) + " " + std::to_string(lines->first) : "none";
        }
        if (way == "fetch") {
            layout.fetch(buffer.data(), array.data(), leading_of(layout, array.data(), array.size(), stride));
            write(array_path, array);
        } else {
            layout.place_missing(buffer.data());
            place(layout, {array.data(), array.size(), stride}, buffer.data());
            write(buffer_path, buffer);
        }
    }
    return "";
}

int main() {
    std::map<std::string, std::unique_ptr<DesignState>> designs;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string path, kind = "ok", text;
        words >> path;
        try {
            std::unique_ptr<DesignState>& design = designs[path];
            if (!design) design = std::make_unique<DesignState>(Device::open("emulated"), load_manifest(path), false);
            text = follow(*design, words);
        } catch (const ManifestError& error) {
            kind = "ManifestError", text = error.what();
        } catch (const ArgumentError& error) {
            kind = "ArgumentError", text = error.what();
        } catch (const WeightError& error) {
            kind = "WeightError", text = error.what();
        }
        std::printf("%s %s\n", kind.c_str(), text.c_str());
        std::fflush(stdout);
    }
}
