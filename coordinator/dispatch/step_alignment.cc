#include "coordinator/dispatch/step_alignment.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;

// A command as its rank measured it, in nanoseconds since the rank's start.
struct Measured {
  int rank = 0;
  int64_t start = 0;
  int64_t end = 0;
};

// What happens to one micro-batch in one stage and goes over edges.
struct Passes {
  std::optional<Measured> forward;
  std::optional<Measured> input_gradient;  // B, or the I of a split one.
};

// By how much a rank's start is later than another's, in nanoseconds.
struct Lateness {
  std::optional<int64_t> least;
  std::optional<int64_t> most;
};

using Bounds = std::map<std::pair<int, int>, Lateness>;  // (a, b), a < b.

void AddMessage(const std::optional<Measured>& producer,
                const std::optional<Measured>& consumer, Bounds& bounds) {
  if (!producer.has_value() || !consumer.has_value()) return;
  const int a = producer->rank, b = consumer->rank;
  if (a == b) return;
  // Start of b + consumer's start >= start of a + producer's end.
  const int64_t later = producer->end - consumer->start;
  Lateness& bound = bounds[std::minmax(a, b)];
  if (a < b) {
    bound.least = std::max(later, bound.least.value_or(later));
  } else {
    bound.most = std::min(-later, bound.most.value_or(-later));
  }
}

Bounds BoundsOf(const std::vector<TimedReport>& reports) {
  std::map<std::pair<int, int>, Passes> passes;  // By (stage, micro-batch).
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    for (const v1::OpTiming& timing : reports[rank].report.timings()) {
      Passes& entry = passes[{timing.stage(), timing.micro_batch()}];
      const Measured measured = {.rank = static_cast<int>(rank),
                                 .start = timing.start_ns(),
                                 .end = timing.end_ns()};
      if (timing.op() == v1::OP_FORWARD) {
        entry.forward = measured;
      } else if (timing.op() != v1::OP_BACKWARD_WEIGHT) {
        entry.input_gradient = measured;
      }
    }
  }
  Bounds bounds;
  for (const auto& [key, entry] : passes) {
    const auto next = passes.find({key.first + 1, key.second});
    if (next == passes.end()) continue;
    AddMessage(entry.forward, next->second.forward, bounds);
    AddMessage(next->second.input_gradient, entry.input_gradient, bounds);
  }
  return bounds;
}

}  // namespace

std::vector<MonotonicTime> AlignStarts(
    const std::vector<TimedReport>& reports) {
  const Bounds bounds = BoundsOf(reports);
  std::vector<MonotonicTime> starts;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    MonotonicTime start = reports[rank].arrived -
                          absl::Nanoseconds(reports[rank].report.span_ns());
    std::optional<MonotonicTime> least, most;
    for (int before = 0; before < static_cast<int>(rank); ++before) {
      const auto it = bounds.find({before, static_cast<int>(rank)});
      if (it == bounds.end()) continue;
      if (it->second.least.has_value()) {
        const auto bound =
            starts[before] + absl::Nanoseconds(*it->second.least);
        least = std::max(bound, least.value_or(bound));
      }
      if (it->second.most.has_value()) {
        const auto bound = starts[before] + absl::Nanoseconds(*it->second.most);
        most = std::min(bound, most.value_or(bound));
      }
    }
    if (least.has_value() && most.has_value() && *least > *most) {
      start = *most + (*least - *most) / 2;
    } else {
      if (most.has_value()) start = std::min(start, *most);
      if (least.has_value()) start = std::max(start, *least);
    }
    starts.push_back(start);
  }
  return starts;
}

}  // namespace penstock::coordinator::dispatch
