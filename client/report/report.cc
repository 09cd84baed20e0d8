#include "client/report/report.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/report/page.h"
#include "client/report/run_files.h"
#include "common/status/status_macros.h"

namespace penstock::client::report {

absl::Status WriteReport(const std::string& run_directory) {
  ASSIGN_OR_RETURN(const RunFiles files, ReadRunFiles(run_directory));
  const std::string page = Page(files);
  const std::string path = absl::StrCat(run_directory, "/report.html");
  // Under another name first: a reader never sees half of it.
  const std::string temporary = absl::StrCat(path, ".tmp");
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << page;
  out.close();
  if (out.fail() || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno != 0 ? errno : EIO;
    std::remove(temporary.c_str());
    return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace penstock::client::report
