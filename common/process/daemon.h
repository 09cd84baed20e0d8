// How a daemon's main() begins, with the flags that all daemons have, and how
// it refuses to. For main.cc only.
#ifndef PENSTOCK_COMMON_PROCESS_DAEMON_H_
#define PENSTOCK_COMMON_PROCESS_DAEMON_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::common::process {

// "penstock-stage 0.1.0 (5dc23ba51d2e)": what --version prints.
std::string VersionText(absl::string_view program);

struct DaemonFlags {
  std::string log_format = "text";
  std::string log_level = "info";
  pid_t die_with_parent = 0;  // To end with; 0: none.
};

// What is wrong with the value of such a flag; empty: nothing.
std::string LogFormatFault(const std::string& value);
std::string LogLevelFault(const std::string& value);

// Adds them to `app`, a CLI::App named after its program: --version,
// --log-format, --log-level and --die-with-parent. `flags` is filled by
// app.parse(). A template, so that CLI11 stays in main.cc.
template <typename App>
void AddDaemonFlags(App& app, DaemonFlags& flags) {
  app.set_version_flag("--version", VersionText(app.get_name()));
  app.add_option("--log-format", flags.log_format, "text or json")
      ->check(LogFormatFault)
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level,
                 "Least severity that is logged: info, warning or error")
      ->check(LogLevelFault)
      ->capture_default_str();
  app.add_option("--die-with-parent", flags.die_with_parent,
                 "End when this process, our parent, ends");
}

// BlockSignals(), SkipLockOrderChecks(), the log, RaiseDescriptorLimit(),
// DieWithParent(). Call before any thread starts. `log_name` stands in each log
// line: "coordinator", "stage-2". Errors as those of the last two.
absl::Status BeginDaemon(const std::string& log_name, const DaemonFlags& flags);

// Flags or the configuration are wrong; nothing was started.
inline constexpr int kBadConfiguration = 2;

// Says on stderr why `program` does not start; returns kBadConfiguration.
int Refuse(absl::string_view program, const absl::Status& why);

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_DAEMON_H_
