// Pages of lists: their size, and a page of stages. Pure.
#ifndef PENSTOCK_COORDINATOR_SERVICE_PAGES_H_
#define PENSTOCK_COORDINATOR_SERVICE_PAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::coordinator::service {

inline constexpr int kDefaultPage = 100;
inline constexpr int kLargestPage = 1000;

// How many a request gets: 0 is the default, more than the largest is that.
// InvalidArgument: fewer than 0.
absl::StatusOr<int> PageSize(int requested);

// The stages after `token`, a name that need not be there any more; "" begins.
// `stages` are in the registry's order, stage-2 before stage-10, and stay so.
// InvalidArgument as PageSize.
absl::StatusOr<v1::ListStagesResponse> PageOfStages(
    std::vector<v1::Stage> stages, absl::string_view token, int requested);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_PAGES_H_
