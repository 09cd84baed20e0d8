// Single ops of the cpu device at the shapes of the benchmark models (a: width
// 256, b: width 512, vocabulary 8192, sequences of 256), one thread, against
// oneDNN's product and against a loop of nothing but multiply-adds.
//
//   OMP_NUM_THREADS=1 build/dev/benchmarks/cpu_ops_benchmark
//
// FLOPS is what the op does; Peak's FLOPS is the most that this core does.
#include <dnnl.h>
#include <immintrin.h>

#include <optional>
#include <random>

#include "benchmark/benchmark.h"
#include "common/log/log.h"
#include "server/device/cpu/factory.h"
#include "server/device/ops.h"

namespace penstock::server::device {
namespace {

// The device, and f32 tensors of random values.
class Bench {
 public:
  explicit Bench(std::optional<cpu::Isa> isa = std::nullopt) {
    auto device = cpu::CreateCpuDevice({.threads = 1, .max_isa = isa});
    CHECK_OK(device.status());
    device_ = *std::move(device);
    auto stream = device_->CreateStream();
    CHECK_OK(stream.status());
    stream_ = *std::move(stream);
  }
  Ops& ops() { return device_->ops(); }
  Stream& stream() { return *stream_; }

  Tensor New(const Shape& shape, DType type = DType::kF32) {
    auto buffer = device_->Allocate(shape.elements() * ElementBytes(type),
                                    MemoryUse::kWorkspace);
    CHECK_OK(buffer.status());
    buffers_.push_back(*std::move(buffer));
    return Tensor(buffers_.back()->data(), type, shape);
  }
  Tensor Random(const Shape& shape) {
    const Tensor tensor = New(shape);
    std::minstd_rand generator(1);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.f32()[i] = static_cast<float>(generator() % 2048) / 1024 - 1;
    }
    return tensor;
  }
  Weight NewWeight(int64_t in, int64_t out) {
    Weight weight{.master = Random(Shape({in, out}))};
    weight.packed = New(Shape({ops().PackedWeightBytes(in, out) / 4}));
    ops().PackWeight(stream(), weight);
    return weight;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

void Flops(benchmark::State& state, double flops) {
  state.counters["FLOPS"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

// Sixteen independent chains of multiply-adds in registers.
__attribute__((target("avx512f"))) void MultiplyAdds512(int64_t n, float* out) {
  __m512 a[16];
  for (auto& v : a) v = _mm512_set1_ps(1);
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-4f);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) a[j] = _mm512_fmadd_ps(a[j], x, y);
  }
  for (auto& v : a) *out += _mm512_cvtss_f32(v);
}
__attribute__((target("avx2,fma"))) void MultiplyAdds256(int64_t n,
                                                         float* out) {
  __m256 a[12];
  for (auto& v : a) v = _mm256_set1_ps(1);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-4f);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) a[j] = _mm256_fmadd_ps(a[j], x, y);
  }
  for (auto& v : a) *out += _mm256_cvtss_f32(v);
}

void Peak(benchmark::State& state) {
  constexpr int64_t kRounds = 100000;
  const bool wide = cpu::SupportedIsas().back() == cpu::Isa::kAvx512;
  float out = 0;
  for (auto _ : state) {
    wide ? MultiplyAdds512(kRounds, &out) : MultiplyAdds256(kRounds, &out);
    benchmark::DoNotOptimize(out);
  }
  Flops(state, kRounds * (wide ? 16 * 32 : 12 * 16));
}
BENCHMARK(Peak);

// rows, in, out
void Products(benchmark::internal::Benchmark* b) {
  for (const int64_t d : {256, 512}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{d, 3 * d},
                                  {d, d},
                                  {d, 4 * d},
                                  {4 * d, d},
                                  {d, 8192}}) {
      b->Args({512, in, out});
    }
  }
  b->Args({256, 256, 1024})->Args({2048, 256, 1024});
}
double ProductFlops(const benchmark::State& state) {
  return 2.0 * state.range(0) * state.range(1) * state.range(2);
}

