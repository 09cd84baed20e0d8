#include "server/model/parameters.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/model/init.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::model {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNever = absl::InfiniteFuture();

ModelConfig Model(Family family, bool tied) {
  return {.family = family,
          .layers = 3,
          .width = 12,
          .heads = 2,
          .kv_heads = family == Family::kLlama ? 1 : 2,
          .head_dim = 6,
          .ffn_width = 20,
          .context = 8,
          .vocab = 17,
          .tied = tied};
}

const LayerRange kWhole{
    .embedding = true, .first_block = 0, .end_block = 3, .head = true};
const LayerRange kFirst{.embedding = true, .first_block = 0, .end_block = 1};
const LayerRange kMiddle{.first_block = 1, .end_block = 3};
const LayerRange kHeadOnly{.first_block = 3, .end_block = 3, .head = true};

class ParametersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, device::reference::CreateReferenceDevice());
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
  }

  std::unique_ptr<ParameterStore> Create(
      const ParameterStore::Options& options) {
    auto store = ParameterStore::Create(*device_, options);
    EXPECT_OK(store.status());
    return *std::move(store);
  }

  void Load(ParameterStore& store, uint64_t seed = 1) {
    ASSERT_OK(store.Load(
        *stream_,
        [seed](const ParameterSpec& spec, absl::Span<float> values) {
          Initialise(seed, spec, values);
          return absl::OkStatus();
        },
        0, kNever));
  }

  // Gives every group of the layer a gradient of `value` everywhere.
  void Contribute(ParameterStore& store, int64_t layer, int groups,
                  float value) {
    for (int g = 0; g < groups; ++g) {
      const LayerParameters parameters = store.OfLayer(layer);
      parameters.Contribute(g);
      device_->ops().Fill(*stream_,
                          {.y = parameters.Gradient(g), .value = value});
    }
  }

  std::map<std::string, std::vector<float>> Weights(
      const ParameterStore& store) {
    std::map<std::string, std::vector<float>> weights;
    EXPECT_OK(store.ReadWeights(
        *stream_,
        [&](const ParameterSpec& spec, absl::Span<const float> values) {
          weights[spec.name].assign(values.begin(), values.end());
          return absl::OkStatus();
        },
        kNever));
    return weights;
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
};

TEST_F(ParametersTest, CanonicalOrderIsThePipelinesAndCountsFromZero) {
  for (const Family family : {Family::kGpt2, Family::kLlama}) {
    for (const bool tied : {false, true}) {
      const auto specs = CanonicalParameters(Model(family, tied));
      for (size_t i = 0; i < specs.size(); ++i) {
        EXPECT_EQ(specs[i].index, i) << specs[i].name;
      }
      EXPECT_EQ(specs.back().name == "lm_head.weight", !tied);
    }
  }
}

TEST_F(ParametersTest, RangesTogetherOwnEveryParameterOnce) {
  for (const bool tied : {false, true}) {
    const ModelConfig model = Model(Family::kLlama, tied);
    std::vector<std::string> names, expected;
    for (const LayerRange& range : {kFirst, kMiddle, kHeadOnly}) {
      for (const auto& spec : OwnedParameters(model, {range})) {
        names.push_back(spec.name);
      }
    }
    for (const auto& spec : CanonicalParameters(model)) {
      expected.push_back(spec.name);
    }
    EXPECT_EQ(names, expected);
  }
}

TEST_F(ParametersTest, AllocatesWhatPredictSays) {
  for (const Family family : {Family::kGpt2, Family::kLlama}) {
    for (const bool tied : {false, true}) {
      for (const OptimizerConfig& optimizer :
           {OptimizerConfig{}, OptimizerConfig{.kind = OptimizerKind::kSgd},
            OptimizerConfig{.kind = OptimizerKind::kSgd, .momentum = 0.9f}}) {
        for (const LayerRange& range : {kWhole, kFirst, kMiddle, kHeadOnly}) {
          const ParameterStore::Options options{.model = Model(family, tied),
                                                .ranges = {range},
                                                .optimizer = optimizer};
          const ParameterMemory memory =
              ParameterStore::Predict(device_->ops(), options);
          const auto store = Create(options);
          const device::MemoryUsage usage = device_->memory();
          const auto held = [&](device::MemoryUse use) {
            return usage.of(use).bytes;
          };
          EXPECT_EQ(held(device::MemoryUse::kParameters),
                    memory.weights + memory.packed + memory.step);
          EXPECT_EQ(held(device::MemoryUse::kGradients), memory.gradients);
          EXPECT_EQ(held(device::MemoryUse::kOptimizer), memory.optimizer);
          EXPECT_EQ(held(device::MemoryUse::kPinnedHost), memory.pinned);
          EXPECT_EQ(usage.device_bytes(), memory.device_bytes());
        }
      }
    }
  }
}

