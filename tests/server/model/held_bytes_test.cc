// Nothing is held longer than it is read: line by line of a micro-batch's
// memory, whether the results of what is yet to come are NaN when the line is.
// All tensors of these shapes are whole lines of 64 bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/model/chunk.h"
#include "server/model/init.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::model {
namespace {

using device::Buffer;
using device::DType;
using device::MemoryUse;
using device::Shape;
using device::Tensor;

const absl::Time kNever = absl::InfiniteFuture();
constexpr int64_t kLine = 64;
constexpr BatchShape kShape{.batch = 2, .seq = 8};
constexpr int64_t kHeads = 2;
// Lines of the logarithms of the softmaxes' sums.
constexpr int64_t kBlockLogsum = kShape.batch * kHeads * kShape.seq * 4 / kLine;
constexpr int64_t kHeadLogsum = kShape.batch * kShape.seq * 4 / kLine;

struct HeldCase {
  std::string name;
  Family family = Family::kGpt2;
  double dropout = 0;
  LayerRange range;
  Recompute recompute = Recompute::kNone;

  // I's only: nothing replaces them, and 1 / (16 head_dim) of a block's bytes
  // are not worth a place of their own.
  int64_t logsums() const {
    return (range.end_block - range.first_block) * kBlockLogsum +
           (range.head ? kHeadLogsum : 0);
  }
};

class HeldBytesTest : public ::testing::TestWithParam<HeldCase> {
 protected:
  void SetUp() override {
    const HeldCase& c = GetParam();
    const ModelConfig model = {.family = c.family,
                               .layers = 3,
                               .width = 16,
                               .heads = kHeads,
                               .kv_heads = c.family == Family::kLlama ? 1 : 2,
                               .head_dim = 8,
                               .ffn_width = 32,
                               .context = 8,
                               .vocab = 32,
                               .tied = false,
                               .dropout = c.dropout,
                               .init_std = 0.2};
    ASSERT_OK_AND_ASSIGN(device_, device::reference::CreateReferenceDevice());
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(parameters_,
                         ParameterStore::Create(
                             *device_, {.model = model, .ranges = {c.range}}));
    ASSERT_OK(parameters_->Load(
        *stream_,
        [](const ParameterSpec& spec, absl::Span<float> values) {
          Initialise(1, spec, values);
          return absl::OkStatus();
        },
        0, kNever));
    ASSERT_OK_AND_ASSIGN(chunk_, Chunk::Create(*device_, *stream_, *parameters_,
                                               {.model = model,
                                                .range = c.range,
                                                .shape = kShape,
                                                .recompute = c.recompute},
                                               kNever));
    const ChunkMemory& memory = chunk_->memory();
    slot_ = Allocate(memory.slot);
    held_ = Allocate(memory.held);
    workspace_ = Allocate(memory.workspace);
    output_ = Allocate(memory.boundary);
    output_gradient_ = Allocate(memory.boundary);
    input_gradient_ = Allocate(memory.boundary);
    losses_ = Allocate(kShape.batch * 16);
  }

  std::unique_ptr<Buffer> Allocate(int64_t bytes) {
    auto buffer = device_->Allocate(bytes, MemoryUse::kWorkspace);
    EXPECT_OK(buffer.status());
    return *std::move(buffer);
  }

  Tensor Boundary(const Buffer& buffer) const {
    return Tensor(buffer.data(), DType::kF32, chunk_->boundary_shape());
  }
  void FillWaves(const Tensor& tensor) const {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.f32()[i] = static_cast<float>(std::sin(0.7 * i + 0.1));
    }
  }

