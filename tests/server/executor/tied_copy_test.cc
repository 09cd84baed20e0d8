// A tied head on another rank than the embedding works with a copy of it. The
// two must stay the same bits: they are updated apart, each by its own rank,
// from a sum that travels between them.
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/forwarding_transport.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::LowerNamed;
using ::penstock::testing::Pipeline;
using ::penstock::testing::TinyModel;
using server::device::Tensor;
using server::transport::Edge;
using server::transport::EdgeKind;
using server::transport::Transport;
using ::testing::Pointwise;

constexpr int kSteps = 5;
constexpr int64_t kGlobal = 8;
constexpr int kHeadNormGroups = 2;  // gpt2: gain and bias, then the projection.

// Sends zeros in place of the messages of one kind of edge.
class ZeroingTransport final : public tests::fakes::ForwardingTransport {
 public:
  ZeroingTransport(EdgeKind zeroed, std::unique_ptr<Transport> wrapped)
      : ForwardingTransport(std::move(wrapped)), zeroed_(zeroed) {}

  void Send(const Edge& edge, const server::transport::Tag& tag,
            const Tensor& payload, server::device::Stream& after,
            server::device::Event& done) override {
    if (edge.kind != zeroed_) {
      wrapped().Send(edge, tag, payload, after, done);
      return;
    }
    zeros_.resize(payload.elements());
    wrapped().Send(edge, tag,
                   Tensor(zeros_.data(), payload.type(), payload.shape()),
                   after, done);
  }

 private:
  const EdgeKind zeroed_;
  std::vector<float> zeros_;
};

std::vector<float> Values(const Tensor& tensor) {
  EXPECT_TRUE(tensor.contiguous());
  return {tensor.f32(), tensor.f32() + tensor.elements()};
}

struct Trained {
  std::vector<float> embedding;  // The first rank's.
  std::vector<float> copy;       // The last rank's.
  std::string sha256;
};

struct Job {
  std::string schedule = "1f1b";
  int ranks = 2;
  int micro_batches = 4;
};

Trained Train(const Job& job,
              decltype(Pipeline::Options::transport) transport = nullptr) {
  const server::model::ModelConfig model = TinyModel();
  EXPECT_TRUE(model.tied);
  auto pipeline = Pipeline::Create(
      {.program = LowerNamed({.name = job.schedule,
                              .ranks = job.ranks,
                              .micro_batches = job.micro_batches}),
       .assignment = {.model = model,
                      .micro_batch = kGlobal / job.micro_batches},
       .transport = std::move(transport)});
  EXPECT_OK(pipeline.status());
  EXPECT_OK((*pipeline)->Train(kSteps).status());
  Trained trained;
  trained.embedding = Values((*pipeline)->parameters(0).OfLayer(0).Value(0));
  trained.copy = Values((*pipeline)
                            ->parameters(job.ranks - 1)
                            .OfLayer(1 + model.layers)
                            .Value(kHeadNormGroups));
  trained.sha256 = (*pipeline)->WeightsSha256().value();
  EXPECT_EQ(trained.embedding.size(), model.vocab * model.width);
  EXPECT_NE(trained.embedding[0], 0);
  return trained;
}

decltype(Pipeline::Options::transport) Zeroing(EdgeKind kind) {
  return [kind](int, std::unique_ptr<Transport> wrapped) {
    return std::make_unique<ZeroingTransport>(kind, std::move(wrapped));
  };
}

// Schedule, K, M.
using Param = std::tuple<std::string, int, int>;
class TiedCopyTest : public ::testing::TestWithParam<Param> {};

TEST_P(TiedCopyTest, IsTheEmbeddingAfterSomeSteps) {
  const auto& [schedule, ranks, micro_batches] = GetParam();
  const Trained trained = Train(
      {.schedule = schedule, .ranks = ranks, .micro_batches = micro_batches});
  EXPECT_THAT(trained.copy, Pointwise(::testing::Eq(), trained.embedding));
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, TiedCopyTest,
    ::testing::Combine(::testing::Values("naive", "gpipe", "1f1b"),
                       ::testing::Values(2, 3, 4), ::testing::Values(1, 4)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_K",
                          std::get<1>(info.param), "_M",
                          std::get<2>(info.param));
    });

// What the test above would find, and what it would not: bits_test does.
TEST(TiedCopyFaultTest, WithoutTheSumTheCopyDriftsAway) {
  const Trained trained = Train({}, Zeroing(EdgeKind::kTiedSum));
  EXPECT_NE(trained.copy, trained.embedding);
}

TEST(TiedCopyFaultTest, WithoutTheCopysGradientTheWeightsAreOthers) {
  EXPECT_NE(Train({}, Zeroing(EdgeKind::kTiedGradient)).sha256,
            Train({}).sha256);
}

}  // namespace
}  // namespace penstock::server::executor
