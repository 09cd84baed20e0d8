#include "coordinator/planner/device_sizes.h"

#include <algorithm>
#include <cstdint>

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

// The devices that keep more than tensors. Whole ids: another version or
// another table (the digest) may keep something else, and there is no guessing.
struct Row {
  absl::string_view numerics_id;
  KernelSizes sizes;
};
constexpr Row kRows[] = {
    {"cpu-sse4-2-e26bd998", {.lanes = 4, .panel = 8, .kc = 256, .mc = 144}},
    {"cpu-avx2-2-e26bd998", {.lanes = 8, .panel = 16, .kc = 256, .mc = 258}},
    {"cpu-avx512-2-e26bd998", {.lanes = 16, .panel = 32, .kc = 256, .mc = 264}},
};

// A packed factor with n items, each k deep.
int64_t Packed(const KernelSizes& sizes, int64_t k, int64_t n) {
  return Lines(k * RoundUp(n, sizes.panel));
}

int64_t PackedRows(const KernelSizes& sizes) { return sizes.mc * sizes.kc; }

// One head forward or one key/value head backward, whichever is more.
int64_t AttentionFloats(const KernelSizes& sizes, const ModelShape& model,
                        int64_t seq) {
  const int64_t heads = Packed(sizes, model.head_dim, seq);
  const int64_t keys = Packed(sizes, seq, model.head_dim);
  const int64_t block = Packed(sizes, kQueryRows, model.head_dim);
  const int64_t scores = kQueryRows * (RoundUp(seq, sizes.panel) + kLine);
  const int64_t words = Lines(seq + 8 + 4 * sizes.lanes);
  const int64_t forward =
      Lines(PackedRows(sizes)) + heads + keys + scores + words;
  return forward + heads + scores + 2 * block;  // Backward.
}

}  // namespace

std::optional<KernelSizes> KernelSizesOf(absl::string_view numerics_id) {
  for (const Row& row : kRows) {
    if (row.numerics_id == numerics_id) return row.sizes;
  }
  return std::nullopt;
}

PackedBytes PackedBytesOf(absl::string_view numerics_id) {
  const std::optional<KernelSizes> sizes = KernelSizesOf(numerics_id);
  if (!sizes.has_value()) return nullptr;
  return [sizes = *sizes](int64_t in, int64_t out) {
    return (Packed(sizes, in, out) + Packed(sizes, out, in)) * kFloat;
  };
}

ScratchBytes ScratchBytesOf(absl::string_view numerics_id) {
  const std::optional<KernelSizes> sizes = KernelSizesOf(numerics_id);
  if (!sizes.has_value()) return nullptr;
  return [sizes = *sizes](const ModelShape& model, const BatchShape& batch,
                          const RankOps& ops) {
    int64_t shared = 0, each = PackedRows(sizes);
    for (const ParameterGroup& product : ops.products) {
      shared = std::max(shared, Packed(sizes, batch.rows(), product.columns));
    }
    if (ops.head) shared = std::max(shared, kDoubleFloats * batch.rows());
    const int64_t sums = RoundUp(ops.largest_parameter, kSumBlock) / kSumBlock;
    shared = std::max(shared, kDoubleFloats * sums);
    if (ops.blocks) {
      each =
          std::max(each, AttentionFloats(sizes, model, batch.sequence_length));
    }
    return (Lines(shared) + ops.threads * Lines(each)) * kFloat;
  };
}

}  // namespace penstock::coordinator::planner
