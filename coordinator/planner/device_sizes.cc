#include "coordinator/planner/device_sizes.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"

namespace penstock::coordinator::planner {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kLine = 16;         // Floats; parts start at lines.
constexpr int64_t kQueryRows = 48;    // Of attention at a time.
constexpr int64_t kSumBlock = 4096;   // Elements of a partial sum of squares.
constexpr int64_t kDoubleFloats = 2;  // An f64 in floats.

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}
int64_t Lines(int64_t floats) { return RoundUp(floats, kLine); }

// What the sizes of a level's kernels follow from (server/device/cpu).
struct Level {
  int64_t lanes = 0;     // Floats of a vector.
  int64_t panel = 0;     // Columns of a packed panel.
  int64_t packed_a = 0;  // Floats of a packed block of rows.

  // A packed factor with n items, each k deep.
  int64_t Packed(int64_t k, int64_t n) const {
    return Lines(k * RoundUp(n, panel));
  }
};

std::optional<Level> LevelOf(absl::string_view numerics_id) {
  if (absl::StartsWith(numerics_id, "cpu-sse4-")) {
    return Level{.lanes = 4, .panel = 8, .packed_a = 144 * 256};
  }
  if (absl::StartsWith(numerics_id, "cpu-avx2-")) {
    return Level{.lanes = 8, .panel = 16, .packed_a = 258 * 256};
  }
  if (absl::StartsWith(numerics_id, "cpu-avx512-")) {
    return Level{.lanes = 16, .panel = 32, .packed_a = 264 * 256};
  }
  return std::nullopt;
}

// One head forward or one key/value head backward, whichever is more.
int64_t AttentionFloats(const Level& level, const ModelShape& model,
                        int64_t seq) {
  const int64_t heads = level.Packed(model.head_dim, seq);
  const int64_t keys = level.Packed(seq, model.head_dim);
  const int64_t block = level.Packed(kQueryRows, model.head_dim);
  const int64_t scores = kQueryRows * (RoundUp(seq, level.panel) + kLine);
  const int64_t words = Lines(seq + 8 + 4 * level.lanes);
  const int64_t forward = Lines(level.packed_a) + heads + keys + scores + words;
  return forward + heads + scores + 2 * block;  // Backward.
}

}  // namespace

PackedBytes PackedBytesOf(absl::string_view numerics_id) {
  const std::optional<Level> level = LevelOf(numerics_id);
  if (!level.has_value()) return nullptr;
  return [level = *level](int64_t in, int64_t out) {
    return (level.Packed(in, out) + level.Packed(out, in)) * kFloat;
  };
}

ScratchBytes ScratchBytesOf(absl::string_view numerics_id) {
  const std::optional<Level> level = LevelOf(numerics_id);
  if (!level.has_value()) return nullptr;
  return [level = *level](const ModelShape& model, const BatchShape& batch,
                          const RankOps& ops) {
    int64_t shared = 0, each = level.packed_a;
    for (const ParameterGroup& product : ops.products) {
      shared = std::max(shared, level.Packed(batch.rows(), product.columns));
    }
    if (ops.head) shared = std::max(shared, kDoubleFloats * batch.rows());
    const int64_t sums = RoundUp(ops.largest_parameter, kSumBlock) / kSumBlock;
    shared = std::max(shared, kDoubleFloats * sums);
    if (ops.blocks) {
      each =
          std::max(each, AttentionFloats(level, model, batch.sequence_length));
    }
    return (Lines(shared) + ops.threads * Lines(each)) * kFloat;
  };
}

}  // namespace penstock::coordinator::planner
