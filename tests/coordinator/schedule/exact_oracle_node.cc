#include "tests/coordinator/schedule/exact_oracle_node.h"

#include <algorithm>

namespace penstock::coordinator::schedule::oracle {

Counts After(Counts done, int way) {
  if (way == kB) {
    ++done[kI];
    ++done[kW];
  } else {
    ++done[way];
  }
  return done;
}

Pipeline::Pipeline(const OracleSetting& setting)
    : ranks(static_cast<int>(setting.costs.stages.size())),
      micro_batches(setting.micro_batches),
      buffers(setting.send_buffers),
      latency(setting.costs.latency) {
  for (int s = 0; s < ranks; ++s) {
    for (int way = 0; way < kWays; ++way) {
      time[s][way] = setting.costs.stages[s].of(kOps[way]);
    }
    if (!setting.memory.stages.empty()) bytes[s] = setting.memory.stages[s];
    limit[s] = setting.memory.limits.empty()
                   ? std::numeric_limits<int64_t>::max()
                   : setting.memory.limits[s];
    places[s] = setting.places.empty() ? OraclePlaces{.slots = micro_batches,
                                                      .held = micro_batches}
                                       : setting.places[s];
    uses_b[s] = bytes[s].held_until_weight > bytes[s].held_until_input ||
                time[s][kB] < time[s][kI] + time[s][kW];
  }
}

bool Pipeline::Fits(int s, const Counts& done, int way) const {
  if (way == kW || way == kB) return true;
  if (way == kF && done[kF] - done[kW] >= places[s].slots) return false;
  if (way == kI && done[kI] - done[kW] >= places[s].held) return false;
  const int64_t held = (done[kF] - done[kI]) * bytes[s].held_until_input +
                       (done[kI] - done[kW]) * bytes[s].held_until_weight;
  const int64_t more =
      way == kF ? bytes[s].held_until_input
                : std::max<int64_t>(0, bytes[s].held_until_weight -
                                           bytes[s].held_until_input);
  return held + more <= limit[s];
}

bool Pipeline::MayFollow(int s, const Counts& done, int way) const {
  if (way == kB) {
    return uses_b[s] && done[kW] == done[kI] && done[kI] < done[kF];
  }
  const int before = way == kF ? micro_batches : done[way - 1];
  return done[way] < before && Fits(s, done, way);
}

bool Pipeline::MayBeNext(const Node& node, int s, const Counts& at,
                         int way) const {
  return MayFollow(s, at, way) &&
         (at != node.done[s] || (node.not_next[s] >> way & 1) == 0);
}

double Pipeline::StartOf(const Node& node, int s, int way) const {
  const int kind = way == kB ? kI : way;
  const int m = node.done[s][kind];
  double start = node.ready[s];
  const int source = kind == kF ? s - 1 : kind == kI ? s + 1 : -1;
  if (source >= 0 && source < ranks) {
    if (node.done[source][kind] <= m) return kInfinity;
    start = std::max(
        start, node.earliest[source][kind][m] + time[source][kind] + latency);
  }
  if (Sends(s, kind) && m >= buffers) {
    start = std::max(
        start, node.earliest[s][kind][m - buffers] + time[s][kind] + latency);
  }
  return start;
}

bool Pipeline::Sends(int s, int kind) const {
  return (kind == kF && s + 1 < ranks) || (kind == kI && s > 0);
}

}  // namespace penstock::coordinator::schedule::oracle
