#include "common/process/daemon.h"

#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/process/build_info.h"
#include "common/process/descriptors.h"
#include "common/process/signals.h"
#include "common/sync/lock_order.h"

namespace penstock::common::process {

namespace {

std::optional<log::Format> FormatOf(absl::string_view name) {
  if (name == "text") return log::Format::kText;
  if (name == "json") return log::Format::kJson;
  return std::nullopt;
}

std::optional<log::Severity> LevelOf(absl::string_view name) {
  if (name == "info") return log::Severity::kInfo;
  if (name == "warning") return log::Severity::kWarning;
  if (name == "error") return log::Severity::kError;
  return std::nullopt;
}

}  // namespace

std::string VersionText(absl::string_view program) {
  return absl::StrCat(program, " ", kVersion, " (", kBuild, ")");
}

std::string LogFormatFault(const std::string& value) {
  if (FormatOf(value).has_value()) return "";
  return absl::StrCat("'", value, "' is neither text nor json");
}

std::string LogLevelFault(const std::string& value) {
  if (LevelOf(value).has_value()) return "";
  return absl::StrCat("'", value, "' is none of info, warning, error");
}

absl::Status BeginDaemon(const std::string& log_name,
                         const DaemonFlags& flags) {
  BlockSignals();
  sync::SkipLockOrderChecks();
  log::Configure({.format = FormatOf(flags.log_format).value(),
                  .minimum = LevelOf(flags.log_level).value(),
                  .process = log_name});
  if (const absl::Status enough = RaiseDescriptorLimit(); !enough.ok()) {
    return enough;
  }
  return flags.die_with_parent == 0 ? absl::OkStatus()
                                    : DieWithParent(flags.die_with_parent);
}

int Refuse(absl::string_view program, const absl::Status& why) {
  std::fprintf(stderr, "%s: %s\n", std::string(program).c_str(),
               std::string(why.message()).c_str());
  return kBadConfiguration;
}

}  // namespace penstock::common::process