void LinearForwardOn(benchmark::State& state, std::optional<cpu::Isa> isa) {
  Bench b(isa);
  const int64_t rows = state.range(0), in = state.range(1);
  const int64_t out = state.range(2);
  const LinearForwardArgs args = {.x = b.Random(Shape({rows, in})),
                                  .weight = b.NewWeight(in, out),
                                  .bias = b.Random(Shape({out})),
                                  .y = b.New(Shape({rows, out}))};
  for (auto _ : state) b.ops().LinearForward(b.stream(), args);
  Flops(state, ProductFlops(state));
}
BENCHMARK_CAPTURE(LinearForwardOn, best, std::nullopt)->Apply(Products);
BENCHMARK_CAPTURE(LinearForwardOn, avx2, cpu::Isa::kAvx2)
    ->Args({512, 512, 2048});
BENCHMARK_CAPTURE(LinearForwardOn, sse4, cpu::Isa::kSse4)
    ->Args({512, 512, 2048});

void LinearBackwardInput(benchmark::State& state) {
  Bench b;
  const int64_t rows = state.range(0), in = state.range(1);
  const int64_t out = state.range(2);
  const LinearBackwardInputArgs args = {.dy = b.Random(Shape({rows, out})),
                                        .weight = b.NewWeight(in, out),
                                        .dx = b.New(Shape({rows, in}))};
  for (auto _ : state) b.ops().LinearBackwardInput(b.stream(), args);
  Flops(state, ProductFlops(state));
}
BENCHMARK(LinearBackwardInput)->Apply(Products);

void LinearBackwardWeight(benchmark::State& state) {
  Bench b;
  const int64_t rows = state.range(0), in = state.range(1);
  const int64_t out = state.range(2);
  const bool head = out == 8192;  // A tied embedding: (out, in).
  const LinearBackwardWeightArgs args = {
      .x = b.Random(Shape({rows, in})),
      .dy = b.Random(Shape({rows, out})),
      .layout = head ? WeightLayout::kOutIn : WeightLayout::kInOut,
      .dw = b.Random(head ? Shape({out, in}) : Shape({in, out})),
      .dbias = head ? Tensor() : b.Random(Shape({out})),
      .accumulate = Accumulate::kAdd};
  for (auto _ : state) b.ops().LinearBackwardWeight(b.stream(), args);
  Flops(state, ProductFlops(state));
}
BENCHMARK(LinearBackwardWeight)->Apply(Products);

void OneDnnSgemm(benchmark::State& state) {
  Bench b;
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const Tensor x = b.Random(Shape({m, k})), w = b.Random(Shape({k, n}));
  const Tensor y = b.New(Shape({m, n}));
  for (auto _ : state) {
    CHECK_EQ(
        dnnl_sgemm('N', 'N', m, n, k, 1, x.f32(), k, w.f32(), n, 0, y.f32(), n),
        dnnl_success);
  }
  Flops(state, ProductFlops(state));
}
BENCHMARK(OneDnnSgemm)->Apply(Products);

void PackWeight(benchmark::State& state) {
  Bench b;
  const Weight weight = b.NewWeight(state.range(0), state.range(1));
  for (auto _ : state) b.ops().PackWeight(b.stream(), weight);
  state.SetBytesProcessed(state.iterations() * weight.master.bytes() * 2);
}
BENCHMARK(PackWeight)->Args({256, 1024})->Args({512, 8192});

// Sequences of 256, heads of 64; FLOPS of the causal half.
struct AttentionBench : Bench {
  explicit AttentionBench(int64_t heads)
      : shape{.batch = 2,
              .seq = 256,
              .heads = heads,
              .kv_heads = heads,
              .head_dim = 64,
              .scale = 0.125f} {
    const int64_t width = heads * 64;
    qkv = Random(Shape({512, 3 * width}));
    dqkv = New(Shape({512, 3 * width}));
    forward = {.shape = shape,
               .q = qkv.Columns(0, width),
               .k = qkv.Columns(width, 2 * width),
               .v = qkv.Columns(2 * width, 3 * width),
               .y = New(Shape({512, width})),
               .logsum = New(Shape({2, heads, 256}))};
    ops().AttentionForward(stream(), forward);
    backward = {.shape = shape,
                .q = forward.q,
                .k = forward.k,
                .v = forward.v,
                .y = forward.y,
                .logsum = forward.logsum,
                .dy = Random(Shape({512, width})),
                .dq = dqkv.Columns(0, width),
                .dk = dqkv.Columns(width, 2 * width),
                .dv = dqkv.Columns(2 * width, 3 * width)};
  }
  // Of one product of (256, 256) scores, the causal half of them.
  double ProductFlops() const { return 2.0 * shape.heads * 256 * 256 * 64; }

