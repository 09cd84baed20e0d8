#include "coordinator/dispatch/shared_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/planner/refusal.h"

namespace penstock::coordinator::dispatch {
namespace {

struct Share {
  int64_t limit = 0;
  int64_t need = 0;
  std::vector<std::string> names;
};

}  // namespace

absl::Status CheckSharedMemory(const Crew& crew,
                               const std::vector<int64_t>& needs) {
  std::map<std::pair<std::string, std::string>, Share> shares;
  for (size_t rank = 0; rank < crew.members.size(); ++rank) {
    const v1::DeviceInfo& device = crew.members[rank].device;
    if (device.memory_bytes() <= 0) continue;
    Share& share = shares[{crew.members[rank].host, device.memory_group()}];
    share.limit = share.names.empty()
                      ? device.memory_bytes()
                      : std::min(share.limit, device.memory_bytes());
    share.need += needs[rank];
    share.names.push_back(crew.members[rank].name);
  }
  for (const auto& [place, share] : shares) {
    if (share.need <= share.limit) continue;
    const auto& [host, group] = place;
    return planner::RefuseMemory(
        "pipeline.memory_limit",
        absl::StrCat(
            "host ", host,
            group.empty() ? "" : absl::StrCat(" (control group ", group, ")"),
            " has ", share.limit, " bytes of memory, but its ",
            share.names.size(), " stages (", absl::StrJoin(share.names, ", "),
            ") need ", share.need, " together, ", share.need - share.limit,
            " more; use more hosts, a smaller micro_batch, or recompute: "
            "full"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::coordinator::dispatch
