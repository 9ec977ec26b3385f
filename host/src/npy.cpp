#include "bdforge/npy.hpp"

#include <cstring>
#include <string_view>

#include "bdforge/error.hpp"
#include "files.hpp"

namespace bdforge {
namespace {

constexpr std::size_t npy_limit_bytes = std::size_t{1} << 36;
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t version_at = magic.size();
constexpr std::size_t length_at = version_at + 2;

struct Header {
    std::string_view text;
    std::size_t data_at;
};

[[noreturn]] void no_npy(const std::string& path) {
    throw FileError(path + ": not an .npy file; write it with numpy.save");
}

std::size_t little_endian(std::string_view bytes) {
    std::size_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

Header header_of(const std::string& path, std::string_view content) {
    if (content.substr(0, magic.size()) != magic || content.size() < length_at) no_npy(path);
    const std::size_t length_bytes = content[version_at] == 1 ? 2 : 4;  // version 1.0 has a shorter length
    if (content.size() < length_at + length_bytes) no_npy(path);
    const std::size_t text_at = length_at + length_bytes;
    const std::size_t length = little_endian(content.substr(length_at, length_bytes));
    if (length > content.size() - text_at) no_npy(path);
    return {content.substr(text_at, length), text_at + length};
}

/// The text behind `'key': ` in the header, a Python dictionary.
std::string_view entry(const std::string& path, std::string_view header, const std::string& key) {
    const std::string quoted = "'" + key + "':";
    const std::size_t found = header.find(quoted);
    if (found == std::string_view::npos) no_npy(path);
    const std::string_view rest = header.substr(found + quoted.size());
    return rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
}

/// The numbers of a tuple; an empty list when it is none or a number is unreasonable.
std::vector<std::size_t> shape_of(std::string_view tuple) {
    std::vector<std::size_t> sizes;
    if (tuple.empty() || tuple[0] != '(') return sizes;
    bool inside = false;
    for (const char c : tuple.substr(1, tuple.find(')') - 1)) {
        if (c < '0' || c > '9') {
            inside = false;
            continue;
        }
        if (!inside) sizes.push_back(0);
        inside = true;
        sizes.back() = sizes.back() * 10 + static_cast<std::size_t>(c - '0');
        if (sizes.back() > npy_limit_bytes) return {};
    }
    return sizes;
}

}  // namespace

Int8Matrix load_npy(const std::string& path) {
    const std::string content = read_file(path, npy_limit_bytes, "give an .npy file with int8 weights, K x N");
    const Header header = header_of(path, content);
    if (entry(path, header.text, "descr").substr(0, 5) != "'|i1'") {
        throw WeightError(path + ": weights are no int8; convert with .astype(numpy.int8)");
    }
    if (entry(path, header.text, "fortran_order").substr(0, 5) != "False") {
        throw WeightError(path + ": weights are column-major; save numpy.ascontiguousarray of them");
    }
    const std::vector<std::size_t> shape = shape_of(entry(path, header.text, "shape"));
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
        throw WeightError(path + ": weights are no matrix of at least 1 x 1; save an array of shape (K, N)");
    }
    const std::size_t held = content.size() - header.data_at;
    if (held / shape[1] < shape[0] || held - shape[0] * shape[1] > 0) {
        throw WeightError(path + ": holds " + std::to_string(held) + " of " + std::to_string(shape[0]) + " x " +
                          std::to_string(shape[1]) + " weights; the file is truncated or damaged, save it again");
    }
    Int8Matrix matrix{shape[0], shape[1], std::vector<std::int8_t>(held)};
    std::memcpy(matrix.values.data(), content.data() + header.data_at, held);
    return matrix;
}

}  // namespace bdforge
