// SPDX-License-Identifier: MIT
// safetensors: round trip, every defect refused with its own message, saves that fail or are killed lose nothing.
#include "sdepth/safetensors.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "support/catch.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

using shape = std::vector<std::uint64_t>;

std::string file_of(std::string header, std::size_t data_bytes) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + std::string(data_bytes, '\1');
}

std::string message_of(const std::filesystem::path& path, const std::string& bytes) {
    write_bytes(path, bytes);
    return refusal([&] { safetensors_reader reader(path); });
}

template <class T>
std::vector<T> read_all(const safetensors_reader& file, const std::string& name) {
    const auto* entry = file.find(name);
    REQUIRE(entry);
    std::vector<T> out((entry->end - entry->begin) / sizeof(T));
    file.read<T>(name, entry->shape, out);
    return out;
}

/// A file whose every number is `generation`, which the metadata state too.
void save_generation(const std::filesystem::path& path, int generation) {
    const std::vector<float> values(50'000, static_cast<float>(generation));
    safetensors_writer out(path, {{"a", "F32", {50'000}}, {"b", "F32", {500, 100}}},
                           {{"generation", std::to_string(generation)}});
    out.write<float>("a", values);
    out.write<float>("b", values);
    out.commit();
}

/// The generation of a file after checking every number in it.
int whole_generation(const std::filesystem::path& path) {
    const safetensors_reader in(path);
    const int generation = std::stoi(in.metadata().at("generation"));
    for (const char* name : {"a", "b"})
        for (const float x : read_all<float>(in, name)) REQUIRE(x == static_cast<float>(generation));
    return generation;
}

std::size_t files_in(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("what is written is read back", "[safetensors]") {
    const temporary_folder folder;
    const auto path = folder / "x.safetensors";
    const std::vector<float> f32{1.5f, -0.0f, 3e38f, 4, 5, 6};
    const std::vector<double> f64{0.1};
    const std::vector<std::int64_t> i64{-1, std::int64_t{1} << 62};
    const std::vector<std::uint8_t> u8{0, 127, 255};
    const std::vector<bfloat16> bf16{bfloat16(1.0f), bfloat16(-2.0f)};
    {
        safetensors_writer out(path,
                               {{"bytes", "U8", {3}},
                                {"matrix", "F32", {2, 3}},
                                {"scalar", "F64", {}},
                                {"half", "BF16", {2}},
                                {"whole", "I64", {2}},
                                {"empty", "F32", {0, 5}},
                                {"name \"with\" \\ and \u00e9\n", "U8", {3}}},
                               {{"digest", "ab\"c"}, {"note", "\u20ac"}, {"sum", "0000"}});
        out.write<std::uint8_t>("bytes", u8);
        out.write<double>("scalar", f64);
        out.write<float>("matrix", f32);
        out.write<std::int64_t>("whole", i64);
        out.write<bfloat16>("half", bf16);
        out.write<float>("empty", {});
        out.write<std::uint8_t>("name \"with\" \\ and \u00e9\n", u8);
        out.amend("sum", "12ef");
        CHECK_FALSE(std::filesystem::exists(path));
        out.commit();
    }
    CHECK(files_in(folder.path()) == 1);
    const safetensors_reader in(path);
    CHECK(in.metadata() == safetensors_metadata{{"digest", "ab\"c"}, {"note", "\u20ac"}, {"sum", "12ef"}});
    CHECK(in.entries().size() == 7);
    CHECK(read_all<float>(in, "matrix") == f32);
    CHECK(in.find("matrix")->shape == shape{2, 3});
    CHECK(read_all<double>(in, "scalar") == f64);
    CHECK(read_all<std::int64_t>(in, "whole") == i64);
    CHECK(read_all<std::uint8_t>(in, "bytes") == u8);
    CHECK(read_all<std::uint8_t>(in, "name \"with\" \\ and \u00e9\n") == u8);
    CHECK(read_all<bfloat16>(in, "half")[1].bits == bf16[1].bits);
    CHECK(read_all<float>(in, "empty").empty());
    CHECK(in.find("nothing") == nullptr);
    for (const auto& entry : in.entries()) CHECK(entry.begin % detail::safetensors_bytes(entry.dtype) == 0);
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, read_bytes(path).data(), 8);
    CHECK(header_bytes % 8 == 0);
}

TEST_CASE("reading a tensor as something else says what differs", "[safetensors]") {
    const temporary_folder folder;
    save_generation(folder / "x", 1);
    const safetensors_reader in(folder / "x");
    std::vector<float> f32(50'000);
    std::vector<double> f64(50'000);
    const std::string where = "sdepth: " + (folder / "x").string() + ": ";
    CHECK_THROWS_WITH(in.read<float>("c", shape{5}, f32),
                      where + "has no tensor \"c\", wanted as F32 [5]; load the file of this model");
    CHECK_THROWS_WITH(in.read<float>("b", shape{100, 500}, f32),
                      where + "tensor \"b\" is F32 [500, 100], wanted as F32 [100, 500]; load the file of this model");
    CHECK_THROWS_WITH(in.read<double>("a", shape{50'000}, f64),
                      where + "tensor \"a\" is F32 [50000], wanted as F64 [50000]; load the file of this model");
    CHECK_THROWS_AS(in.read<float>("a", shape{50'000}, std::span(f32).first(5)), error);
}

TEST_CASE("every defect has one clear error", "[safetensors]") {
    const temporary_folder folder;
    const auto path = folder / "x";
    const auto expect = [&](const std::string& bytes, const std::string& words) {
        const std::string message = message_of(path, bytes);
        INFO(message);
        CHECK(message.find(words) != std::string::npos);
        CHECK(message.starts_with("sdepth: " + path.string() + ": "));
    };
    const auto header = [&](const std::string& text, std::size_t data, const std::string& words) {
        expect(file_of(text, data), words);
    };
    const std::string a4 = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
    CHECK(message_of(path, file_of("{" + a4 + "}", 4)) == "accepted");
    CHECK(message_of(path, file_of("{" + a4 + "}    ", 4)) == "accepted");  // padding, and data that are not aligned
    CHECK(message_of(path, file_of("{}", 0)) == "accepted");

    expect("", "has 0 bytes, too few");
    expect("1234567", "has 7 bytes, too few");
    expect(std::string("\x03\0\0\0\0\0\0\0{}", 10), "states a header of 3 bytes in a file of 10");
    expect(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "states a header of 18446744073709551615 bytes");
    expect(std::string(8, '\0'), "does not begin with '{'");
    header(" {}", 0, "does not begin with '{'");
    header("{", 0, "needs '\"'");
    header("{}x", 0, "something follows the end");
    header("{" + a4 + "," + a4 + "}", 4, "the name \"a\" stands there twice");
    header(R"({"__metadata__":{"a":1}})", 0, "needs '\"'");
    header(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "needs dtype, shape and two data_offsets");
    header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "needs dtype, shape and two data_offsets");
    header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "unknown member \"x\"");
    header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole number");
    header(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})", 4, "has the type \"Q4\"");
    header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "overflows 64 bits");
    header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0, "overflows 64 bits");
    header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "need 8 bytes");
    header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})", 5, "need 4 bytes");
    header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "begins at byte 4");
    header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "begins at byte 4 of the data");
    header("{" + a4 + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6, "begins at byte 2");
    header("{" + a4 + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12, "begins at byte 8");
    header("{" + a4 + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "begins at byte 0");
    header("{" + a4 + "}", 3, "need 4 bytes of data, the file has 3");
    header("{" + a4 + "}", 5, "need 4 bytes of data, the file has 5");

    CHECK_THROWS_AS(safetensors_reader(folder / "absent"), error);
    CHECK_THROWS_AS(safetensors_reader(folder.path()), error);
}

