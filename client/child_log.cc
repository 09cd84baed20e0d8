#include "client/child_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace penstock::client {
namespace {

constexpr int64_t kLogTailBytes = 4096;

}  // namespace

std::string LastLine(int fd) {
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) return "";
  const off_t start = std::max<off_t>(0, info.st_size - kLogTailBytes);
  std::string tail(info.st_size - start, '\0');
  const ssize_t n = pread(fd, tail.data(), tail.size(), start);
  if (n <= 0) return "";
  absl::string_view text(tail.data(), n);
  while (absl::ConsumeSuffix(&text, "\n")) {
  }
  const size_t line = text.rfind('\n');
  return std::string(line == absl::string_view::npos ? text
                                                     : text.substr(line + 1));
}

std::string LastTrouble(int fd) {
  std::string line = LastLine(fd);
  // TIME SEVERITY PROCESS FILE:LINE] TEXT
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::MaxSplits(' ', 2));
  return words.size() > 1 && words[1] == "INFO" ? "" : line;
}

}  // namespace penstock::client
