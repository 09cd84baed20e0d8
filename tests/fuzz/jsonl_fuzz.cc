// Lines of outside bytes: the parser must neither crash nor disagree with
// nlohmann-json, and the scanner must cut any pieces into the same lines.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "server/data/line_scanner.h"
#include "tests/server/data/json_oracle.h"

namespace penstock::server::data {
namespace {

std::vector<std::string> Lines(absl::string_view bytes, size_t piece) {
  std::vector<std::string> lines;
  LineScanner scanner;
  const auto visit = [&](const Line& line) {
    lines.emplace_back(line.bytes);
    return absl::OkStatus();
  };
  for (size_t at = 0; at < bytes.size(); at += piece) {
    CHECK_OK(scanner.Add(bytes.substr(at, piece), visit));
  }
  CHECK_OK(scanner.Finish(visit));
  return lines;
}

}  // namespace
}  // namespace penstock::server::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::server::data;  // One function of a test program.
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> lines = Lines(bytes, size == 0 ? 1 : size);
  CHECK(lines == Lines(bytes, 3));
  for (const std::string& line : lines) {
    const OracleVerdict verdict = CompareWithOracle(line, "text");
    CHECK(verdict.disagreement.empty()) << verdict.disagreement;
  }
  return 0;
}
