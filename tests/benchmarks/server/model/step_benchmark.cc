// A whole optimizer step of the benchmark models on the cpu device: one stage,
// one thread, f32, 16 sequences of 256 tokens in micro-batches of 2. Its
// counterpart in PyTorch, an eager loop of the same models, batches, clipping
// and fused AdamW, is tests/benchmarks/pytorch/step.py; docs/benchmarks.md has
// the figures.
//
//   build/dev/benchmarks/model_step_benchmark
#include <random>

#include "benchmark/benchmark.h"
#include "common/log/log.h"
#include "server/device/cpu/factory.h"
#include "server/model/init.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::testing {
namespace {

struct Size {
  int64_t layers, width, heads;
};

void Step(benchmark::State& state, const Size& size) {
  constexpr int64_t kVocab = 8192, kSeq = 256, kSequences = 16;
  auto device = server::device::cpu::CreateCpuDevice({.threads = 1});
  CHECK_OK(device.status());
  const server::model::ModelConfig model = {.layers = size.layers,
                                            .width = size.width,
                                            .heads = size.heads,
                                            .kv_heads = size.heads,
                                            .head_dim = size.width / size.heads,
                                            .ffn_width = 4 * size.width,
                                            .context = kSeq,
                                            .vocab = kVocab};
  auto pipeline = SequentialPipeline::Create(
      **device, {.model = model,
                 .ranges = CutEvenly(model.layers, 1),
                 .shape = {.batch = 2, .seq = kSeq},
                 .learning_rate = 3e-4});
  CHECK_OK(pipeline.status());
  CHECK_OK((*pipeline)->Load(
      [](const server::model::ParameterSpec& spec, absl::Span<float> values) {
        server::model::Initialise(1, spec, values);
        return absl::OkStatus();
      }));
  StepBatch batch;
  std::minstd_rand generator(7);
  for (int64_t s = 0; s < kSequences; ++s) {
    std::vector<int32_t> tokens(kSeq + 1);
    for (int32_t& token : tokens) token = generator() % kVocab;
    batch.ids.emplace_back(tokens.begin(), tokens.end() - 1);
    batch.labels.emplace_back(tokens.begin() + 1, tokens.end());
  }
  for (auto _ : state) {
    auto result = (*pipeline)->Accumulate(batch);
    CHECK_OK(result.status());
    CHECK_OK((*pipeline)->Apply(*result));
    ++batch.step;
  }
  const double tokens = kSequences * kSeq;
  state.counters["tokens"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
  // 6 a parameter of blocks and head, and full attention (as PyTorch's side).
  const double flops = 72.0 * size.layers * size.width * size.width +
                       6.0 * size.width * kVocab +
                       12.0 * size.layers * size.width * kSeq;
  state.counters["FLOPS"] = benchmark::Counter(
      tokens * flops, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(Step, a, Size{4, 256, 4})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Step, b, Size{6, 512, 8})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::testing

BENCHMARK_MAIN();
