#include <cmath>

#include "server/device/philox.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct AttentionCase {
  AttentionShape shape;
  float rate = 0;
  bool strided = true;  // q, k, v are columns of one product.
};

AttentionShape MakeShape(int64_t batch, int64_t seq, int64_t heads,
                         int64_t kv_heads, int64_t head_dim) {
  return {.batch = batch,
          .seq = seq,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
}

// Empty, one row, prime, grouped queries, and lengths around tile sizes.
std::vector<AttentionCase> Cases() {
  return {
      {MakeShape(0, 5, 2, 2, 4)},        {MakeShape(1, 1, 1, 1, 1)},
      {MakeShape(2, 7, 3, 3, 5)},        {MakeShape(1, 13, 6, 2, 8), 0, false},
      {MakeShape(2, 33, 4, 1, 16)},      {MakeShape(1, 64, 2, 2, 64)},
      {MakeShape(1, 130, 2, 1, 20)},     {MakeShape(1, 301, 1, 1, 8)},
      {MakeShape(2, 19, 4, 2, 6), 0.3f}, {MakeShape(1, 67, 2, 2, 32), 0.5f}};
}

constexpr uint64_t kSeed = 0x1234567890ABCDEFu;
constexpr int64_t kStep = 3, kSample = 40;
constexpr int32_t kSite = 5;

struct Inputs3 {
  std::vector<float> q, k, v, dy;
};
Inputs3 MakeInputs(const AttentionShape& s, uint32_t seed) {
  const int64_t rows = s.batch * s.seq;
  return {Random(rows * s.heads * s.head_dim, seed, 2),
          Random(rows * s.kv_heads * s.head_dim, seed + 1, 2),
          Random(rows * s.kv_heads * s.head_dim, seed + 2),
          Random(rows * s.heads * s.head_dim, seed + 3)};
}

// The whole of attention in f64.
struct Oracle {
  std::vector<double> y, logsum, dq, dk, dv;

  Oracle(const AttentionCase& c, const Inputs3& in) {
    const AttentionShape& s = c.shape;
    const int64_t qw = s.heads * s.head_dim, kw = s.kv_heads * s.head_dim;
    y.resize(in.q.size());
    dq.resize(in.q.size());
    dk.resize(in.k.size());
    dv.resize(in.k.size());
    logsum.resize(s.batch * s.heads * s.seq);
    const uint32_t threshold = KeepThreshold(c.rate);
    for (int64_t b = 0; b < s.batch; ++b) {
      const DropoutWords words(
          {.seed = kSeed, .step = kStep, .sample = kSample + b, .site = kSite});
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t kv = h * s.kv_heads / s.heads;
        for (int64_t tq = 0; tq < s.seq; ++tq) {
          const int64_t qi = (b * s.seq + tq) * qw + h * s.head_dim;
          const auto ki = [&](int64_t t) {
            return (b * s.seq + t) * kw + kv * s.head_dim;
          };
          std::vector<double> p(tq + 1), f(tq + 1), dp(tq + 1);
          double sum = 0;
          for (int64_t t = 0; t <= tq; ++t) {
            double score = 0;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              score += double{in.q[qi + d]} * in.k[ki(t) + d];
            }
            p[t] = std::exp(score * s.scale);
            sum += p[t];
          }
          logsum[(b * s.heads + h) * s.seq + tq] = std::log(sum);
          double total = 0;
          for (int64_t t = 0; t <= tq; ++t) {
            p[t] /= sum;
            const bool kept =
                Kept(words.Word((h * s.seq + tq) * s.seq + t), threshold);
            f[t] = kept ? 1 / (1 - double{c.rate}) : 0;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              y[qi + d] += p[t] * f[t] * in.v[ki(t) + d];
              dv[ki(t) + d] += p[t] * f[t] * in.dy[qi + d];
              dp[t] += f[t] * in.dy[qi + d] * in.v[ki(t) + d];
            }
            total += p[t] * dp[t];
          }
          for (int64_t t = 0; t <= tq; ++t) {
            const double ds = p[t] * (dp[t] - total) * s.scale;
            for (int64_t d = 0; d < s.head_dim; ++d) {
              dq[qi + d] += ds * in.k[ki(t) + d];
              dk[ki(t) + d] += ds * in.q[qi + d];
            }
          }
        }
      }
    }
  }
};

