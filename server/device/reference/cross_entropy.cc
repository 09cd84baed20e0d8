#include "server/device/reference/cross_entropy.h"

#include <algorithm>

#include "common/math/elementary.h"

namespace penstock::server::device::reference {

using common::math::Exp;
using common::math::Log;

void CrossEntropyForward(const CrossEntropyForwardArgs& args) {
  const int64_t rows = args.logits.rows(), vocab = args.logits.columns();
  const int64_t batch = args.sequence_loss.elements();
  std::fill_n(args.sequence_loss.f64(), batch, 0.0);
  std::fill_n(args.sequence_valid.i64(), batch, 0);
  for (int64_t r = 0; r < rows; ++r) {
    const float* logits = args.logits.f32() + r * vocab;
    const double max = *std::max_element(logits, logits + vocab);
    double sum = 0;
    for (int64_t i = 0; i < vocab; ++i) sum += Exp(logits[i] - max);
    const double log_sum = Log(sum);
    args.logsum.f32()[r] = static_cast<float>(max + log_sum);
    const int32_t label = args.labels.i32()[r];
    if (label == kIgnoredLabel) continue;
    args.sequence_loss.f64()[r / args.seq] += max - logits[label] + log_sum;
    args.sequence_valid.i64()[r / args.seq] += 1;
  }
}

void CrossEntropyBackward(const CrossEntropyBackwardArgs& args) {
  const int64_t rows = args.logits.rows(), vocab = args.logits.columns();
  for (int64_t r = 0; r < rows; ++r) {
    float* row = args.logits.f32() + r * vocab;
    const int32_t label = args.labels.i32()[r];
    if (label == kIgnoredLabel) {
      std::fill_n(row, vocab, 0.0f);
      continue;
    }
    const double logsum = args.logsum.f32()[r];
    for (int64_t i = 0; i < vocab; ++i) {
      row[i] = static_cast<float>(Exp(row[i] - logsum));
    }
    row[label] -= 1;
  }
}

}  // namespace penstock::server::device::reference
