#include "server/device/reference/attention.h"

#include <algorithm>
#include <vector>

#include "common/math/elementary.h"
#include "server/device/philox.h"

namespace penstock::server::device::reference {

using common::math::Exp;
using common::math::Log;

namespace {

float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y += scale * x
void Axpy(float scale, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

// Row t of sequence b, head h.
float* Head(const Tensor& tensor, const AttentionShape& s, int64_t b, int64_t t,
            int64_t h) {
  return tensor.f32() + (b * s.seq + t) * tensor.row_stride() + h * s.head_dim;
}

// One sequence of q, k or v, which its gradient may overwrite.
class Sequence {
 public:
  Sequence(const Tensor& tensor, const AttentionShape& s, int64_t b)
      : width_(tensor.columns()), head_dim_(s.head_dim) {
    for (int64_t t = 0; t < s.seq; ++t) {
      const float* row = Head(tensor, s, b, t, 0);
      values_.insert(values_.end(), row, row + width_);
    }
  }
  const float* At(int64_t t, int64_t h) const {
    return values_.data() + t * width_ + h * head_dim_;
  }

 private:
  const int64_t width_, head_dim_;
  std::vector<float> values_;
};

// What a probability is multiplied with: 0, or 1 / (1 - rate).
class DropoutFactor {
 public:
  DropoutFactor(const Dropout& dropout, int64_t sequence)
      : active_(dropout.rate > 0),
        words_({.seed = dropout.seed,
                .step = active_ ? dropout.position.i64()[0] : 0,
                .sample = active_ ? dropout.position.i64()[1] + sequence : 0,
                .site = dropout.site}),
        threshold_(KeepThreshold(dropout.rate)),
        scale_(1 / (1 - dropout.rate)) {}

  float operator()(int64_t element) const {
    if (!active_) return 1;
    return Kept(words_.Word(element), threshold_) ? scale_ : 0;
  }

 private:
  const bool active_;
  const DropoutWords words_;
  const uint32_t threshold_;
  const float scale_;
};

}  // namespace

void AttentionForward(const AttentionForwardArgs& args) {
  const AttentionShape& s = args.shape;
  std::vector<float> p(s.seq);
  for (int64_t b = 0; b < s.batch; ++b) {
    const DropoutFactor factor(args.dropout, b);
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t kv = h * s.kv_heads / s.heads;
      for (int64_t tq = 0; tq < s.seq; ++tq) {
        const float* q = Head(args.q, s, b, tq, h);
        for (int64_t tk = 0; tk <= tq; ++tk) {
          p[tk] = Dot(q, Head(args.k, s, b, tk, kv), s.head_dim) * s.scale;
        }
        const double max = *std::max_element(p.begin(), p.begin() + tq + 1);
        double sum = 0;
        for (int64_t tk = 0; tk <= tq; ++tk) sum += Exp(p[tk] - max);
        const float logsum = static_cast<float>(max + Log(sum));
        args.logsum.f32()[(b * s.heads + h) * s.seq + tq] = logsum;
        float* y = Head(args.y, s, b, tq, h);
        std::fill_n(y, s.head_dim, 0.0f);
        for (int64_t tk = 0; tk <= tq; ++tk) {
          const float probability =
              static_cast<float>(Exp(double{p[tk]} - logsum));
          Axpy(probability * factor((h * s.seq + tq) * s.seq + tk),
               Head(args.v, s, b, tk, kv), y, s.head_dim);
        }
      }
    }
  }
}

// With p the probabilities, f the dropout factors, and o = sum_k p_k f_k v_k:
// dv_k = sum_q p f dy, dp = f (dy . v), ds = p (dp - dy . o) * scale,
// dq = sum_k ds k, dk = sum_q ds q. (FlashAttention-2, algorithm 2)
void AttentionBackward(const AttentionBackwardArgs& args) {
  const AttentionShape& s = args.shape;
  for (int64_t b = 0; b < s.batch; ++b) {
    const DropoutFactor factor(args.dropout, b);
    const Sequence qs(args.q, s, b), ks(args.k, s, b), vs(args.v, s, b);
    for (int64_t t = 0; t < s.seq; ++t) {
      std::fill_n(Head(args.dq, s, b, t, 0), args.dq.columns(), 0.0f);
      std::fill_n(Head(args.dk, s, b, t, 0), args.dk.columns(), 0.0f);
      std::fill_n(Head(args.dv, s, b, t, 0), args.dv.columns(), 0.0f);
    }
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t kv = h * s.kv_heads / s.heads;
      for (int64_t tq = 0; tq < s.seq; ++tq) {
        const float* q = qs.At(tq, h);
        const float* dy = Head(args.dy, s, b, tq, h);
        const float logsum = args.logsum.f32()[(b * s.heads + h) * s.seq + tq];
        const float dot_y = Dot(dy, Head(args.y, s, b, tq, h), s.head_dim);
        for (int64_t tk = 0; tk <= tq; ++tk) {
          const float* k = ks.At(tk, kv);
          const float score = Dot(q, k, s.head_dim) * s.scale;
          const float p = static_cast<float>(Exp(double{score} - logsum));
          const float f = factor((h * s.seq + tq) * s.seq + tk);
          Axpy(p * f, dy, Head(args.dv, s, b, tk, kv), s.head_dim);
          const float dp = f * Dot(dy, vs.At(tk, kv), s.head_dim);
          const float ds = p * (dp - dot_y) * s.scale;
          Axpy(ds, k, Head(args.dq, s, b, tq, h), s.head_dim);
          Axpy(ds, q, Head(args.dk, s, b, tk, kv), s.head_dim);
        }
      }
    }
  }
}

}  // namespace penstock::server::device::reference