struct AttentionRun {
  Tensor y, logsum, dq, dk, dv;
};

Dropout MakeDropout(Harness& h, float rate) {
  return {
      .rate = rate,
      .seed = kSeed,
      .site = kSite,
      .position = rate > 0 ? h.InI64(Shape({2}), {kStep, kSample}) : Tensor()};
}

// Where the gradients go: to places of their own, or over q, k and v.
enum class Place { kApart, kInPlace };

AttentionRun RunAttention(Harness& h, const AttentionCase& c, const Inputs3& in,
                          Place gradients = Place::kApart) {
  const AttentionShape& s = c.shape;
  const Shape qs({s.batch * s.seq, s.heads * s.head_dim});
  const Shape ks({s.batch * s.seq, s.kv_heads * s.head_dim});
  const int64_t stride =
      c.strided ? (s.heads + 2 * s.kv_heads) * s.head_dim + 3 : 0;
  const bool in_place = gradients == Place::kInPlace;
  const auto input = [&](const Shape& shape, const std::vector<float>& values) {
    return in_place ? h.InOut(shape, values, stride)
                    : h.In(shape, values, stride);
  };
  const Tensor q = input(qs, in.q), k = input(ks, in.k), v = input(ks, in.v);
  const Tensor dy = h.In(qs, in.dy);
  const Dropout dropout = MakeDropout(h, c.rate);
  const AttentionRun run{.y = h.Out(qs),
                         .logsum = h.Out(Shape({s.batch, s.heads, s.seq})),
                         .dq = in_place ? q : h.Out(qs, stride),
                         .dk = in_place ? k : h.Out(ks, stride),
                         .dv = in_place ? v : h.Out(ks, stride)};
  h.ops().AttentionForward(h.stream(), {.shape = s,
                                        .q = q,
                                        .k = k,
                                        .v = v,
                                        .dropout = dropout,
                                        .y = run.y,
                                        .logsum = run.logsum});
  h.ops().AttentionBackward(h.stream(), {.shape = s,
                                         .q = q,
                                         .k = k,
                                         .v = v,
                                         .y = run.y,
                                         .logsum = run.logsum,
                                         .dropout = dropout,
                                         .dy = dy,
                                         .dq = run.dq,
                                         .dk = run.dk,
                                         .dv = run.dv});
  return run;
}

TEST_P(DeviceTest, AttentionForwardAndBackward) {
  for (const AttentionCase& c : Cases()) {
    SCOPED_TRACE(::testing::Message() << c.shape.seq << " x " << c.shape.heads
                                      << " x " << c.shape.head_dim);
    const Inputs3 in = MakeInputs(c.shape, 1);
    const Oracle oracle(c, in);
    CheckOp(
        [&](Harness& h) -> Outputs {
          const AttentionRun run = RunAttention(h, c, in);
          return {{"y", h.Read(run.y)},
                  {"logsum", h.Read(run.logsum)},
                  {"dq", h.Read(run.dq)},
                  {"dk", h.Read(run.dk)},
                  {"dv", h.Read(run.dv)}};
        },
        {{"y", oracle.y},
         {"logsum", oracle.logsum},
         {"dq", oracle.dq},
         {"dk", oracle.dk},
         {"dv", oracle.dv}},
        1e-5);
  }
}

