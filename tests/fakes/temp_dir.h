// A folder of a test's own, gone when the test ends.
#ifndef PENSTOCK_TESTS_FAKES_TEMP_DIR_H_
#define PENSTOCK_TESTS_FAKES_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/string_view.h"
#include "common/log/log.h"

namespace penstock::tests::fakes {

// Thread-compatible.
class TempDir {
 public:
  TempDir() {
    std::string path =
        (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    CHECK(mkdtemp(path.data()) != nullptr) << path;
    path_ = path;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(absl::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  // Writes (or replaces the content of) a file, with its folders; returns its
  // path.
  std::string Write(absl::string_view name, absl::string_view bytes) const {
    const std::string path = Path(name);
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    CHECK(file.good()) << path;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_TEMP_DIR_H_
