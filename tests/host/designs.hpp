// The designs that a test gives its program.
#pragma once
#include <fstream>
#include <string>
#include <vector>

#include "bdforge/manifest.hpp"

/// Of manifests in a file, one to a line.
inline std::vector<bdforge::generator::Design> designs(const std::string &path) {
    std::vector<bdforge::generator::Design> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        found.push_back(bdforge::parse_manifest(line, path).streams);
    return found;
}