TEST_P(DeviceTest, AttentionGradientsMayReplaceWhatTheyAreOf) {
  for (const AttentionCase& c : Cases()) {
    SCOPED_TRACE(::testing::Message() << c.shape.seq << " x " << c.shape.heads
                                      << " x " << c.shape.head_dim);
    const Inputs3 in = MakeInputs(c.shape, 1);
    Harness h(device());
    const AttentionRun apart = RunAttention(h, c, in);
    const AttentionRun over = RunAttention(h, c, in, Place::kInPlace);
    EXPECT_EQ(h.Read(over.dq), h.Read(apart.dq));
    EXPECT_EQ(h.Read(over.dk), h.Read(apart.dk));
    EXPECT_EQ(h.Read(over.dv), h.Read(apart.dv));
  }
}

TEST_P(DeviceTest, AttentionOfLargeScoresIsFinite) {
  const AttentionCase c = {MakeShape(1, 9, 1, 1, 4)};
  Inputs3 in = MakeInputs(c.shape, 1);
  for (float& q : in.q) q *= 300;
  CheckBits([&](Harness& h) -> Outputs {
    const AttentionRun run = RunAttention(h, c, in);
    const std::vector<double> y = h.Read(run.y);
    for (const double value : y) EXPECT_TRUE(std::abs(value) <= 1) << value;
    const std::vector<double> dq = h.Read(run.dq);
    for (const double value : dq) EXPECT_TRUE(std::isfinite(value));
    return {{"y", y}, {"dq", dq}};
  });
}

// A sequence's results depend on nothing but the sequence.
TEST_P(DeviceTest, AttentionOfASequenceIsTheSameInAnyBatch) {
  const AttentionCase two = {MakeShape(2, 37, 2, 1, 16), 0.25f};
  AttentionCase one = two;
  one.shape.batch = 1;
  const Inputs3 in = MakeInputs(two.shape, 1);
  const auto second_half = [](const std::vector<float>& values) {
    return std::vector<float>(values.begin() + values.size() / 2, values.end());
  };
  const Inputs3 half = {second_half(in.q), second_half(in.k), second_half(in.v),
                        second_half(in.dy)};
  Harness h(device());
  const AttentionRun both = RunAttention(h, two, in);
  // The second sequence alone: sample kSample + 1.
  const Shape qs({37, 2 * 16}), ks({37, 16});
  const Tensor y = h.Out(qs), logsum = h.Out(Shape({1, 2, 37}));
  Dropout dropout = MakeDropout(h, 0.25f);
  dropout.position = h.InI64(Shape({2}), {kStep, kSample + 1});
  h.ops().AttentionForward(h.stream(), {.shape = one.shape,
                                        .q = h.In(qs, half.q),
                                        .k = h.In(ks, half.k),
                                        .v = h.In(ks, half.v),
                                        .dropout = dropout,
                                        .y = y,
                                        .logsum = logsum});
  const std::vector<double> expected = h.Read(both.y);
  EXPECT_EQ(h.Read(y),
            std::vector<double>(expected.begin() + expected.size() / 2,
                                expected.end()));
}

TEST_P(DeviceTest, AttentionGradients) {
  for (const float rate : {0.0f, 0.4f}) {
    const AttentionCase c = {MakeShape(2, 11, 4, 2, 6), rate};
    const AttentionShape& s = c.shape;
    const Inputs3 start = MakeInputs(s, 1);
    const auto run = [&](Harness& h, const Inputs& in,
                         const std::vector<float>& dy) {
      return RunAttention(h, c, {in[0], in[1], in[2], dy});
    };
    CheckGradient(
        {.inputs = {start.q, start.k, start.v},
         .forward =
             [&](Harness& h, const Inputs& in) {
               return h.Read(run(h, in, start.dy).y);
             },
         .backward =
             [&](Harness& h, const Inputs& in, const std::vector<float>& dy) {
               const AttentionRun result = run(h, in, dy);
               return Gradients{h.Read(result.dq), h.Read(result.dk),
                                h.Read(result.dv)};
             }});
  }
}

}  // namespace
}  // namespace penstock::server::device
