// Causal attention in blocks of query rows, per instruction-set level.
//
// Scores of one block against all keys up to its last row are in scratch
// memory; blocks of keys beyond it are not touched. All products are those of
// gemm-inl.h.
#include <algorithm>

#include "common/math/elementary.h"
#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/attention_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "server/device/cpu/gemm-inl.h"
#include "server/device/cpu/math-inl.h"
#include "server/device/cpu/philox-inl.h"

// Not the fallback that foreach_target also wants.
#if HWY_TARGET <= HWY_SSE4
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {

using math::LoadAt;

constexpr int64_t kQueryRows = 48;  // Of a block: whole tiles on every level.

// Where one task's scratch memory is. Each part is 64-byte aligned.
struct Layout {
  int64_t scores_stride = 0, words = 0;  // Floats.
  int64_t packed_heads = 0;              // K or V with depth head_dim.
  int64_t packed_keys = 0;               // K or V with depth seq.
  int64_t packed_block = 0;              // Q or dY rows of a block, as B.

  explicit Layout(const AttentionShape& s)
      : scores_stride(RoundUp(s.seq, kPanel) + 16),
        words(RoundUp(s.seq + 8 + philox::kSlack, 16)),
        packed_heads(RoundUp(s.head_dim * RoundUp(s.seq, kPanel), 16)),
        packed_keys(RoundUp(s.seq * RoundUp(s.head_dim, kPanel), 16)),
        packed_block(RoundUp(kQueryRows * RoundUp(s.head_dim, kPanel), 16)) {}

  int64_t scores() const { return kQueryRows * scores_stride; }
  int64_t ForwardFloats() const {
    return RoundUp(kBlocks.packed_a_floats(), 16) + packed_heads + packed_keys +
           scores() + words;
  }
  int64_t BackwardFloats() const {
    return RoundUp(kBlocks.packed_a_floats(), 16) + 2 * packed_heads +
           packed_keys + 2 * scores() + 2 * packed_block + words;
  }
};

// Hands out the parts of a task's scratch memory, in turn.
class Parts {
 public:
  explicit Parts(float* next) : next_(next) {}
  float* Take(int64_t floats) {
    float* taken = next_;
    next_ += RoundUp(floats, 16);
    return taken;
  }

 private:
  float* next_;
};

// Rows of one head of one sequence.
struct HeadRows {
  float* data = nullptr;
  int64_t stride = 0;

  HeadRows(const Tensor& tensor, const AttentionShape& s, int64_t b, int64_t h)
      : data(tensor.f32() + b * s.seq * tensor.row_stride() + h * s.head_dim),
        stride(tensor.row_stride()) {}
  float* Row(int64_t t) const { return data + t * stride; }
};

// B (depth head_dim, n keys) of rows, and B (depth rows, n head_dim).
void PackHeads(const HeadRows& rows, const AttentionShape& s, float* to) {
  PackBPanels(
      {.data = rows.data, .stride = rows.stride, .order = Operand::kItemOuter},
      s.head_dim, s.seq, 0, RoundUp(s.seq, kPanel) / kPanel, to);
}
void PackRows(const float* data, int64_t stride, int64_t rows,
              const AttentionShape& s, float* to) {
  PackBPanels({.data = data, .stride = stride, .order = Operand::kDepthOuter},
              rows, s.head_dim, 0, RoundUp(s.head_dim, kPanel) / kPanel, to);
}

// The dropout factors of one row of probabilities.
class RowDropout {
 public:
  RowDropout(const Dropout& dropout, const AttentionShape& s, int64_t sequence,
             float* words)
      : seq_(s.seq),
        active_(dropout.rate > 0),
        source_({.seed = dropout.seed,
                 .step = active_ ? dropout.position.i64()[0] : 0,
                 .sample = active_ ? dropout.position.i64()[1] + sequence : 0,
                 .site = dropout.site}),
        threshold_(KeepThreshold(dropout.rate)),
        scale_(1 / (1 - dropout.rate)),
        words_(reinterpret_cast<uint32_t*>(words)) {}

  bool active() const { return active_; }
  void Start(int64_t h, int64_t tq) {
    if (!active_) return;
    const int64_t first = (h * seq_ + tq) * seq_, last = first + tq;
    offset_ = first % 4;
    philox::Words(source_, first / 4, last / 4 - first / 4 + 1, words_);
  }
  // Of keys [i, i + kLanes).
  HWY_INLINE V Factors(int64_t i) const {
    return philox::Factors(words_ + offset_ + i, threshold_, scale_);
  }

 private:
  const int64_t seq_;
  const bool active_;
  const DropoutWords source_;
  const uint32_t threshold_;
  const float scale_;
  uint32_t* const words_;
  int64_t offset_ = 0;
};

// Scores of `rows` rows against keys [0, keys), rounded up to whole panels.
void Scores(const float* rows_data, int64_t stride, int64_t rows, int64_t keys,
            const float* packed, const AttentionShape& s, const Layout& layout,
            float* to, float* packed_a) {
  GemmRows({.a = {.data = rows_data, .stride = stride},
            .packed_b = packed,
            .packed_k = s.head_dim,
            .packed_n = s.seq,
            .k = s.head_dim,
            .n = RoundUp(keys, kPanel),
            .c = to,
            .c_stride = layout.scores_stride},
           0, rows, packed_a);
}

// Softmax of a row's first n scores, in place; 0 in [n, end). Returns the
// logarithm of the sum.
float SoftmaxRow(float* row, int64_t n, int64_t end, float scale) {
  const D d;
  const V factor = hn::Set(d, scale);
  const int64_t whole = RoundUp(n, kLanes);
  for (int64_t i = n; i < whole; ++i) row[i] = row[0];
  V max = hn::Mul(hn::Set(d, row[0]), factor);
  for (int64_t i = 0; i < whole; i += kLanes) {
    max = hn::Max(max, hn::Mul(hn::LoadU(d, row + i), factor));
  }
  const float top = math::Max(max);
  V sum = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += kLanes) {
    V p = math::Exp(
        hn::Sub(hn::Mul(hn::LoadU(d, row + i), factor), hn::Set(d, top)));
    if (i + kLanes > n) p = hn::IfThenElseZero(hn::FirstN(d, n - i), p);
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, row + i);
  }
  const float total = math::Sum(sum);
  const V inverse = hn::Set(d, 1 / total);
  for (int64_t i = 0; i < whole; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, row + i), inverse), d, row + i);
  }
  std::fill(row + n, row + std::max(n, end), 0.0f);
  return static_cast<float>(top + common::math::Log(total));
}

