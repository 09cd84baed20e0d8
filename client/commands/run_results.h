// The results of a `penstock run`, at its end: what joins them in the run
// directory, and what of them is shown.
#ifndef PENSTOCK_CLIENT_COMMANDS_RUN_RESULTS_H_
#define PENSTOCK_CLIENT_COMMANDS_RUN_RESULTS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/local_cluster.h"
#include "client/run_directory.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client::commands {

// Thread-compatible.
class RunResults {
 public:
  enum class Format { kTable, kJson };

  // Borrows `directory`.
  RunResults(const RunDirectory& directory, Format format)
      : directory_(directory), format_(format) {}

  // The coordinator's log and the report join the others. Shows nothing.
  void Complete(const LocalCluster& cluster);

  // On stderr: what could not be written or read, here and in Complete(), each
  // once. On stdout: summary.json as it is, or its table and where the report
  // is; nothing where the job came to no summary. After Complete().
  void Print(const v1::Job& job);

 private:
  std::string PathOf(absl::string_view name) const;
  // summary.json's, or what was to be in it; "": there is none.
  std::string SummaryText(const v1::Job& job);
  void Complain(const absl::Status& status);

  const RunDirectory& directory_;
  const Format format_;
  absl::Status log_, report_;  // Complete()'s.
  std::set<std::string> complaints_;
};

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_RUN_RESULTS_H_
