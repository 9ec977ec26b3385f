#include "files.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& cause, const std::string& next_step) {
    throw FileError(concat(path, ": ", cause, "; ", next_step));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit_bytes, const std::string& next_step) {
    std::error_code fault;
    const bool regular = std::filesystem::is_regular_file(path, fault);
    if (fault) refuse(path, fault.message(), next_step);
    if (!regular) refuse(path, "not a regular file", next_step);
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse(path, std::strerror(errno), next_step);
    const std::size_t bytes = std::filesystem::file_size(path);
    if (bytes > limit_bytes) refuse(path, concat(bytes, " bytes, more than ", limit_bytes), next_step);
    std::string content(bytes, '\0');
    if (!file.read(content.data(), static_cast<std::streamsize>(bytes)))
        refuse(path, "cannot be read whole", next_step);
    return content;
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

namespace {

using Words = std::array<std::uint32_t, 8>;

/// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::uint32_t rotate(std::uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

std::array<std::uint32_t, 64> message_schedule(const unsigned char* block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) {
        w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
               std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
    }
    for (std::size_t i = 16; i < 64; ++i) {
        const std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        const std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    return w;
}

void compress(Words& hash, const unsigned char* block) {
    const auto w = message_schedule(block);
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        const std::uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const std::uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        const std::uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const Words step = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += step[i];
}

std::string padded_tail(const std::string& content, std::size_t from) {
    std::string tail = content.substr(from) + '\x80';
    tail.append((120 - tail.size() % 64) % 64, '\0');  // a block but the 8 bytes of the length (FIPS 180-4, 5.1.1)
    const std::uint64_t bits = std::uint64_t{content.size()} * 8;
    for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift));
    return tail;
}

}  // namespace

std::string sha256(const std::string& content) {
    Words hash = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const std::size_t whole = content.size() / 64 * 64;
    const auto digest = [&](const std::string& text, std::size_t end) {
        for (std::size_t at = 0; at < end; at += 64) {
            compress(hash, reinterpret_cast<const unsigned char*>(text.data()) + at);
        }
    };
    digest(content, whole);
    const std::string tail = padded_tail(content, whole);
    digest(tail, tail.size());
    std::string text;
    for (const std::uint32_t word : hash) {
        for (int shift = 28; shift >= 0; shift -= 4) text.push_back("0123456789abcdef"[word >> shift & 15]);
    }
    return text;
}

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
std::vector<std::size_t> numbers_of(std::string_view tuple) {
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
    constexpr std::string_view orders = "<|=", kinds = "iufV";  // V: bfloat16 and its like
    if (type.size() != 3 || orders.find(type[0]) == std::string_view::npos ||
        kinds.find(type[1]) == std::string_view::npos)
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
    NpyArray array{std::string(type.substr(1, quote - 1)), numbers_of(entry(path, header.text, "shape")), {}};
    if (entry(path, header.text, "fortran_order").substr(0, 5) != "False")
        throw WeightError(path + ": the array is column-major; save numpy.ascontiguousarray of it");
    const std::size_t element = element_bytes(array.type);
    if (element == 0) throw WeightError(path + ": holds elements of type " + array.type.substr(0, 8) + ", no numbers");
    std::size_t needed = element;
    std::string shape;
    for (const std::size_t size : array.shape) {
        if (size == 0 || needed > npy_limit_bytes / size) needed = 0;
        needed *= size;
        shape += concat((shape.empty() ? "" : " x "), size);
    }
    if (array.shape.empty() || array.shape.size() > 2)
        throw WeightError(path + ": the array has no one or two axes; save one of shape (n,) or (rows, columns)");
    const std::size_t held = content.size() - header.data_at;
    if (needed == 0 || held != needed)
        throw WeightError(concat(path, ": holds ", held / element, " of ", shape,
                                 " elements; the file is truncated or damaged, save it again"));
    array.bytes.resize(held);
    std::memcpy(array.bytes.data(), content.data() + header.data_at, held);
    return array;
}

void save_npy(const std::string& path, const NpyArray& array) {
    std::string text = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (";
    for (const std::size_t size : array.shape) text += concat(size, ", ");
    text += "), }";
    constexpr std::size_t alignment = 64, length_bytes = 2;  // where numpy's format has the data begin
    while ((length_at + length_bytes + text.size() + 1) % alignment != 0) text.push_back(' ');
    text.push_back('\n');
    std::ofstream file(path, std::ios::binary);
    file << magic << '\1' << '\0' << static_cast<char>(text.size() & 255) << static_cast<char>(text.size() >> 8)
         << text;
    file.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
    if (!file.flush()) throw FileError(path + ": cannot be written; free space, or choose another place");
}

}  // namespace bdforge