  void Forward() {
    std::byte* const slot = slot_->data();
    const auto counted = [](const Tensor& tensor) {
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        tensor.i32()[i] = static_cast<int32_t>((5 * i + 3) % 32);
      }
    };
    chunk_->Position(slot).i64()[0] = 1;
    chunk_->Position(slot).i64()[1] = 0;
    const bool head = chunk_->has_head();
    if (chunk_->has_embedding()) counted(chunk_->Ids(slot));
    if (head) counted(chunk_->Labels(slot));
    if (!chunk_->has_embedding()) FillWaves(chunk_->Input(slot));
    Chunk::ForwardArgs args{.slot = slot, .workspace = workspace_->data()};
    if (head) {
      const Shape batch({kShape.batch});
      args.sequence_loss = Tensor(losses_->data(), DType::kF64, batch);
      args.sequence_valid =
          Tensor(losses_->data() + 8 * kShape.batch, DType::kI64, batch);
    } else {
      args.output = Boundary(*output_);
    }
    chunk_->Forward(*stream_, args);
  }
  void BackwardInput() {
    Chunk::BackwardArgs args{.slot = slot_->data(),
                             .workspace = workspace_->data(),
                             .held = held_->data()};
    if (!chunk_->has_head()) {
      args.output_gradient = Boundary(*output_gradient_);
      FillWaves(args.output_gradient);
    }
    FillWaves(Boundary(*input_gradient_));
    if (!chunk_->has_embedding()) {
      args.input_gradient = Boundary(*input_gradient_);
    }
    chunk_->BackwardInput(*stream_, args);
  }
  void BackwardWeight() {
    parameters_->BeginStep();
    chunk_->BackwardWeight(*stream_, {.slot = slot_->data(),
                                      .workspace = workspace_->data(),
                                      .held = held_->data()});
  }

  // Whether a gradient of the weights or the input has a NaN.
  bool Spoilt() {
    parameters_->EnqueueSumSquares(*stream_);
    EXPECT_OK(stream_->Synchronize(kNever));
    const auto nan = [](double value) { return std::isnan(value); };
    const Tensor gradient = Boundary(*input_gradient_);
    return std::any_of(parameters_->sum_squares().begin(),
                       parameters_->sum_squares().end(), nan) ||
           std::any_of(gradient.f32(), gradient.f32() + gradient.elements(),
                       nan);
  }

  // Lines of `memory` from byte `from` on that make no difference to what `run`
  // leaves. Slot and held places are as they are now before each run.
  int64_t UnreadLines(Buffer& memory, int64_t from,
                      const std::function<void()>& run) {
    const auto image = [](const Buffer& buffer) {
      return std::vector<std::byte>(buffer.data(),
                                    buffer.data() + buffer.bytes());
    };
    const std::vector<std::byte> slot = image(*slot_), held = image(*held_);
    const auto restore = [&] {
      std::copy(slot.begin(), slot.end(), slot_->data());
      std::copy(held.begin(), held.end(), held_->data());
    };
    run();
    EXPECT_FALSE(Spoilt());
    int64_t unread = 0;
    for (int64_t line = from; line < memory.bytes(); line += kLine) {
      restore();
      const std::vector<float> nans(kLine / sizeof(float), NAN);
      std::memcpy(memory.data() + line, nans.data(), kLine);
      run();
      unread += Spoilt() ? 0 : 1;
    }
    restore();
    return unread;
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<ParameterStore> parameters_;
  std::unique_ptr<Chunk> chunk_;
  std::unique_ptr<Buffer> slot_, held_, workspace_;
  std::unique_ptr<Buffer> output_, output_gradient_, input_gradient_, losses_;
};

TEST_P(HeldBytesTest, BackwardReadsAllThatForwardLeaves) {
  Forward();
  EXPECT_EQ(UnreadLines(*slot_, chunk_->host_input_bytes(),
                        [this] {
                          BackwardInput();
                          BackwardWeight();
                        }),
            0);
}

TEST_P(HeldBytesTest, WReadsAllThatILeaves) {
  Forward();
  BackwardInput();
  const auto run = [this] { BackwardWeight(); };
  const int64_t slot = UnreadLines(*slot_, chunk_->host_input_bytes(), run);
  const int64_t held = UnreadLines(*held_, 0, run);
  const bool replays = GetParam().recompute == Recompute::kFull;
  EXPECT_EQ(slot, replays ? 0 : GetParam().logsums());
  EXPECT_EQ(held, replays ? GetParam().logsums() : 0);
}

constexpr LayerRange kBlocks{.first_block = 0, .end_block = 2};
constexpr LayerRange kStart{
    .embedding = true, .first_block = 0, .end_block = 1};
constexpr LayerRange kEnd{.first_block = 2, .end_block = 3, .head = true};

INSTANTIATE_TEST_SUITE_P(
    Chunks, HeldBytesTest,
    ::testing::Values(
        HeldCase{.name = "gpt2", .range = kBlocks},
        HeldCase{.name = "gpt2_dropout", .dropout = 0.1, .range = kBlocks},
        HeldCase{.name = "gpt2_start", .range = kStart},
        HeldCase{.name = "gpt2_start_dropout", .dropout = 0.1, .range = kStart},
        HeldCase{.name = "gpt2_end", .range = kEnd},
        HeldCase{.name = "gpt2_embedding", .range = {.embedding = true}},
        HeldCase{.name = "llama", .family = Family::kLlama, .range = kBlocks},
        HeldCase{.name = "llama_end", .family = Family::kLlama, .range = kEnd},
        HeldCase{.name = "gpt2_recompute",
                 .range = kEnd,
                 .recompute = Recompute::kFull},
        HeldCase{.name = "gpt2_recompute_dropout",
                 .dropout = 0.1,
                 .range = kBlocks,
                 .recompute = Recompute::kFull},
        HeldCase{.name = "llama_recompute",
                 .family = Family::kLlama,
                 .range = kEnd,
                 .recompute = Recompute::kFull}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::model