TEST_CASE("a file cut anywhere is refused", "[safetensors]") {
    const temporary_folder folder;
    {
        safetensors_writer out(folder / "x", {{"a", "F32", {2}}, {"b", "U8", {3}}}, {{"k", "v"}});
        out.write<float>("a", std::vector<float>{1, 2});
        out.write<std::uint8_t>("b", std::vector<std::uint8_t>{1, 2, 3});
        out.commit();
    }
    const std::string whole = read_bytes(folder / "x");
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK(message_of(folder / "y", whole.substr(0, length)) != "accepted");
    CHECK(message_of(folder / "y", whole) == "accepted");
}

TEST_CASE("a save that goes wrong leaves the old file", "[safetensors]") {
    const temporary_folder folder;
    const auto path = folder / "x";
    save_generation(path, 1);
    const std::vector<float> two{1, 2};
    CHECK_THROWS_AS(safetensors_writer(path, {{"a", "F32", {1}}, {"a", "F32", {1}}}), error);
    CHECK_THROWS_AS(safetensors_writer(path, {{"__metadata__", "F32", {1}}}), error);
    CHECK_THROWS_AS(safetensors_writer(path, {{"a", "F33", {1}}}), error);
    CHECK_THROWS_AS(safetensors_writer(path, {{"a", "F32", {std::uint64_t{1} << 62}}}), error);
    CHECK_THROWS_AS(safetensors_writer(path, {{"\xff", "F32", {1}}}), error);
    {
        safetensors_writer out(path, {{"a", "F32", {2}}, {"b", "F32", {2}}}, {{"sum", "00"}});
        CHECK_THROWS_AS(out.amend("sun", "12"), error);
        CHECK_THROWS_AS(out.amend("sum", "123"), error);
        CHECK_THROWS_AS(out.amend("sum", "\n1"), error);  // takes an escape
        CHECK_THROWS_AS(out.write<float>("c", two), error);
        CHECK_THROWS_AS(out.write<float>("a", std::span(two).first(1)), error);
        CHECK_THROWS_AS(out.write<double>("a", std::vector<double>{1}), error);
        out.write<float>("a", two);
        CHECK_THROWS_AS(out.write<float>("a", two), error);
        CHECK_THROWS_AS(out.commit(), error);
    }
    CHECK(whole_generation(path) == 1);
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a full disk is an error and leaves the old file", "[safetensors]") {
    const temporary_folder folder;
    const auto path = folder / "x";
    save_generation(path, 1);
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100'000, 100'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
            save_generation(path, 2);
        } catch (const error&) {
            ::_exit(3);
        }
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
    CHECK(whole_generation(path) == 1);
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("kill -9 during a save, 50 times, never loses the last good file", "[safetensors][kill]") {
    const temporary_folder folder;
    const auto path = folder / "x";
    save_generation(path, 0);
    std::mt19937 random(std::random_device{}());
    int generation = 0, killed_inside = 0;
    for (int round = 0; round < 50; ++round) {
        int told[2];
        REQUIRE(::pipe(told) == 0);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (int next = generation + 1;; ++next) {
                save_generation(path, next);
                if (::write(told[1], &next, sizeof next) != sizeof next) ::_exit(1);
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(100, 30'000)(random)));
        REQUIRE(::kill(child, SIGKILL) == 0);
        REQUIRE(::waitpid(child, nullptr, 0) == child);
        ::close(told[1]);
        int committed = generation;
        for (int next = 0; ::read(told[0], &next, sizeof next) == sizeof next;) committed = next;
        ::close(told[0]);
        killed_inside += files_in(folder.path()) > 1;
        generation = whole_generation(path);
        CHECK(generation >= committed);
        CHECK(generation <= committed + 1);
    }
    CHECK(killed_inside > 10);  // else the test did not hit what it is about
    save_generation(path, generation + 1);
    CHECK(files_in(folder.path()) == 1);  // the remains of the killed saves are gone
}

TEST_CASE("the new file of a living save is left alone", "[safetensors]") {
    const temporary_folder folder;
    const auto path = folder / "x";
    output_file mine(path);
    const pid_t child = ::fork();
    if (child == 0) {
        save_generation(path, 5);
        ::_exit(files_in(folder.path()) == 2 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    mine.write("hello", 5, 0);
    mine.commit();
    CHECK(read_bytes(path) == "hello");
}
