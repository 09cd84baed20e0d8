#include "common/file/folder.h"

namespace penstock::common::file {

std::vector<std::filesystem::directory_entry> ListFolder(
    const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::filesystem::directory_entry> entries;
  std::filesystem::directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) entries.push_back(*it);
  return entries;
}

}  // namespace penstock::common::file
