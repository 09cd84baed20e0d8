#include "coordinator/planner/packed_weights.h"

#include <cstdint>

#include "absl/strings/match.h"

namespace penstock::coordinator::planner {
namespace {

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Columns of a packed panel; 0: not known.
int64_t PanelOf(absl::string_view numerics_id) {
  if (absl::StartsWith(numerics_id, "cpu-sse4-")) return 8;
  if (absl::StartsWith(numerics_id, "cpu-avx2-")) return 16;
  if (absl::StartsWith(numerics_id, "cpu-avx512-")) return 32;
  return 0;
}

}  // namespace

PackedBytes PackedBytesOf(absl::string_view numerics_id) {
  const int64_t panel = PanelOf(numerics_id);
  if (panel == 0) return nullptr;
  return [panel](int64_t in, int64_t out) {
    const int64_t floats = RoundUp(in * RoundUp(out, panel), 16) +
                           RoundUp(out * RoundUp(in, panel), 16);
    return floats * static_cast<int64_t>(sizeof(float));
  };
}

}  // namespace penstock::coordinator::planner