TEST_F(ParametersTest, MembersOfAGroupAreAdjacentRows) {
  const auto store =
      Create({.model = Model(Family::kLlama, true), .ranges = {kWhole}});
  Load(*store);
  const device::Weight qkv = store->OfLayer(1).Weight(1);
  EXPECT_EQ(qkv.master.shape(), device::Shape({12 + 6 + 6, 12}));
  std::vector<float> rows(qkv.master.f32(),
                          qkv.master.f32() + qkv.master.elements());
  const auto weights = Weights(*store);
  std::vector<float> expected;
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const auto& part =
        weights.at(absl::StrCat("model.layers.0.self_attn.", name, ".weight"));
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(rows, expected);
}

TEST_F(ParametersTest, TiedRolesFollowFromTheRanges) {
  const ModelConfig tied = Model(Family::kGpt2, true);
  EXPECT_EQ(Create({.model = tied, .ranges = {kWhole}})->tied_role(),
            TiedRole::kWhole);
  EXPECT_EQ(Create({.model = tied, .ranges = {kFirst, kHeadOnly}})->tied_role(),
            TiedRole::kWhole);
  EXPECT_EQ(Create({.model = tied, .ranges = {kFirst}})->tied_role(),
            TiedRole::kEmbedding);
  EXPECT_EQ(Create({.model = tied, .ranges = {kHeadOnly}})->tied_role(),
            TiedRole::kHead);
  EXPECT_EQ(Create({.model = tied, .ranges = {kMiddle}})->tied_role(),
            TiedRole::kNone);
  EXPECT_EQ(Create({.model = Model(Family::kGpt2, false), .ranges = {kWhole}})
                ->tied_role(),
            TiedRole::kNone);
}

TEST_F(ParametersTest, ATiedHeadsCopyIsHeldButNotOwned) {
  const auto store =
      Create({.model = Model(Family::kGpt2, true), .ranges = {kHeadOnly}});
  std::vector<std::string> asked;
  ASSERT_OK(store->Load(
      *stream_,
      [&](const ParameterSpec& spec, absl::Span<float> values) {
        asked.push_back(spec.name);
        Initialise(1, spec, values);
        return absl::OkStatus();
      },
      0, kNever));
  EXPECT_THAT(asked,
              ElementsAre("transformer.wte.weight", "transformer.ln_f.weight",
                          "transformer.ln_f.bias"));
  std::vector<std::string> owned;
  for (const auto& spec : store->owned()) owned.push_back(spec.name);
  EXPECT_THAT(owned,
              ElementsAre("transformer.ln_f.weight", "transformer.ln_f.bias"));
  ASSERT_OK_AND_ASSIGN(const auto digests, store->Digests(*stream_, kNever));
  EXPECT_EQ(digests.size(), 2);
}

TEST_F(ParametersTest, LoadPassesOnTheSourcesError) {
  const auto store =
      Create({.model = Model(Family::kGpt2, true), .ranges = {kMiddle}});
  EXPECT_THAT(store->Load(
                  *stream_,
                  [](const ParameterSpec& spec, absl::Span<float>) {
                    return absl::DataLossError(spec.name);
                  },
                  0, kNever),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("transformer.h.1.ln_1.weight")));
}

