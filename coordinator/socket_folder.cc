#include "coordinator/socket_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/file/folder.h"

namespace penstock::coordinator {

namespace fs = std::filesystem;

absl::Status MakeSocketFolder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make the folder for sockets ", folder.string(), ": ",
                   std::strerror(errno)));
}

void RemoveSocketFolder(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : common::file::ListFolder(folder, ignored)) {
    if (entry.is_socket(ignored)) fs::remove(entry.path(), ignored);
  }
  fs::remove(folder, ignored);
}

}  // namespace penstock::coordinator
