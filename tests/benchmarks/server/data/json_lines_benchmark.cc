// How fast lines of a .jsonl are read: docs/decisions/0006. Parse: one line
// after the other, from memory. Check: the same lines by nlohmann-json's SAX
// reader, which keeps nothing. Scan: all that is done once when a job's data
// are opened, of a file in the page cache.
//
//   build/dev/benchmarks/json_lines_benchmark
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmark/benchmark.h"
#include "common/log/log.h"
#include "server/data/json_fault.h"
#include "server/data/json_line.h"
#include "server/data/open_source.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::server::data {
namespace {

constexpr size_t kBytes = size_t{32} << 20;
constexpr int64_t kTokens = 1025, kVocab = 50257;

std::string TextLine(std::minstd_rand& random) {
  std::string text;
  for (size_t size = 200 + random() % 3000; text.size() < size;) {
    absl::StrAppend(&text, random() % 10 == 0 ? "caf\xc3\xa9" : "word",
                    random() % 12 == 0 ? "\\n" : " ");
  }
  return absl::StrCat(R"({"id": 1, "text": ")", text,
                      R"(", "meta": {"source": "made up", "score": 0.5}})");
}

std::string TokenLine(std::minstd_rand& random) {
  std::vector<int64_t> ids(kTokens);
  for (int64_t& id : ids) id = random() % kVocab;
  const std::string list = absl::StrJoin(ids, ", ");
  return absl::StrCat(R"({"input_ids": [)", list, R"(], "labels": [)", list,
                      "]}");
}

std::vector<std::string> Lines(std::string make(std::minstd_rand&)) {
  std::minstd_rand random(7);
  std::vector<std::string> lines;
  for (size_t bytes = 0; bytes < kBytes; bytes += lines.back().size()) {
    lines.push_back(make(random));
  }
  return lines;
}

void SetBytes(benchmark::State& state, const std::vector<std::string>& lines) {
  int64_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size() + 1;
  state.SetBytesProcessed(state.iterations() * bytes);
}

void Parse(benchmark::State& state, std::string make(std::minstd_rand&)) {
  const std::vector<std::string> lines = Lines(make);
  JsonLineParser parser;
  JsonLine parsed;
  for (auto _ : state) {
    for (const std::string& line : lines) {
      CHECK_OK(parser.Parse(line, "text", parsed));
    }
  }
  SetBytes(state, lines);
}

void Check(benchmark::State& state, std::string make(std::minstd_rand&)) {
  const std::vector<std::string> lines = Lines(make);
  for (auto _ : state) {
    for (const std::string& line : lines) {
      CHECK(!FindJsonFault(line).has_value());
    }
  }
  SetBytes(state, lines);
}

void Scan(benchmark::State& state, std::string make(std::minstd_rand&)) {
  const std::vector<std::string> lines = Lines(make);
  const tests::fakes::TempDir dir;
  const std::string path =
      dir.Write("lines.jsonl", absl::StrJoin(lines, "\n") + "\n");
  for (auto _ : state) {
    CHECK_OK(OpenSource({.path = path,
                         .field = "text",
                         .context = kTokens,
                         .vocab = kVocab})
                 .status());
  }
  SetBytes(state, lines);
}

BENCHMARK_CAPTURE(Parse, text, TextLine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Parse, tokens, TokenLine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Check, text, TextLine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Check, tokens, TokenLine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scan, text, TextLine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scan, tokens, TokenLine)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::server::data

BENCHMARK_MAIN();
