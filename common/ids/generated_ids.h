// Ids that Penstock makes up: of jobs, and of the incarnations of processes.
#ifndef PENSTOCK_COMMON_IDS_GENERATED_IDS_H_
#define PENSTOCK_COMMON_IDS_GENERATED_IDS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/ids/random.h"

namespace penstock::common::ids {

// "NAME-xxxxx" with 5 uniform letters of [a-z0-9]. The caller makes another
// one where the id is taken. REQUIRES: CheckJobName(name) is OK.
std::string MakeJobId(absl::string_view name, const RandomSource& random);

// A version 4 UUID in its usual text form (RFC 4122): one for each start of a
// process, so that a restarted daemon is told from the one it replaces. Also
// the uid of a job.
std::string MakeUuid(const RandomSource& random);

// Whether `text` has the form that MakeUuid writes.
bool IsUuid(absl::string_view text);

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_GENERATED_IDS_H_
