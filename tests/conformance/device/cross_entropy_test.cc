#include <cmath>

#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Size {
  int64_t batch, seq, vocab;
};
constexpr Size kSizes[] = {{0, 3, 5},  {1, 1, 1},   {2, 3, 2},
                           {3, 7, 13}, {2, 8, 257}, {2, 4, 4099}};

// Every third row is ignored, and all of the second sequence.
std::vector<int32_t> Labels(const Size& s) {
  std::vector<int32_t> labels = RandomIds(s.batch * s.seq, 2, s.vocab);
  for (size_t r = 0; r < labels.size(); ++r) {
    if (r % 3 == 1 || static_cast<int64_t>(r) / s.seq == 1) {
      labels[r] = kIgnoredLabel;
    }
  }
  return labels;
}

struct Oracle {
  std::vector<double> logsum, loss, valid, gradient;

  Oracle(const Size& s, const std::vector<float>& logits,
         const std::vector<int32_t>& labels)
      : logsum(s.batch * s.seq),
        loss(s.batch),
        valid(s.batch),
        gradient(logits.size()) {
    for (int64_t r = 0; r < s.batch * s.seq; ++r) {
      const float* row = logits.data() + r * s.vocab;
      double sum = 0;
      for (int64_t i = 0; i < s.vocab; ++i) sum += std::exp(double{row[i]});
      logsum[r] = std::log(sum);
      if (labels[r] == kIgnoredLabel) continue;
      loss[r / s.seq] += logsum[r] - row[labels[r]];
      valid[r / s.seq] += 1;
      for (int64_t i = 0; i < s.vocab; ++i) {
        gradient[r * s.vocab + i] =
            std::exp(double{row[i]}) / sum - (i == labels[r] ? 1 : 0);
      }
    }
  }
};

struct LossRun {
  Tensor logits, logsum, loss, valid;
};
LossRun RunForward(Harness& h, const Size& s, const std::vector<float>& logits,
                   const std::vector<int32_t>& labels,
                   const Tensor& label_tensor) {
  const LossRun run{
      .logits = h.InOut(Shape({s.batch * s.seq, s.vocab}), logits),
      .logsum = h.Out(Shape({s.batch * s.seq})),
      .loss = h.Out(Shape({s.batch}), 0, DType::kF64),
      .valid = h.Out(Shape({s.batch}), 0, DType::kI64),
  };
  EXPECT_EQ(labels.size(), static_cast<size_t>(label_tensor.elements()));
  h.ops().CrossEntropyForward(h.stream(), {.logits = run.logits,
                                           .labels = label_tensor,
                                           .seq = s.seq,
                                           .logsum = run.logsum,
                                           .sequence_loss = run.loss,
                                           .sequence_valid = run.valid});
  return run;
}

TEST_P(DeviceTest, CrossEntropyForwardAndBackward) {
  for (const Size& s : kSizes) {
    SCOPED_TRACE(s.vocab);
    const auto logits = Random(s.batch * s.seq * s.vocab, 1, 5);
    const std::vector<int32_t> labels = Labels(s);
    const Oracle oracle(s, logits, labels);
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Tensor label_tensor = h.InI32(Shape({s.batch * s.seq}), labels);
          const LossRun run = RunForward(h, s, logits, labels, label_tensor);
          // Forward leaves the logits alone.
          const std::vector<double> same = h.Read(run.logits);
          EXPECT_EQ(std::vector<float>(same.begin(), same.end()), logits);
          h.ops().CrossEntropyBackward(h.stream(), {.logits = run.logits,
                                                    .labels = label_tensor,
                                                    .logsum = run.logsum});
          return {{"logsum", h.Read(run.logsum)},
                  {"loss", h.Read(run.loss)},
                  {"valid", h.Read(run.valid)},
                  {"dlogits", h.Read(run.logits)}};
        },
        {{"logsum", oracle.logsum},
         {"loss", oracle.loss},
         {"valid", oracle.valid},
         {"dlogits", oracle.gradient}},
        2e-6);
  }
}

TEST_P(DeviceTest, CrossEntropyOfIgnoredRowsIsExactlyZero) {
  const Size s = {.batch = 2, .seq = 3, .vocab = 17};
  const std::vector<int32_t> labels(6, kIgnoredLabel);
  Harness h(device());
  const Tensor label_tensor = h.InI32(Shape({6}), labels);
  const LossRun run = RunForward(h, s, Random(6 * 17, 1), labels, label_tensor);
  h.ops().CrossEntropyBackward(
      h.stream(),
      {.logits = run.logits, .labels = label_tensor, .logsum = run.logsum});
  EXPECT_EQ(h.Read(run.loss), std::vector<double>(2, 0));
  EXPECT_EQ(h.Read(run.valid), std::vector<double>(2, 0));
  EXPECT_EQ(h.Read(run.logits), std::vector<double>(6 * 17, 0));
}

TEST_P(DeviceTest, CrossEntropyOfLargeLogitsIsFinite) {
  const Size s = {.batch = 1, .seq = 1, .vocab = 3};
  Harness h(device());
  const Tensor label_tensor = h.InI32(Shape({1}), {1});
  const LossRun run = RunForward(h, s, {1e4f, -1e4f, 0}, {1}, label_tensor);
  EXPECT_NEAR(h.Read(run.loss)[0], 2e4, 1e-2);
}

TEST_P(DeviceTest, CrossEntropyGradient) {
  const Size s = {.batch = 2, .seq = 4, .vocab = 11};
  const std::vector<int32_t> labels = Labels(s);
  // The loss of all sequences, each weighted 1: dy is not used.
  const auto logits = Random(8 * 11, 1, 2);
  Harness h(device());
  const auto loss = [&](const std::vector<float>& values) {
    const Tensor label_tensor = h.InI32(Shape({8}), labels);
    const auto losses =
        h.Read(RunForward(h, s, values, labels, label_tensor).loss);
    return losses[0] + losses[1];
  };
  const Tensor label_tensor = h.InI32(Shape({8}), labels);
  const LossRun run = RunForward(h, s, logits, labels, label_tensor);
  h.ops().CrossEntropyBackward(
      h.stream(),
      {.logits = run.logits, .labels = label_tensor, .logsum = run.logsum});
  const auto gradient = h.Read(run.logits);
  for (size_t i = 0; i < logits.size(); ++i) {
    auto plus = logits, minus = logits;
    plus[i] += 1e-2f;
    minus[i] -= 1e-2f;
    EXPECT_NEAR(gradient[i],
                (loss(plus) - loss(minus)) / (double{plus[i]} - minus[i]), 1e-4)
        << i;
  }
}

}  // namespace
}  // namespace penstock::server::device
