// The designs that a test gives its program.
#pragma once
#include <fstream>
#include <string>
#include <vector>

#include "manifest.hpp"

/// Of manifests in a file, one to a line.
inline std::vector<bdforge::sequence::Source> designs(const std::string &path) {
    std::vector<bdforge::sequence::Source> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        found.push_back(bdforge::parse_manifest(line, path).source);
    return found;
}
