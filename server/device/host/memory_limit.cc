#include "server/device/host/memory_limit.h"

#include <unistd.h>

#include <fstream>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace penstock::server::device::host {
namespace {

// One hierarchy of control groups, and the file with a group's limit.
struct Hierarchy {
  std::string root;
  absl::string_view file;
};

// Lowers `limit` to that of `path` or of a group that it is in.
void Apply(const Hierarchy& hierarchy, absl::string_view path,
           MemoryLimit& limit) {
  while (true) {
    std::string text;
    std::ifstream(absl::StrCat(hierarchy.root, path, "/", hierarchy.file)) >>
        text;
    int64_t bytes = 0;
    // "max" is no number; v1's "unlimited" is more than any machine has.
    if (absl::SimpleAtoi(text, &bytes) && bytes < limit.bytes) {
      limit = {.bytes = bytes, .group = path.empty() ? "/" : std::string(path)};
    }
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace

MemoryLimit FindMemoryLimit(const MemoryLimitOptions& options) {
  MemoryLimit limit = {.bytes = options.machine_bytes};
  std::ifstream groups(options.groups);
  std::string line;
  while (std::getline(groups, line)) {
    // cgroups(7): hierarchy:controllers:path, no controllers in version 2.
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    absl::string_view path = fields[2];
    if (path == "/") path = "";
    if (fields[1].empty()) {
      Apply({.root = options.mount, .file = "memory.max"}, path, limit);
    } else if (absl::c_linear_search(controllers, "memory")) {
      Apply(
          {.root = options.mount + "/memory", .file = "memory.limit_in_bytes"},
          path, limit);
    }
  }
  return limit;
}

MemoryLimit FindMemoryLimit() {
  return FindMemoryLimit({.machine_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} *
                                           sysconf(_SC_PAGESIZE)});
}

}  // namespace penstock::server::device::host
