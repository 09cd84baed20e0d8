#include "client/runtime_directory.h"

#include <unistd.h>

#include "common/log/log.h"

namespace penstock::client {

std::string RuntimeDirectory(const std::vector<std::string>& candidates) {
  CHECK(!candidates.empty());
  // Room for /penstock-XXXXXX/coordinator.sock below the kernel's limit.
  constexpr size_t kLongest = 70;
  for (const std::string& folder : candidates) {
    if (!folder.empty() && folder.size() <= kLongest &&
        access(folder.c_str(), W_OK | X_OK) == 0) {
      return folder;
    }
  }
  return candidates.back();
}

}  // namespace penstock::client