void ForwardTask(const AttentionForwardArgs& args, int64_t task,
                 float* scratch) {
  const AttentionShape& s = args.shape;
  const Layout layout(s);
  const int64_t b = task / s.heads, h = task % s.heads;
  const int64_t kv = h * s.kv_heads / s.heads;
  const HeadRows q(args.q, s, b, h), k(args.k, s, b, kv), v(args.v, s, b, kv);
  const HeadRows y(args.y, s, b, h);
  float* logsum = args.logsum.f32() + task * s.seq;
  Parts parts(scratch);
  float* packed_a = parts.Take(kBlocks.packed_a_floats());
  float* packed_k = parts.Take(layout.packed_heads);
  float* packed_v = parts.Take(layout.packed_keys);
  float* scores = parts.Take(layout.scores());
  RowDropout dropout(args.dropout, s, b, parts.Take(layout.words));
  PackHeads(k, s, packed_k);
  PackRows(v.data, v.stride, s.seq, s, packed_v);
  for (int64_t q0 = 0; q0 < s.seq; q0 += kQueryRows) {
    const int64_t q1 = std::min(s.seq, q0 + kQueryRows);
    Scores(q.Row(q0), q.stride, q1 - q0, q1, packed_k, s, layout, scores,
           packed_a);
    for (int64_t t = q0; t < q1; ++t) {
      float* row = scores + (t - q0) * layout.scores_stride;
      logsum[t] = SoftmaxRow(row, t + 1, q1, s.scale);
      if (!dropout.active()) continue;
      dropout.Start(h, t);
      for (int64_t i = 0; i <= t; i += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(D(), row + i), dropout.Factors(i)), D(),
                   row + i);
      }
      std::fill(row + t + 1, row + q1, 0.0f);
    }
    GemmRows({.a = {.data = scores, .stride = layout.scores_stride},
              .packed_b = packed_v,
              .packed_k = s.seq,
              .packed_n = s.head_dim,
              .k = q1,
              .n = s.head_dim,
              .c = y.Row(q0),
              .c_stride = y.stride},
             0, q1 - q0, packed_a);
  }
}

