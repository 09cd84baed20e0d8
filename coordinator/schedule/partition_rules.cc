#include "coordinator/schedule/partition_rules.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {

std::optional<std::string> StagesFault(int64_t stages, int64_t blocks) {
  if (stages <= blocks + 2) return std::nullopt;
  return absl::StrCat(stages, " virtual stages, but ", blocks,
                      " blocks + embedding + head fill at most ", blocks + 2);
}

std::vector<PartitionFault> PartitionFaults(absl::Span<const int64_t> partition,
                                            int64_t stages, int64_t blocks) {
  std::vector<PartitionFault> faults;
  if (static_cast<int64_t>(partition.size()) != stages) {
    faults.push_back(
        {.message = absl::StrCat("has ", partition.size(),
                                 " entries, must have one for each of the ",
                                 stages, " virtual stages")});
    return faults;
  }
  bool can_be_summed = true;  // Without an overflow.
  for (size_t i = 0; i < partition.size(); ++i) {
    const bool inside = i > 0 && i + 1 < partition.size();
    if (partition[i] < 0 || partition[i] > blocks) {
      faults.push_back(
          {.item = i,
           .message = absl::StrCat("is ", partition[i],
                                   " blocks, must be from 0 to the model's ",
                                   blocks)});
      can_be_summed = false;
    } else if (inside && partition[i] == 0) {
      faults.push_back({.item = i,
                        .message =
                            "only the first and the last virtual stage may "
                            "have 0 blocks"});
    }
  }
  if (!can_be_summed) return faults;
  const int64_t sum =
      std::accumulate(partition.begin(), partition.end(), int64_t{0});
  if (sum != blocks) {
    faults.push_back(
        {.message = absl::StrCat("its blocks sum to ", sum,
                                 ", must be the model's ", blocks)});
  }
  return faults;
}

}  // namespace penstock::coordinator::schedule
