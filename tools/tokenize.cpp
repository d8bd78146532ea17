// SPDX-License-Identifier: MIT
// Turns text into a GPT-2 token file with its sidecar, or writes the sidecar of a token file made elsewhere.
#include <getopt.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "gpt2_tokenizer.hpp"
#include "sdepth/corpus.hpp"
#include "sdepth/sha256.hpp"
#include "sdepth/token_file.hpp"

namespace {

constexpr const char* usage =
    "usage: tokenize --ranks RANKS --out OUT.bin TEXT...      GPT-2 tokens of text files and folders of them\n"
    "       tokenize --describe gpt2|llama-3 FILE.bin...      sidecars of llm.c's token files\n"
    "RANKS: gpt2.tiktoken, which scripts/fetch_gpt2_ranks.sh fetches. Each file is a document.\n";

void tokenize(const std::string& ranks, const std::string& out, const std::vector<std::string>& inputs) {
    const std::string content = sdepth::input_file(ranks).text();
    sdepth::sha256 sum;
    sum.add(content);
    if (sum.hex() != sdepth_tools::gpt2_ranks_sha256)
        throw sdepth::error(ranks + ": is not GPT-2's rank file; fetch it with scripts/fetch_gpt2_ranks.sh");
    const sdepth_tools::gpt2_tokenizer tokenizer(content, ranks);
    std::vector<std::uint32_t> tokens;
    std::uint64_t bytes = 0;
    std::size_t documents = 0;
    for (const std::string& input : inputs) {
        const sdepth::corpus text = sdepth::corpus::open(input);
        if (text.tokenizer() != "bytes") throw sdepth::error(input + ": holds tokens already; name text");
        std::vector<std::int32_t> numbers;
        for (std::size_t d = 0; d < text.document_starts().size(); ++d) {
            const std::uint64_t begin = text.document_starts()[d];
            const bool last = d + 1 == text.document_starts().size();
            numbers.resize((last ? text.size() : text.document_starts()[d + 1]) - begin);
            text.read(begin, numbers);
            const std::string document(numbers.begin(), numbers.end());
            const auto encoded = tokenizer.encode(document, input + ", document " + std::to_string(d + 1));
            tokens.push_back(sdepth_tools::gpt2_document_token);
            tokens.insert(tokens.end(), encoded.begin(), encoded.end());
            ++documents;
        }
        bytes += text.size();
    }
    sdepth::write_token_file(out, tokens,
                             {.tokenizer = "gpt2",
                              .vocabulary = sdepth_tools::gpt2_vocabulary,
                              .document_token = sdepth_tools::gpt2_document_token});
    std::printf("%s: %zu tokens, %zu documents, %.3f bytes a token\n", out.c_str(), tokens.size(), documents,
                static_cast<double>(bytes) / static_cast<double>(tokens.size()));
}

void describe(const std::string& name, const std::vector<std::string>& files) {
    sdepth::token_source source{.tokenizer = name};
    if (name == "gpt2") {
        source.vocabulary = sdepth_tools::gpt2_vocabulary;
        source.document_token = sdepth_tools::gpt2_document_token;
    } else if (name == "llama-3") {
        source.vocabulary = 128256;
        source.document_token = 128000;
    } else {
        throw sdepth::error("tokenizer " + sdepth::json_quote_short(name) + ": is not known; name gpt2 or llama-3");
    }
    for (const std::string& file : files) {
        sdepth::describe_token_file(file, source);
        const sdepth::token_file check(file);
        std::printf("%s.json: %llu tokens of %s\n", file.c_str(), static_cast<unsigned long long>(check.size()),
                    name.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const option options[] = {{"ranks", required_argument, nullptr, 'r'},
                              {"out", required_argument, nullptr, 'o'},
                              {"describe", required_argument, nullptr, 'd'},
                              {nullptr, 0, nullptr, 0}};
    std::string ranks, out, name;
    for (int c = 0; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
        if (c == 'r') ranks = optarg;
        if (c == 'o') out = optarg;
        if (c == 'd') name = optarg;
        if (c == '?') return std::fputs(usage, stderr), 2;
    }
    const std::vector<std::string> inputs(argv + optind, argv + argc);
    const bool make = !ranks.empty() && out.ends_with(".bin") && name.empty();
    const bool tell = ranks.empty() && out.empty() && !name.empty();
    if (inputs.empty() || make == tell) return std::fputs(usage, stderr), 2;
    if (make)
        tokenize(ranks, out, inputs);
    else
        describe(name, inputs);
} catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