TEST_F(ParametersTest, WeightsThatAreNotFiniteHaveNoDigest) {
  const auto store =
      Create({.model = Model(Family::kLlama, false), .ranges = {kMiddle}});
  const auto load = [&](float broken) {
    return store->Load(
        *stream_,
        [broken](const ParameterSpec& spec, absl::Span<float> values) {
          Initialise(1, spec, values);
          if (spec.name == "model.layers.2.mlp.up_proj.weight") {
            values[values.size() - 1] = broken;
          }
          return absl::OkStatus();
        },
        7, kNever);
  };
  ASSERT_OK(load(3.4e38f));
  EXPECT_OK(store->Digests(*stream_, kNever).status());
  for (const float broken : {NAN, INFINITY, -INFINITY}) {
    ASSERT_OK(load(broken));
    const absl::Status status = store->Digests(*stream_, kNever).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange,
                                 HasSubstr("model.layers.2.mlp.up_proj.weight "
                                           "after step 7")));
    EXPECT_EQ(common::status::Reason(status), "NONFINITE");
  }
}

TEST_F(ParametersTest, TheFirstContributionOfAStepStoresTheOthersAdd) {
  const auto store =
      Create({.model = Model(Family::kGpt2, true), .ranges = {kMiddle}});
  const LayerParameters layer = store->OfLayer(2);
  store->BeginStep();
  EXPECT_EQ(layer.Contribute(0), device::Accumulate::kStore);
  EXPECT_EQ(layer.Contribute(0), device::Accumulate::kAdd);
  EXPECT_EQ(layer.Contribute(1), device::Accumulate::kStore);
  EXPECT_EQ(store->OfLayer(3).Contribute(0), device::Accumulate::kStore);
  // Also what an aborted step has left is stored over.
  store->BeginStep();
  EXPECT_EQ(layer.Contribute(0), device::Accumulate::kStore);
}

TEST_F(ParametersTest, SumSquaresAreOfTheOwnedGradientsInOrder) {
  const auto store =
      Create({.model = Model(Family::kGpt2, true), .ranges = {kHeadOnly}});
  Load(*store);
  store->BeginStep();
  Contribute(*store, 4, 3, 2);
  store->EnqueueSumSquares(*stream_);
  ASSERT_OK(stream_->Synchronize(kNever));
  // Gain and bias of width 12; the copy of the embedding is not reported.
  EXPECT_THAT(store->sum_squares(), ElementsAre(48, 48));
}

TEST_F(ParametersTest, DecayActsOnMatricesOnly) {
  const auto store = Create(
      {.model = Model(Family::kGpt2, true),
       .ranges = {kHeadOnly},
       .optimizer = {.kind = OptimizerKind::kSgd, .weight_decay = 0.5f}});
  Load(*store);
  const std::vector<float> embedding(
      store->OfLayer(4).Weight(2).master.f32(),
      store->OfLayer(4).Weight(2).master.f32() + 17 * 12);
  store->BeginStep();
  Contribute(*store, 4, 3, 0);
  store->Apply(*stream_, {.grad_scale = 1, .learning_rate = 0.5f});
  ASSERT_OK(stream_->Synchronize(kNever));
  EXPECT_EQ(Weights(*store).at("transformer.ln_f.weight"),
            std::vector<float>(12, 1));
  const float* after = store->OfLayer(4).Weight(2).master.f32();
  for (size_t i = 0; i < embedding.size(); ++i) {
    EXPECT_FLOAT_EQ(after[i], 0.75f * embedding[i]);
  }
}

class VersionsTest : public ParametersTest {
 protected:
  void SetUp() override {
    ParametersTest::SetUp();
    store_ =
        Create({.model = Model(Family::kGpt2, true), .ranges = {kHeadOnly}});
    Load(*store_);
  }

  void Apply(float gradient) {
    store_->BeginStep();
    Contribute(*store_, 4, 3, gradient);
    store_->Apply(*stream_, {.grad_scale = 1,
                             .learning_rate = 0.1f,
                             .bias_correction1 = 0.1f,
                             .bias_correction2 = 0.05f});
  }
  void Complete() {
    ASSERT_OK(stream_->Synchronize(kNever));
    store_->Completed();
  }
  void Step(float gradient) {
    Apply(gradient);
    Complete();
  }

  std::unique_ptr<ParameterStore> store_;
};

