#include <cstdio>
#include <fstream>

#include "bdforge/error.hpp"
#include "files.hpp"
#include "unit.hpp"

using bdforge::FileError;
using bdforge::load_npy;
using bdforge::WeightError;
using namespace unit;

namespace {

/// An .npy file, version 1.0, that says `dictionary` and holds `data`.
std::string npy(const std::string& dictionary, const std::string& data) {
    const std::string path = unit::data_folder() + "/made.npy";
    std::ofstream file(path, std::ios::binary);
    file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(dictionary.size()) << '\0' << dictionary << data;
    return path;
}

std::string header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string weight_fault(const std::string& path) {
    return message_of<WeightError>([&] { load_npy(path); });
}

}  // namespace

UNIT_CASE("files", sha256_of_the_standards_examples) {
    // FIPS 180-2, appendix B.
    check_equal(bdforge::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
    check_equal(bdforge::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "two blocks");
    check_equal(bdforge::sha256(std::string(1'000'000, 'a')),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "a million a");
    // Around where the length needs a block of its own; by Python's hashlib.
    const std::pair<std::size_t, const char*> ends[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
    };
    for (const auto& [count, hash] : ends) check_equal(bdforge::sha256(std::string(count, 'a')), hash, std::to_string(count) + " a");
    check_equal(bdforge::sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "nothing");
}

UNIT_CASE("files", missing_and_unfit_files_are_named) {
    const auto fault = [](const std::string& path, std::size_t limit) {
        return message_of<FileError>([&] { bdforge::read_file(path, limit, "do this"); });
    };
    check_equal(fault("/no/such/file", 1), "/no/such/file: No such file or directory; do this", "missing");
    check_contains(fault(unit::data_folder(), 1), "not a regular file; do this");
    check_contains(fault(unit::data_folder() + "/small/manifest.json", 10), "more than 10; do this");
    const std::pair<const char*, const char*> folders[] = {{"a/b/c", "a/b/"}, {"/c", "/"}, {"c", ""}, {"a/", "a/"}, {"", ""}};
    for (const auto& [path, folder] : folders) check_equal(bdforge::folder_of(path), folder, path);
}

UNIT_CASE("files", npy_arrays_are_read_and_written) {
    const auto matrix = load_npy(npy(header("|i1", "(2, 3)"), std::string("\1\xFF\0\1\1\0", 6)));
    check_equal(matrix.type, "|i1", "type");
    check_equal(matrix.shape.at(0) * 10 + matrix.shape.at(1), 23U, "shape");
    check_equal(static_cast<int>(matrix.bytes[1]), 255, "value");
    const bdforge::NpyArray vector{"<f4", {5}, std::vector<std::byte>(20, std::byte{7})};
    bdforge::save_npy(unit::data_folder() + "/written.npy", vector);
    const auto again = load_npy(unit::data_folder() + "/written.npy");
    check_equal(again.type == vector.type && again.shape == vector.shape && again.bytes == vector.bytes, true, "array");
    for (std::size_t columns = 1; columns < 12'345'678'901; columns *= 11) {  // headers of many lengths
        const bdforge::NpyArray matrix{"|u1", {0, columns}, {}};
        bdforge::save_npy(unit::data_folder() + "/written.npy", matrix);
        const std::string content = bdforge::read_file(unit::data_folder() + "/written.npy", 1000, "");
        check_equal(content.size() % 64, 0U, "where data begins, " + std::to_string(columns));
        check_equal(content.size() - 10, static_cast<unsigned char>(content[8]) + 256U * static_cast<unsigned char>(content[9]),
                    "length of the header, " + std::to_string(columns));
        check_contains(content, "'shape': (0, " + std::to_string(columns) + ", )");
        check_equal(content.back(), '\n', "end of the header");
    }
    check_contains(message_of<FileError>([&] { bdforge::save_npy("/no/such/folder/x.npy", vector); }), "x.npy: cannot be written");
}

UNIT_CASE("files", npy_headers_have_two_lengths) {
    const std::string path = unit::data_folder() + "/made.npy", text = header("|i1", "(3,)");
    std::ofstream(path, std::ios::binary) << "\x93NUMPY" << '\x02' << '\0' << static_cast<char>(text.size()) << '\0' << '\0'
                                          << '\0' << text << "abc";
    check_equal(load_npy(path).bytes.size(), 3U, "version 2.0");
    const std::string long_text(300 - text.size(), ' ');  // more than a byte counts
    std::ofstream(path, std::ios::binary) << "\x93NUMPY" << '\x01' << '\0' << '\x2C' << '\x01' << long_text << text << "abc";
    check_equal(load_npy(path).bytes.size(), 3U, "300 bytes");
}

UNIT_CASE("files", npy_elements_are_numbers_of_1_to_8_bytes) {
    for (const char* type : {"|i1", "<u2", "=f4", "<i8", "|V8"}) {
        const auto bytes = static_cast<std::size_t>(type[2] - '0');
        check_equal(load_npy(npy(header(type, "(1,)"), std::string(bytes, 'x'))).bytes.size(), bytes, type);
    }
    for (const char* type : {"|i0", "<i9", ">i4", "<c8", "<f16"})
        check_contains(weight_fault(npy(header(type, "(1,)"), "12345678")), "elements of type " + std::string(type));
}

UNIT_CASE("files", other_npy_files_are_refused_by_name) {
    check_contains(weight_fault(npy(header("|i1", "(2, 3)"), "12345")),
                   "holds 5 of 2 x 3 elements; the file is truncated");
    check_contains(weight_fault(npy(header("|i1", "(2, 3)"), "1234567")), "holds 7 of 2 x 3 elements");
    check_contains(weight_fault(npy(header("<f4", "(2, 3)"), "1234567")), "holds 1 of 2 x 3 elements");
    check_contains(weight_fault(npy(header("|O8", "(2, 3)"), "")), "elements of type |O8, no numbers");
    check_contains(weight_fault(npy(header("|i1", "(2, 3)", "True"), "123456")), "column-major");
    check_contains(weight_fault(npy(header("|i1", "()"), "1")), "no one or two axes");
    check_contains(weight_fault(npy(header("|i1", "(1, 2, 3)"), "123456")), "no one or two axes");
    check_contains(weight_fault(npy(header("|i1", "(0, 6)"), "")), "truncated");
    check_contains(weight_fault(npy(header("|i1", "(6, 0)"), "")), "truncated");
    check_contains(weight_fault(npy(header("<f4", "(5,)"), std::string(19, 'x'))), "holds 4 of 5 elements");
    check_contains(weight_fault(npy(header("<f4", "(5,)"), std::string(21, 'x'))), "holds 5 of 5 elements");
    check_equal(load_npy(npy(header("<f4", "(5,)"), std::string(20, 'x'))).shape.size(), 1U, "axes");
    check_contains(weight_fault(npy(header("|i1", "7"), "1234567")), "no one or two axes");
    check_contains(weight_fault(npy(header("|i1", "(99999999999999999999, 6)"), "")), "no one or two axes");
    check_contains(weight_fault(npy(header("|i1", "(68719476736, 68719476736)"), "123456")), "truncated");
}

UNIT_CASE("files", no_damaged_npy_crashes) {
    const std::string text = header("|i1", "(2, 3)");
    for (std::size_t end = 0; end < text.size(); ++end) {
        try {
            load_npy(npy(text.substr(0, end), ""));
            unit::check(false, "a header of " + std::to_string(end) + " bytes was taken");
        } catch (const bdforge::Error&) {
            continue;
        }
    }
    check_contains(message_of<FileError>([] { load_npy(unit::data_folder() + "/small/manifest.json"); }), "not an .npy file");
}
