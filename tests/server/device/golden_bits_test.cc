// The bits of every op, by numerics id. A change of bits must be noticed: it
// needs a new version in the id (reference/factory.cc, cpu/kernel_table.cc),
// because stages with different bits must not work on one job. Then
//
//   PENSTOCK_REGENERATE_GOLDEN=1 ctest --preset dev -R device_golden
//
// replaces the lines of the ids that this machine can run; the lines of others
// stay.
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "server/device/cpu/factory.h"
#include "server/device/reference/factory.h"
#include "tests/conformance/device/harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device {
namespace {

// FNV-1a, 64 bits, over results in the order in which they are read.
class Hash {
 public:
  void Add(const std::vector<double>& values) {
    for (const double value : values) {
      uint64_t bits = std::bit_cast<uint64_t>(value);
      for (int i = 0; i < 8; ++i, bits >>= 8) {
        hash_ = (hash_ ^ (bits & 255)) * 1099511628211u;
      }
    }
  }
  std::string ToString() const { return absl::StrFormat("%016x", hash_); }

 private:
  uint64_t hash_ = 14695981039346656037u;
};

// Small, with a partial tile, a partial vector and two blocks of depth.
constexpr int64_t kRows = 26, kIn = 300, kOut = 37, kSeq = 13;

std::string LinearHash(Harness& h) {
  Hash hash;
  const Tensor x = h.In(Shape({kRows, kIn}), Random(kRows * kIn, 1));
  const Tensor dy = h.In(Shape({kRows, kOut}), Random(kRows * kOut, 2));
  const Tensor bias = h.In(Shape({kOut}), Random(kOut, 3));
  for (const WeightLayout layout :
       {WeightLayout::kInOut, WeightLayout::kOutIn}) {
    const Weight weight =
        h.PackedWeight(kIn, kOut, layout, Random(kIn * kOut, 4));
    const Tensor y = h.Out(Shape({kRows, kOut}));
    const Tensor dx = h.Out(Shape({kRows, kIn}));
    const Tensor dw = h.InOut(weight.master.shape(), Random(kIn * kOut, 5));
    const Tensor dbias = h.Out(Shape({kOut}));
    h.ops().LinearForward(h.stream(),
                          {.x = x, .weight = weight, .bias = bias, .y = y});
    h.ops().LinearBackwardInput(h.stream(),
                                {.dy = dy, .weight = weight, .dx = dx});
    h.ops().LinearBackwardWeight(h.stream(), {.x = x,
                                              .dy = dy,
                                              .layout = layout,
                                              .dw = dw,
                                              .accumulate = Accumulate::kAdd});
    h.ops().LinearBackwardWeight(
        h.stream(),
        {.x = x, .dy = dy, .layout = layout, .dw = dw, .dbias = dbias});
    for (const Tensor& t : {y, dx, dw, dbias}) hash.Add(h.Read(t));
  }
  return hash.ToString();
}

std::string NormHash(Harness& h) {
  Hash hash;
  const Shape shape({kRows, kOut}), vector({kOut}), rows({kRows});
  const Tensor x = h.In(shape, Random(kRows * kOut, 1));
  const Tensor dy = h.In(shape, Random(kRows * kOut, 2));
  const Tensor gain = h.In(vector, Random(kOut, 3));
  for (const bool centred : {true, false}) {
    const auto optional = [&](const Tensor& t) {
      return centred ? t : Tensor();
    };
    const Tensor bias = optional(h.In(vector, Random(kOut, 4)));
    const Tensor y = h.Out(shape), rstd = h.Out(rows), dx = h.Out(shape);
    const Tensor mean = optional(h.Out(rows)), dgain = h.Out(vector);
    const Tensor dbias = optional(h.Out(vector));
    h.ops().LayerNormForward(h.stream(), {.x = x,
                                          .gain = gain,
                                          .bias = bias,
                                          .y = y,
                                          .mean = mean,
                                          .rstd = rstd});
    h.ops().LayerNormBackwardInput(h.stream(), {.x = x,
                                                .gain = gain,
                                                .mean = mean,
                                                .rstd = rstd,
                                                .dy = dy,
                                                .residual = dy,
                                                .dx = dx});
    h.ops().LayerNormBackwardWeight(h.stream(), {.x = x,
                                                 .mean = mean,
                                                 .rstd = rstd,
                                                 .dy = dy,
                                                 .dgain = dgain,
                                                 .dbias = dbias});
    for (const Tensor& t : {y, rstd, dx, dgain}) hash.Add(h.Read(t));
    if (centred) hash.Add(h.Read(mean));
    if (centred) hash.Add(h.Read(dbias));
  }
  return hash.ToString();
}

std::string AttentionHash(Harness& h) {
  Hash hash;
  const AttentionShape s = {.batch = 2,
                            .seq = 61,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 20,
                            .scale = 0.25f};
  const Shape wide({122, 80}), narrow({122, 40});
  const Tensor q = h.In(wide, Random(122 * 80, 1));
  const Tensor k = h.In(narrow, Random(122 * 40, 2));
  const Tensor v = h.In(narrow, Random(122 * 40, 3));
  const Tensor dy = h.In(wide, Random(122 * 80, 4));
  for (const float rate : {0.0f, 0.1f}) {
    const Dropout dropout = {.rate = rate,
                             .seed = 5,
                             .site = 6,
                             .position = h.InI64(Shape({2}), {7, 8})};
    const Tensor y = h.Out(wide), logsum = h.Out(Shape({2, 4, 61}));
    const Tensor dq = h.Out(wide), dk = h.Out(narrow), dv = h.Out(narrow);
    h.ops().AttentionForward(h.stream(), {.shape = s,
                                          .q = q,
                                          .k = k,
                                          .v = v,
                                          .dropout = dropout,
                                          .y = y,
                                          .logsum = logsum});
    h.ops().AttentionBackward(h.stream(), {.shape = s,
                                           .q = q,
                                           .k = k,
                                           .v = v,
                                           .y = y,
                                           .logsum = logsum,
                                           .dropout = dropout,
                                           .dy = dy,
                                           .dq = dq,
                                           .dk = dk,
                                           .dv = dv});
    for (const Tensor& t : {y, logsum, dq, dk, dv}) hash.Add(h.Read(t));
  }
  return hash.ToString();
}

std::string ElementwiseHash(Harness& h) {
  Hash hash;
  const Shape shape({kRows, kOut}), samples({2, kSeq, kOut});
  const Tensor a = h.In(shape, Random(kRows * kOut, 1, 8));
  const Tensor b = h.In(shape, Random(kRows * kOut, 2));
  const Tensor y = h.Out(shape), slope = h.Out(shape), dropped = h.Out(samples);
  const Tensor dgate = h.Out(shape), dup = h.Out(shape);
  h.ops().GeluForward(h.stream(), {.x = a, .y = y, .slope = slope});
  hash.Add(h.Read(y));
  hash.Add(h.Read(slope));
  h.ops().SwigluForward(h.stream(), {.gate = a, .up = b, .y = y});
  hash.Add(h.Read(y));
  h.ops().SwigluBackward(
      h.stream(), {.gate = a, .up = b, .dy = b, .dgate = dgate, .dup = dup});
  hash.Add(h.Read(dgate));
  hash.Add(h.Read(dup));
  h.ops().Multiply(h.stream(), {.a = a, .b = b, .y = y});
  hash.Add(h.Read(y));
  h.ops().Add(h.stream(), {.a = a, .b = b, .y = y});
  hash.Add(h.Read(y));
  h.ops().ApplyDropout(h.stream(),
                       {.x = a.Reshaped(samples),
                        .dropout = {.rate = 0.3f,
                                    .seed = 1,
                                    .site = 2,
                                    .position = h.InI64(Shape({2}), {3, 4})},
                        .residual = b.Reshaped(samples),
                        .y = dropped});
  hash.Add(h.Read(dropped));
  const Tensor x = h.InOut(Shape({kRows, 36}), Random(kRows * 36, 3));
  h.ops().Rope(h.stream(),
               {.x = x,
                .cosine = h.In(Shape({kSeq, 9}), Random(kSeq * 9, 4)),
                .sine = h.In(Shape({kSeq, 9}), Random(kSeq * 9, 5)),
                .seq = kSeq,
                .head_dim = 18});
  hash.Add(h.Read(x));
  return hash.ToString();
}

std::string LossHash(Harness& h) {
  Hash hash;
  constexpr int64_t kVocab = 259;
  std::vector<int32_t> labels = RandomIds(kRows, 1, kVocab);
  labels[3] = kIgnoredLabel;
  const Tensor logits =
      h.InOut(Shape({kRows, kVocab}), Random(kRows * kVocab, 2, 5));
  const Tensor label_tensor = h.InI32(Shape({kRows}), labels);
  const Tensor logsum = h.Out(Shape({kRows}));
  const Tensor loss = h.Out(Shape({2}), 0, DType::kF64);
  const Tensor valid = h.Out(Shape({2}), 0, DType::kI64);
  h.ops().CrossEntropyForward(h.stream(), {.logits = logits,
                                           .labels = label_tensor,
                                           .seq = kSeq,
                                           .logsum = logsum,
                                           .sequence_loss = loss,
                                           .sequence_valid = valid});
  h.ops().CrossEntropyBackward(
      h.stream(), {.logits = logits, .labels = label_tensor, .logsum = logsum});
  for (const Tensor& t : {logits, logsum, loss, valid}) hash.Add(h.Read(t));
  return hash.ToString();
}

std::string EmbeddingHash(Harness& h) {
  Hash hash;
  const Tensor ids = h.InI32(Shape({2, kSeq}), RandomIds(kRows, 1, 11));
  const Tensor tokens = h.In(Shape({11, kOut}), Random(11 * kOut, 2));
  const Tensor positions = h.In(Shape({kSeq, kOut}), Random(kSeq * kOut, 3));
  const Tensor y = h.Out(Shape({kRows, kOut}));
  const Tensor dtokens = h.Out(Shape({11, kOut}));
  const Tensor dpositions = h.Out(Shape({kSeq, kOut}));
  h.ops().EmbeddingForward(
      h.stream(),
      {.ids = ids, .tokens = tokens, .positions = positions, .y = y});
  h.ops().EmbeddingBackward(
      h.stream(),
      {.ids = ids, .dy = y, .dtokens = dtokens, .dpositions = dpositions});
  for (const Tensor& t : {y, dtokens, dpositions}) hash.Add(h.Read(t));
  return hash.ToString();
}

std::string OptimizerHash(Harness& h) {
  Hash hash;
  constexpr int64_t kSize = 4133;
  const Shape shape({kSize});
  const Tensor scalars = h.In(Shape({4}), {0.125f, 1e-2f, 0.271f, 0.1426f});
  const Tensor g = h.In(shape, Random(kSize, 1));
  const Tensor w = h.In(shape, Random(kSize, 2));
  const Tensor m = h.In(shape, Random(kSize, 3));
  std::vector<float> squares = Random(kSize, 4);
  for (float& value : squares) value *= value;
  const Tensor v = h.In(shape, squares);
  const Tensor ow = h.Out(shape), om = h.Out(shape), ov = h.Out(shape);
  h.ops().Adamw(h.stream(), {.scalars = scalars,
                             .gradient = g,
                             .weight = w,
                             .moment1 = m,
                             .moment2 = v,
                             .next_weight = ow,
                             .next_moment1 = om,
                             .next_moment2 = ov,
                             .weight_decay = 0.1f});
  for (const Tensor& t : {ow, om, ov}) hash.Add(h.Read(t));
  h.ops().Sgd(h.stream(), {.scalars = scalars,
                           .gradient = g,
                           .weight = w,
                           .velocity = m,
                           .next_weight = ow,
                           .next_velocity = om,
                           .momentum = 0.9f,
                           .weight_decay = 0.1f});
  const Tensor sum = h.Out(Shape({1}), 0, DType::kF64);
  h.ops().SumSquares(h.stream(), {.x = g, .sum = sum});
  for (const Tensor& t : {ow, om, sum}) hash.Add(h.Read(t));
  return hash.ToString();
}

// "linear 0123...", one line an op family, after the id and a space.
std::map<std::string, std::string> Hashes(Device& device) {
  const std::pair<const char*, std::string (*)(Harness&)> families[] = {
      {"attention", AttentionHash}, {"elementwise", ElementwiseHash},
      {"embedding", EmbeddingHash}, {"linear", LinearHash},
      {"loss", LossHash},           {"norm", NormHash},
      {"optimizer", OptimizerHash}};
  std::map<std::string, std::string> hashes;
  for (const auto& [name, compute] : families) {
    Harness harness(device);
    hashes[absl::StrCat(device.numerics_id(), " ", name)] = compute(harness);
  }
  return hashes;
}

std::filesystem::path GoldenPath() {
  const char* folder = std::getenv("PENSTOCK_TEST_DATA");
  return std::filesystem::path(folder == nullptr ? "." : folder) /
         "golden_bits.txt";
}

std::map<std::string, std::string> ReadGolden() {
  std::map<std::string, std::string> golden;
  std::ifstream file(GoldenPath());
  std::string line;
  while (std::getline(file, line)) {
    const size_t space = line.rfind(' ');
    if (space != std::string::npos) {
      golden[line.substr(0, space)] = line.substr(space + 1);
    }
  }
  return golden;
}

void ExpectGolden(Device& device) {
  std::map<std::string, std::string> golden = ReadGolden();
  const auto hashes = Hashes(device);
  if (std::getenv("PENSTOCK_REGENERATE_GOLDEN") != nullptr) {
    for (const auto& [key, hash] : hashes) golden[key] = hash;
    std::ofstream file(GoldenPath());
    for (const auto& [key, hash] : golden) file << key << " " << hash << "\n";
    return;
  }
  for (const auto& [key, hash] : hashes) {
    EXPECT_EQ(golden[key], hash)
        << key << ": other bits under the same numerics id";
  }
}

TEST(GoldenBitsTest, Reference) {
  ASSERT_OK_AND_ASSIGN(const auto device, reference::CreateReferenceDevice());
  ExpectGolden(*device);
}

TEST(GoldenBitsTest, CpuOnEachLevelOfThisMachine) {
  for (const cpu::Isa isa : cpu::SupportedIsas()) {
    ASSERT_OK_AND_ASSIGN(const auto device,
                         cpu::CreateCpuDevice({.threads = 2, .max_isa = isa}));
    ExpectGolden(*device);
  }
}

}  // namespace
}  // namespace penstock::server::device
