// unit DATA_FOLDER GROUP: runs the group's cases and prints those that fail. Exit code 1 when one fails, 2 for no case.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "unit.hpp"

namespace unit {
namespace {

struct Case {
    std::string group, name;
    void (*body)();
};

std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

std::string folder;

bool passes(const Case& one) {
    try {
        one.body();
        return true;
    } catch (const Failure& failure) {
        std::printf("%s: %s\n", one.name.c_str(), failure.what());
    } catch (const std::exception& error) {  // which no check expected
        std::printf("%s: %s: %s\n", one.name.c_str(), name_of(typeid(error)).c_str(), error.what());
    }
    return false;
}

int run(const std::string& group) {
    std::size_t found = 0, failed = 0;
    for (const Case& one : cases()) {
        if (one.group != group) continue;
        ++found;
        if (!passes(one)) ++failed;
    }
    std::printf("%s: %zu of %zu cases pass\n", group.c_str(), found - failed, found);
    return found == 0 ? 2 : failed > 0 ? 1 : 0;
}

}  // namespace

bool add(const char* group, const char* name, void (*body)()) {
    cases().push_back({group, name, body});
    return true;
}

const std::string& data_folder() { return folder; }

std::vector<std::uint32_t> recorded_words() {
    std::ifstream file(folder + "/words.bin", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(words.data(), bytes.data(), words.size() * sizeof(words[0]));
    return words;
}

}  // namespace unit

int main(int count, char** words) {
    if (count != 3) return 2;
    unit::folder = words[1];
    return unit::run(words[2]);
}
