#include "common/process/daemon.h"

#include <cstdio>

#include "common/process/signals.h"
#include "common/sync/lock_order.h"

namespace penstock::common::process {

absl::Status BeginDaemon(const DaemonOptions& options) {
  BlockSignals();
  sync::SkipLockOrderChecks();
  log::Configure({.format = options.log_format == "json" ? log::Format::kJson
                                                         : log::Format::kText,
                  .minimum = options.log_level,
                  .process = options.log_name});
  return options.parent == 0 ? absl::OkStatus() : DieWithParent(options.parent);
}

int Refuse(absl::string_view program, const absl::Status& why) {
  std::fprintf(stderr, "%s: %s\n", std::string(program).c_str(),
               std::string(why.message()).c_str());
  return kBadConfiguration;
}

}  // namespace penstock::common::process