  AttentionShape shape;
  Tensor qkv, dqkv;
  AttentionForwardArgs forward;
  AttentionBackwardArgs backward;
};

void AttentionForward(benchmark::State& state) {
  AttentionBench b(state.range(0));
  for (auto _ : state) b.ops().AttentionForward(b.stream(), b.forward);
  Flops(state, 2 * b.ProductFlops());
}
BENCHMARK(AttentionForward)->Arg(4)->Arg(8);

void AttentionBackward(benchmark::State& state) {
  AttentionBench b(state.range(0));
  for (auto _ : state) b.ops().AttentionBackward(b.stream(), b.backward);
  Flops(state, 5 * b.ProductFlops());
}
BENCHMARK(AttentionBackward)->Arg(4)->Arg(8);

void Gelu(benchmark::State& state) {
  Bench b;
  const Shape shape({512, 1024});
  const GeluForwardArgs args = {
      .x = b.Random(shape), .y = b.New(shape), .slope = b.New(shape)};
  for (auto _ : state) b.ops().GeluForward(b.stream(), args);
  state.SetItemsProcessed(state.iterations() * shape.elements());
}
BENCHMARK(Gelu);

void LayerNorm(benchmark::State& state) {
  Bench b;
  const Shape shape({512, 256}), vector({256}), rows({512});
  const LayerNormForwardArgs args = {.x = b.Random(shape),
                                     .gain = b.Random(vector),
                                     .bias = b.Random(vector),
                                     .y = b.New(shape),
                                     .mean = b.New(rows),
                                     .rstd = b.New(rows)};
  for (auto _ : state) b.ops().LayerNormForward(b.stream(), args);
  state.SetItemsProcessed(state.iterations() * shape.elements());
}
BENCHMARK(LayerNorm);

void LayerNormWeight(benchmark::State& state) {
  Bench b;
  const Shape shape({512, 256}), vector({256}), rows({512});
  const LayerNormBackwardWeightArgs args = {.x = b.Random(shape),
                                            .mean = b.Random(rows),
                                            .rstd = b.Random(rows),
                                            .dy = b.Random(shape),
                                            .dgain = b.New(vector),
                                            .dbias = b.New(vector)};
  for (auto _ : state) b.ops().LayerNormBackwardWeight(b.stream(), args);
  state.SetItemsProcessed(state.iterations() * shape.elements());
}
BENCHMARK(LayerNormWeight);

void CrossEntropy(benchmark::State& state) {
  Bench b;
  const Tensor labels = b.New(Shape({512}), DType::kI32);
  for (int64_t r = 0; r < 512; ++r) labels.i32()[r] = r;
  const Tensor logits = b.Random(Shape({512, 8192}));
  const Tensor logsum = b.New(Shape({512}));
  for (auto _ : state) {
    b.ops().CrossEntropyForward(
        b.stream(), {.logits = logits,
                     .labels = labels,
                     .seq = 256,
                     .logsum = logsum,
                     .sequence_loss = b.New(Shape({2}), DType::kF64),
                     .sequence_valid = b.New(Shape({2}), DType::kI64)});
    b.ops().CrossEntropyBackward(
        b.stream(), {.logits = logits, .labels = labels, .logsum = logsum});
  }
  state.SetItemsProcessed(state.iterations() * logits.elements());
}
BENCHMARK(CrossEntropy);

void Adamw(benchmark::State& state) {
  Bench b;
  const Shape shape({1 << 20});
  const Tensor w = b.Random(shape), m = b.Random(shape), v = b.Random(shape);
  for (int64_t i = 0; i < v.elements(); ++i) v.f32()[i] *= v.f32()[i];
  const AdamwArgs args = {.scalars = b.Random(Shape({4})),
                          .gradient = b.Random(shape),
                          .weight = w,
                          .moment1 = m,
                          .moment2 = v,
                          .next_weight = b.New(shape),
                          .next_moment1 = b.New(shape),
                          .next_moment2 = b.New(shape)};
  for (auto _ : state) b.ops().Adamw(b.stream(), args);
  state.SetItemsProcessed(state.iterations() * shape.elements());
}
BENCHMARK(Adamw);

}  // namespace
}  // namespace penstock::server::device

BENCHMARK_MAIN();
