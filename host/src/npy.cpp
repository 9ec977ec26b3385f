#include "bdforge/npy.hpp"

#include <cstring>
#include <fstream>
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

/// Bytes of an element of a type, such as 4 of "<f4"; 0 for one that is no number's.
std::size_t element_bytes(const std::string& type) {
    constexpr std::string_view orders = "<|=", kinds = "iufV";
    if (type.size() != 3 || orders.find(type[0]) == std::string_view::npos || kinds.find(type[1]) == std::string_view::npos)
        return 0;
    return type[2] >= '1' && type[2] <= '8' ? static_cast<std::size_t>(type[2] - '0') : 0;
}

}  // namespace

NpyArray load_npy(const std::string& path) {
    const std::string content = read_file(path, npy_limit_bytes, "give an .npy file that numpy.save wrote");
    const Header header = header_of(path, content);
    const std::string_view type = entry(path, header.text, "descr");
    const std::size_t quote = type.find('\'', 1);
    if (type.empty() || type[0] != '\'' || quote == std::string_view::npos || quote < 3) no_npy(path);
    NpyArray array{std::string(type.substr(1, quote - 1)), shape_of(entry(path, header.text, "shape")), {}};
    if (entry(path, header.text, "fortran_order").substr(0, 5) != "False")
        throw WeightError(path + ": the array is column-major; save numpy.ascontiguousarray of it");
    const std::size_t element = element_bytes(array.type);
    if (element == 0) throw WeightError(path + ": holds elements of type " + array.type.substr(0, 8) + ", no numbers");
    std::size_t needed = element;
    std::string shape;
    for (const std::size_t size : array.shape) {
        if (size == 0 || needed > npy_limit_bytes / size) needed = 0;
        needed *= size;
        shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    }
    if (array.shape.empty() || array.shape.size() > 2)
        throw WeightError(path + ": the array has no one or two axes; save one of shape (n,) or (rows, columns)");
    const std::size_t held = content.size() - header.data_at;
    if (needed == 0 || held != needed)
        throw WeightError(path + ": holds " + std::to_string(held / element) + " of " + shape +
                          " elements; the file is truncated or damaged, save it again");
    array.bytes.resize(held);
    std::memcpy(array.bytes.data(), content.data() + header.data_at, held);
    return array;
}

void save_npy(const std::string& path, const NpyArray& array) {
    std::string text = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (";
    for (const std::size_t size : array.shape) text += std::to_string(size) + ", ";
    text += "), }";
    constexpr std::size_t alignment = 64, length_bytes = 2;
    while ((length_at + length_bytes + text.size() + 1) % alignment != 0) text.push_back(' ');
    text.push_back('\n');
    std::ofstream file(path, std::ios::binary);
    file << magic << '\1' << '\0' << static_cast<char>(text.size() & 255) << static_cast<char>(text.size() >> 8) << text;
    file.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
    if (!file.flush()) throw FileError(path + ": cannot be written; free space, or choose another place");
}

}  // namespace bdforge
