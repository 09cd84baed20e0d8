// Pages of lists: their size, and what is on them. Pure.
#ifndef PENSTOCK_COORDINATOR_SERVICE_PAGES_H_
#define PENSTOCK_COORDINATOR_SERVICE_PAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/job_service.pb.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::coordinator::service {

inline constexpr int kDefaultPage = 100;
inline constexpr int kLargestPage = 1000;
// Of jobs, which carry their job files and summaries: what a client of gRPC
// takes that says nothing of sizes, with room for the rest of the message.
inline constexpr int64_t kPageBytes = (int64_t{4} << 20) - 4096;

// How many a request gets: 0 is the default, more than the largest is that.
// InvalidArgument: fewer than 0.
absl::StatusOr<int> PageSize(int requested);

// The stages after `token`, a name that need not be there any more; "" begins.
// `stages` are in the registry's order, stage-2 before stage-10, and stay so.
// InvalidArgument as PageSize.
absl::StatusOr<v1::ListStagesResponse> PageOfStages(
    std::vector<v1::Stage> stages, absl::string_view token, int requested);

// The first `size` of `jobs`, or as many as `bytes` have room for, but one at
// least. There is a next page where some are left.
v1::ListJobsResponse PageOfJobs(std::vector<v1::Job> jobs, int size,
                                int64_t bytes = kPageBytes);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_PAGES_H_
