#include "client/report/report.h"

#include "absl/strings/str_cat.h"
#include "client/report/page.h"
#include "client/report/run_files.h"
#include "common/file/file.h"
#include "common/ids/result_names.h"
#include "common/status/status_macros.h"

namespace penstock::client::report {

absl::Status WriteReport(const std::string& run_directory) {
  ASSIGN_OR_RETURN(const RunFiles files, ReadRunFiles(run_directory));
  return common::file::ReplaceFile(
      {.path = absl::StrCat(run_directory, "/", common::ids::kReportFile),
       .contents = Page(files)});
}

}  // namespace penstock::client::report