TEST_F(VersionsTest, AStepCanBeTakenBackAndRedone) {
  Step(1);
  const auto v1 = Weights(*store_);
  Step(-2);
  const auto v2 = Weights(*store_);
  EXPECT_EQ(store_->step(), 2);
  EXPECT_NE(v1, v2);

  ASSERT_OK(store_->ReturnTo(*stream_, 1));
  EXPECT_EQ(store_->step(), 1);
  EXPECT_EQ(Weights(*store_), v1);

  // Weights alone would not do: the moments have to be those of V[1] too.
  Step(-2);
  EXPECT_EQ(store_->step(), 2);
  EXPECT_EQ(Weights(*store_), v2);
}

TEST_F(VersionsTest, OnlyTheTwoNewestVersionsAreHeld) {
  EXPECT_THAT(store_->ReturnTo(*stream_, -1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  Step(1);
  Step(1);
  ASSERT_OK(store_->ReturnTo(*stream_, 2));
  EXPECT_THAT(store_->ReturnTo(*stream_, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("version 0 is not held")));
}

TEST_F(VersionsTest, AnUpdateThatWasNotCompletedIsNoVersion) {
  Step(1);
  const auto v1 = Weights(*store_);
  for (const bool skipped : {false, true}) {
    if (skipped) {
      store_->Skip(*stream_);
    } else {
      Apply(2);
    }
    EXPECT_EQ(store_->step(), 2);
    EXPECT_THAT(store_->ReturnTo(*stream_, 2),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("version 2 is not held: whole are 1")));
    // What it wrote over is lost.
    EXPECT_THAT(store_->ReturnTo(*stream_, 0),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    ASSERT_OK(store_->ReturnTo(*stream_, 1));
    EXPECT_EQ(store_->step(), 1);
    EXPECT_EQ(Weights(*store_), v1);
  }
}

TEST_F(VersionsTest, ReturningPacksTheCurrentVersionToo) {
  ASSERT_OK_AND_ASSIGN(const auto device,
                       penstock::testing::CreateTestDevice("cpu"));
  ASSERT_OK_AND_ASSIGN(const auto stream, device->CreateStream());
  ASSERT_OK_AND_ASSIGN(
      const auto store,
      ParameterStore::Create(*device, {.model = Model(Family::kGpt2, true),
                                       .ranges = {kHeadOnly}}));
  ASSERT_OK(store->Load(
      *stream,
      [](const ParameterSpec& spec, absl::Span<float> values) {
        Initialise(1, spec, values);
        return absl::OkStatus();
      },
      0, kNever));
  const device::Tensor packed = store->OfLayer(4).Weight(2).packed;
  ASSERT_GT(packed.bytes(), 0);
  const std::string before(reinterpret_cast<const char*>(packed.data()),
                           packed.bytes());
  std::memset(packed.data(), 0, packed.bytes() / 2);
  ASSERT_OK(store->ReturnTo(*stream, 0));
  ASSERT_OK(stream->Synchronize(kNever));
  EXPECT_EQ(std::memcmp(packed.data(), before.data(), before.size()), 0);
}

TEST_F(VersionsTest, ASkippedStepChangesNothingButItsNumber) {
  Step(1);
  const auto v1 = Weights(*store_);
  store_->Skip(*stream_);
  Complete();
  EXPECT_EQ(store_->step(), 2);
  EXPECT_EQ(Weights(*store_), v1);
  // The next step continues from the same moments.
  Step(3);
  const auto v3 = Weights(*store_);
  ASSERT_OK(store_->ReturnTo(*stream_, 2));
  EXPECT_EQ(Weights(*store_), v1);
  Step(3);
  EXPECT_EQ(Weights(*store_), v3);
}

TEST_F(VersionsTest, LoadingStartsAfresh) {
  Step(1);
  Load(*store_, 2);
  EXPECT_EQ(store_->step(), 0);
  EXPECT_THAT(store_->ReturnTo(*stream_, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto fresh =
      Create({.model = Model(Family::kGpt2, true), .ranges = {kHeadOnly}});
  Load(*fresh, 2);
  EXPECT_EQ(Weights(*store_), Weights(*fresh));
}

}  // namespace
}  // namespace penstock::server::model