// A row of scores becomes p f, and a row of dp becomes ds = p (f dp - dot_y)
// scale, both 0 in [n, end). (reference/attention.cc has the formulas.)
struct GradientRow {
  float* scores;
  float* dp;
  int64_t n, end;
  float scale, logsum, dot_y;
};
HWY_INLINE void RowGradient(const GradientRow& row, const RowDropout& dropout) {
  const D d;
  const V factor = hn::Set(d, row.scale), logsum = hn::Set(d, row.logsum);
  const V dot_y = hn::Set(d, row.dot_y);
  for (int64_t i = 0; i < row.n; i += kLanes) {
    const V score = hn::LoadU(d, row.scores + i);
    const V p = math::Exp(hn::Sub(hn::Mul(score, factor), logsum));
    V dp = hn::LoadU(d, row.dp + i), kept = p;
    if (dropout.active()) {
      const V f = dropout.Factors(i);
      kept = hn::Mul(p, f);
      dp = hn::Mul(dp, f);
    }
    hn::StoreU(kept, d, row.scores + i);
    hn::StoreU(hn::Mul(hn::Mul(p, hn::Sub(dp, dot_y)), factor), d, row.dp + i);
  }
  std::fill(row.scores + row.n, row.scores + row.end, 0.0f);
  std::fill(row.dp + row.n, row.dp + row.end, 0.0f);
}

HWY_INLINE float Dot(const float* a, const float* b, int64_t n) {
  V sum = hn::Zero(D());
  for (int64_t i = 0; i < n; i += kLanes) {
    sum = hn::MulAdd(LoadAt(a, i, n), LoadAt(b, i, n), sum);
  }
  return math::Sum(sum);
}

// One key/value head of a sequence and the query heads that use it. Gradients
// may lie where q, k and v do: k and v are packed before theirs are begun, and
// a block of q is read for the last time before its own is stored.
class Backward {
 public:
  Backward(const AttentionBackwardArgs& args, int64_t task, Parts parts)
      : args_(args),
        s_(args.shape),
        layout_(s_),
        b_(task / s_.kv_heads),
        kv_(task % s_.kv_heads),
        dk_(args.dk, s_, b_, kv_),
        dv_(args.dv, s_, b_, kv_),
        packed_a_(parts.Take(kBlocks.packed_a_floats())),
        packed_k_(parts.Take(layout_.packed_heads)),
        packed_v_(parts.Take(layout_.packed_heads)),
        key_rows_(parts.Take(layout_.packed_keys)),
        scores_(parts.Take(layout_.scores())),
        dp_(parts.Take(layout_.scores())),
        q_block_(parts.Take(layout_.packed_block)),
        dy_block_(parts.Take(layout_.packed_block)),
        dropout_(args.dropout, s_, b_, parts.Take(layout_.words)) {}

  void Run() {
    const HeadRows k(args_.k, s_, b_, kv_), v(args_.v, s_, b_, kv_);
    PackHeads(k, s_, packed_k_);
    PackHeads(v, s_, packed_v_);
    PackRows(k.data, k.stride, s_.seq, s_, key_rows_);
    for (int64_t t = 0; t < s_.seq; ++t) {
      std::fill_n(dk_.Row(t), s_.head_dim, 0.0f);
      std::fill_n(dv_.Row(t), s_.head_dim, 0.0f);
    }
    const int64_t group = s_.heads / s_.kv_heads;
    for (int64_t h = kv_ * group; h < (kv_ + 1) * group; ++h) {
      for (int64_t q0 = 0; q0 < s_.seq; q0 += kQueryRows) {
        const int64_t q1 = std::min(s_.seq, q0 + kQueryRows);
        Gradients(h, q0, q1);
        AddKeys(h, q0, q1);
        StoreQueries(h, q0, q1);
      }
    }
  }

