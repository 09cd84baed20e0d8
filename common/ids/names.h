// Which names users may give, checked the same way by all three programs.
#ifndef PENSTOCK_COMMON_IDS_NAMES_H_
#define PENSTOCK_COMMON_IDS_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::common::ids {

// Job names, and pool names.
inline constexpr int kMaxJobNameBytes = 40;
inline constexpr absl::string_view kJobNamePattern =
    "[a-z]([a-z0-9-]{0,38}[a-z0-9])?";
static_assert(kMaxJobNameBytes == 1 + 38 + 1);

// Ids of jobs: the same letters, long enough for NAME-xxxxx.
inline constexpr int kMaxJobIdBytes = kMaxJobNameBytes + 6;

// Stage names (by default HOSTNAME-DEVICE): [a-z0-9]([a-z0-9.-]*[a-z0-9])?
inline constexpr int kMaxStageNameBytes = 128;

// InvalidArgument quoting the name and the rule that it breaks.
absl::Status CheckJobName(absl::string_view name);
absl::Status CheckJobId(absl::string_view id);
absl::Status CheckStageName(absl::string_view name);
absl::Status CheckPoolName(absl::string_view name);

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_NAMES_H_
