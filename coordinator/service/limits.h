// How many calls of each kind the coordinator serves at once.
#ifndef PENSTOCK_COORDINATOR_SERVICE_LIMITS_H_
#define PENSTOCK_COORDINATOR_SERVICE_LIMITS_H_

#include "common/rpc/admission.h"

namespace penstock::coordinator::service {

struct Limits {
  int sessions = 1024;  // Stages.
  int watches = 1024;   // WatchJob streams.
  int calls = 1024;     // Unary, together, beside those that follow.
  int jobs = 64;        // CreateJob: each keeps its request, some may be 4 MiB.
  int plans = 16;       // SimulateSchedule and VerifySchedule: seconds each.
};

// Thread-safe.
struct Admissions {
  explicit Admissions(const Limits& limits)
      : sessions("stage sessions", limits.sessions,
                 "stop stages that no job needs, or use a second cluster"),
        watches("WatchJob streams", limits.watches,
                "end one of them, or ask with GetJob"),
        calls("calls under way", limits.calls, "try again in a moment"),
        jobs("jobs to read and plan", limits.jobs, "try again in a moment"),
        plans("schedules to simulate or verify", limits.plans,
              "try again in a moment") {}

  common::rpc::Admission sessions;
  common::rpc::Admission watches;
  common::rpc::Admission calls;
  common::rpc::Admission jobs;
  common::rpc::Admission plans;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_LIMITS_H_