 private:
  // Rows [q0, q1) of head h: scores_ become p f, dp_ ds.
  void Gradients(int64_t h, int64_t q0, int64_t q1) {
    const HeadRows q(args_.q, s_, b_, h), y(args_.y, s_, b_, h);
    const HeadRows dy(args_.dy, s_, b_, h);
    const float* logsum = args_.logsum.f32() + (b_ * s_.heads + h) * s_.seq;
    Scores(q.Row(q0), q.stride, q1 - q0, q1, packed_k_, s_, layout_, scores_,
           packed_a_);
    Scores(dy.Row(q0), dy.stride, q1 - q0, q1, packed_v_, s_, layout_, dp_,
           packed_a_);
    for (int64_t t = q0; t < q1; ++t) {
      dropout_.Start(h, t);
      RowGradient({.scores = scores_ + (t - q0) * layout_.scores_stride,
                   .dp = dp_ + (t - q0) * layout_.scores_stride,
                   .n = t + 1,
                   .end = q1,
                   .scale = s_.scale,
                   .logsum = logsum[t],
                   .dot_y = Dot(dy.Row(t), y.Row(t), s_.head_dim)},
                  dropout_);
    }
  }

  // dQ = ds K of the rows.
  void StoreQueries(int64_t h, int64_t q0, int64_t q1) {
    const HeadRows dq(args_.dq, s_, b_, h);
    GemmRows({.a = {.data = dp_, .stride = layout_.scores_stride},
              .packed_b = key_rows_,
              .packed_k = s_.seq,
              .packed_n = s_.head_dim,
              .k = q1,
              .n = s_.head_dim,
              .c = dq.Row(q0),
              .c_stride = dq.stride},
             0, q1 - q0, packed_a_);
  }

  // dK += ds^T Q and dV += (p f)^T dY of the rows.
  void AddKeys(int64_t h, int64_t q0, int64_t q1) {
    const HeadRows q(args_.q, s_, b_, h), dy(args_.dy, s_, b_, h);
    const int64_t rows = q1 - q0;
    PackRows(q.Row(q0), q.stride, rows, s_, q_block_);
    PackRows(dy.Row(q0), dy.stride, rows, s_, dy_block_);
    Gemm transposed = {.a = {.data = dp_,
                             .stride = layout_.scores_stride,
                             .order = Operand::kDepthOuter},
                       .packed_b = q_block_,
                       .packed_k = rows,
                       .packed_n = s_.head_dim,
                       .k = rows,
                       .n = s_.head_dim,
                       .c = dk_.data,
                       .c_stride = dk_.stride,
                       .accumulate = true};
    GemmRows(transposed, 0, q1, packed_a_);
    transposed.a.data = scores_;
    transposed.packed_b = dy_block_;
    transposed.c = dv_.data;
    transposed.c_stride = dv_.stride;
    GemmRows(transposed, 0, q1, packed_a_);
  }

  const AttentionBackwardArgs& args_;
  const AttentionShape& s_;
  const Layout layout_;
  const int64_t b_, kv_;
  const HeadRows dk_, dv_;
  float* const packed_a_;
  float* const packed_k_;
  float* const packed_v_;
  float* const key_rows_;
  float* const scores_;
  float* const dp_;
  float* const q_block_;
  float* const dy_block_;
  RowDropout dropout_;
};

void BackwardTask(const AttentionBackwardArgs& args, int64_t task,
                  float* scratch) {
  Backward(args, task, Parts(scratch)).Run();
}

int64_t ForwardFloats(const AttentionShape& shape) {
  return Layout(shape).ForwardFloats();
}
int64_t BackwardFloats(const AttentionShape& shape) {
  return Layout(shape).BackwardFloats();
}

void FillAttention(Kernels& kernels) {
  kernels.attention_forward = ForwardTask;
  kernels.attention_backward = BackwardTask;
  kernels.attention_forward_floats = ForwardFloats;
  kernels.attention_backward_floats = BackwardFloats;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillAttentionKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillAttention,
             .avx2 = N_AVX2::FillAttention,
             .avx512 = N_AVX3::FillAttention},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
