// The math that the model is made of. One instance per device (Device::ops()).
//
// Every op enqueues work on a stream and returns at once. Arguments are
// borrowed tensors of the device's memory; they must stay valid until the
// stream has run the op. Shapes are checked (CHECK): wrong ones are our bug.
// Failures of the device itself show in Stream::status().
//
// Numerics (docs/numerics.md): the result of an op is a function of its
// arguments' values and shapes only; never of pointer alignment, of the thread
// count, or of what else runs. "(=)" marks an output that is assigned, "(+=)"
// one that is added to when `accumulate` is kAdd and assigned when it is
// kStore. Sums are made in f32 or wider. rows = batch * seq; row r is
// position r % seq of sequence r / seq. Unless said, tensors are contiguous,
// f32 (bf16 with precision bf16), and outputs do not overlap inputs.
//
// Every backend implements every op (no default bodies). tests/conformance
// holds the one suite that all pass; `reference` is the oracle.
#ifndef PENSTOCK_SERVER_DEVICE_OPS_H_
#define PENSTOCK_SERVER_DEVICE_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/device/device.h"
#include "server/device/tensor.h"

namespace penstock::server::device {

enum class Accumulate { kStore, kAdd };

// How a weight matrix lies in memory: kInOut is GPT-2's Conv1D (in, out),
// kOutIn is nn.Linear's (out, in), and also a tied embedding (vocab, width).
enum class WeightLayout { kInOut, kOutIn };

// A weight matrix ready for products in both directions: the f32 master, and
// the backend's packed form (absent where PackedWeightBytes() is 0).
struct Weight {
  Tensor master;  // (in, out) or (out, in)
  WeightLayout layout = WeightLayout::kInOut;
  // f32 (PackedWeightBytes() / 4) in an order of the backend's; filled by
  // PackWeight once a step.
  Tensor packed;

  int64_t in() const;
  int64_t out() const;
};

// Dropout with Philox4x32-10 (philox.h): element e of sample g is kept when
// uniform(seed; step, g, site, e) >= rate, and scaled by 1 / (1 - rate).
// `position` is device memory, so that a recorded graph can be replayed.
struct Dropout {
  float rate = 0;     // In [0, 1). 0: the op copies, `position` is not read.
  uint64_t seed = 0;  // Of the job.
  int32_t site = 0;   // Which dropout of the model this is.
  Tensor position;    // i64 (2): step, global sample of the first sequence.
};

struct LinearForwardArgs {
  Tensor x;  // (rows, in)
  Weight weight;
  Tensor bias;  // (out), or absent.
  Tensor y;     // (rows, out) (=) x * W + bias
};
struct LinearBackwardInputArgs {
  Tensor dy;  // (rows, out)
  Weight weight;
  Tensor dx;  // (rows, in) (=) dy * W^T
};
struct LinearBackwardWeightArgs {
  Tensor x;   // (rows, in)
  Tensor dy;  // (rows, out)
  WeightLayout layout = WeightLayout::kInOut;
  Tensor dw;     // In `layout` (+=) x^T * dy, or dy^T * x
  Tensor dbias;  // (out) (+=) column sums of dy, or absent.
  Accumulate accumulate = Accumulate::kStore;
};

struct EmbeddingForwardArgs {
  Tensor ids;        // i32 (batch, seq), each in [0, vocab).
  Tensor tokens;     // (vocab, width)
  Tensor positions;  // (>= seq, width), or absent (Llama).
  Tensor y;          // (rows, width) (=) tokens[id] + positions[t]
};
struct EmbeddingBackwardArgs {
  Tensor ids;         // i32 (batch, seq)
  Tensor dy;          // (rows, width)
  Tensor dtokens;     // (vocab, width) (+=), rows added in ascending row order.
  Tensor dpositions;  // As `positions` (+=), or absent; rows >= seq get 0.
  Accumulate accumulate = Accumulate::kStore;
};

struct LayerNormForwardArgs {
  Tensor x;     // (rows, width)
  Tensor gain;  // (width)
  Tensor bias;  // (width); absent: RMSNorm, which subtracts no mean.
  float epsilon = 1e-5f;
  Tensor y;     // (rows, width) (=)
  Tensor mean;  // (rows) (=); absent for RMSNorm.
  Tensor rstd;  // (rows) (=) 1 / sqrt(variance or mean square + epsilon)
};
struct LayerNormBackwardInputArgs {
  Tensor x;     // (rows, width)
  Tensor gain;  // (width)
  Tensor mean;  // (rows); absent: RMSNorm.
  Tensor rstd;  // (rows)
  Tensor dy;    // (rows, width)
  // (rows, width), or absent. The gradient that the residual path adds:
  // dx = norm's gradient + residual.
  Tensor residual;
  Tensor dx;  // (rows, width) (=); may be `residual` or `dy`.
};
struct LayerNormBackwardWeightArgs {
  Tensor x;      // (rows, width)
  Tensor mean;   // (rows); absent: RMSNorm.
  Tensor rstd;   // (rows)
  Tensor dy;     // (rows, width)
  Tensor dgain;  // (width) (+=), rows added in ascending order.
  Tensor dbias;  // (width) (+=); absent for RMSNorm.
  Accumulate accumulate = Accumulate::kStore;
};

// Rotary position embedding as Hugging Face's rotate_half: within each head,
// pairs are (i, i + head_dim/2). In place.
enum class RopeDirection { kForward, kBackward };
struct RopeArgs {
  Tensor x;       // (rows, heads * head_dim), rows may be strided. In place.
  Tensor cosine;  // (>= seq, head_dim / 2)
  Tensor sine;    // (>= seq, head_dim / 2)
  int64_t seq = 0;
  int64_t head_dim = 0;
  RopeDirection direction = RopeDirection::kForward;
};

// Causal attention with grouped queries: query head h uses key/value head
// h * kv_heads / heads. Scores and softmax in f32; no (seq, seq) matrix in
// memory. Dropout acts on the probabilities; element (h, tq, tk) of a sample
// is number (h * seq + tq) * seq + tk.
struct AttentionShape {
  int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;  // 1 / sqrt(head_dim)
};
struct AttentionForwardArgs {
  AttentionShape shape;
  Tensor q;  // (rows, heads * head_dim), rows may be strided.
  Tensor k;  // (rows, kv_heads * head_dim), rows may be strided.
  Tensor v;  // As k.
  Dropout dropout;
  Tensor y;       // (rows, heads * head_dim) (=)
  Tensor logsum;  // (batch, heads, seq) (=) log sum exp of the scaled scores
};
struct AttentionBackwardArgs {
  AttentionShape shape;
  Tensor q, k, v;  // As in forward.
  Tensor y;        // Forward's result.
  Tensor logsum;   // Forward's.
  Dropout dropout;
  Tensor dy;  // (rows, heads * head_dim)
  // (=), shaped as q, k and v, rows may be strided; may be q, k and v.
  Tensor dq, dk, dv;
};

// GELU in the tanh form ("gelu_new"). Forward also gives the slope, so that
// backward is a product.
struct GeluForwardArgs {
  Tensor x;      // (rows, n)
  Tensor y;      // (rows, n) (=)
  Tensor slope;  // (rows, n) (=) dy/dx; may be x.
};
// Also used wherever two tensors are multiplied element by element.
struct MultiplyArgs {
  Tensor a, b;
  Tensor y;  // (=) a * b; may be a or b.
};

// SwiGLU: y = silu(gate) * up. Rows of gate, up and their gradients may be
// strided: both are columns of one (rows, 2 * n) product.
struct SwigluForwardArgs {
  Tensor gate, up;  // (rows, n), rows may be strided.
  Tensor y;         // (rows, n) (=)
};
struct SwigluBackwardArgs {
  Tensor gate, up;  // Forward's inputs.
  Tensor dy;        // (rows, n)
  // (rows, n) (=), rows may be strided; may be gate and up.
  Tensor dgate, dup;
};

struct AddArgs {
  Tensor a, b;
  Tensor y;  // (=) a + b; may be a or b.
};

struct DropoutArgs {
  Tensor x;  // (batch, seq, width): one sample per sequence.
  Dropout dropout;
  // (batch, seq, width), or absent: y = residual + dropout(x).
  Tensor residual;
  Tensor y;  // (=); may be x or residual. Backward is the same op on dy.
};

// Cross entropy of logits against labels. Labels are aligned with the logits'
// positions already (the data source shifts); -100 is ignored.
inline constexpr int32_t kIgnoredLabel = -100;
struct CrossEntropyForwardArgs {
  Tensor logits;  // (rows, vocab)
  Tensor labels;  // i32 (rows), each in [0, vocab) or kIgnoredLabel.
  int64_t seq = 0;
  Tensor logsum;  // (rows) (=) log sum exp of the row
  Tensor
      sequence_loss;  // f64 (batch) (=) sum over valid tokens, nats, in order
  Tensor sequence_valid;  // i64 (batch) (=) valid tokens
};
struct CrossEntropyBackwardArgs {
  Tensor logits;  // (rows, vocab); becomes the gradient in place.
  Tensor labels;  // i32 (rows)
  Tensor logsum;  // (rows)
  // dlogits = softmax - onehot, 0 for ignored rows: of the *sum* of losses,
  // not normalised.
};

// One optimizer update of one tensor, from one version into another (which may
// be the same memory). Gradients are un-normalised: g = grad * grad_scale.
// The per-step scalars are device memory, so that a recorded graph can be
// replayed: f32 (kUpdateScalars), filled from ReleaseStep.
enum UpdateScalar : int {
  kGradScale = 0,
  kLearningRate = 1,
  kBiasCorrection1 = 2,  // 1 - beta1^t
  kBiasCorrection2 = 3,  // 1 - beta2^t
  kUpdateScalars = 4
};
// AdamW as torch: w -= lr * wd * w; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
// w -= lr * (m / c1) / (sqrt(v / c2) + eps). (Loshchilov, Hutter 2019)
struct AdamwArgs {
  Tensor scalars;  // f32 (kUpdateScalars)
  Tensor gradient;
  Tensor weight, moment1, moment2;                 // Before.
  Tensor next_weight, next_moment1, next_moment2;  // After (=).
  // f64, so that 1 - beta is rounded once, as torch does: 1 - 0.999f is off by
  // 1.3e-5 of its value.
  double beta1 = 0.9, beta2 = 0.95;
  float epsilon = 1e-8f, weight_decay = 0;
};
// SGD as torch with momentum and no dampening, decay decoupled:
// w -= lr * wd * w; u = momentum u + g; w -= lr u. Without momentum u is
// absent.
struct SgdArgs {
  Tensor scalars;
  Tensor gradient;
  Tensor weight, velocity;
  Tensor next_weight, next_velocity;
  float momentum = 0, weight_decay = 0;
};

// f64 sums over blocks of so many elements, added in order.
inline constexpr int64_t kSumSquaresBlock = 4096;
struct SumSquaresArgs {
  Tensor x;    // f32, any shape.
  Tensor sum;  // f64 (1) (=)
};

struct FillArgs {
  Tensor y;  // f32 (=)
  float value = 0;
};
struct CopyArgs {
  Tensor x;
  Tensor y;  // (=), same type and shape.
};

// The ops that a rank runs, as far as their memory follows from it: the largest
// of each kind.
struct OpSizes {
  // LinearBackwardWeight and the others of one weight.
  struct Product {
    int64_t rows = 0, in = 0, out = 0;
    WeightLayout layout = WeightLayout::kInOut;
  };
  std::vector<Product> products;
  AttentionShape attention;     // batch 0: none.
  int64_t logit_rows = 0;       // Of CrossEntropyForward.
  int64_t summed_elements = 0;  // Of SumSquares.
};

// Thread-compatible: the engine thread calls it.
class Ops {
 public:
  virtual ~Ops() = default;

  // Bytes of the packed form of a weight (in, out), in either layout; 0 where
  // it is not packed.
  virtual int64_t PackedWeightBytes(int64_t in, int64_t out) const = 0;
  // Bytes of device memory (kWorkspace) that ops of at most these sizes need
  // beside their arguments; 0 where they need none.
  virtual int64_t ScratchBytes(const OpSizes& sizes) const = 0;
  // Allocates them, so that no op of these sizes allocates when it runs; one
  // that was not announced does. REQUIRES: no op runs. ResourceExhausted.
  virtual absl::Status ReserveScratch(const OpSizes& sizes) = 0;

  // Fills weight.packed from weight.master.
  virtual void PackWeight(Stream&, const Weight& weight) = 0;

  virtual void LinearForward(Stream&, const LinearForwardArgs&) = 0;
  virtual void LinearBackwardInput(Stream&, const LinearBackwardInputArgs&) = 0;
  virtual void LinearBackwardWeight(Stream&,
                                    const LinearBackwardWeightArgs&) = 0;

  virtual void EmbeddingForward(Stream&, const EmbeddingForwardArgs&) = 0;
  virtual void EmbeddingBackward(Stream&, const EmbeddingBackwardArgs&) = 0;
  virtual void LayerNormForward(Stream&, const LayerNormForwardArgs&) = 0;
  virtual void LayerNormBackwardInput(Stream&,
                                      const LayerNormBackwardInputArgs&) = 0;
  virtual void LayerNormBackwardWeight(Stream&,
                                       const LayerNormBackwardWeightArgs&) = 0;
  virtual void Rope(Stream&, const RopeArgs&) = 0;
  virtual void AttentionForward(Stream&, const AttentionForwardArgs&) = 0;
  virtual void AttentionBackward(Stream&, const AttentionBackwardArgs&) = 0;
  virtual void GeluForward(Stream&, const GeluForwardArgs&) = 0;
  virtual void Multiply(Stream&, const MultiplyArgs&) = 0;
  virtual void SwigluForward(Stream&, const SwigluForwardArgs&) = 0;
  virtual void SwigluBackward(Stream&, const SwigluBackwardArgs&) = 0;
  virtual void Add(Stream&, const AddArgs&) = 0;
  virtual void ApplyDropout(Stream&, const DropoutArgs&) = 0;
  virtual void CrossEntropyForward(Stream&, const CrossEntropyForwardArgs&) = 0;
  virtual void CrossEntropyBackward(Stream&,
                                    const CrossEntropyBackwardArgs&) = 0;
  virtual void Adamw(Stream&, const AdamwArgs&) = 0;
  virtual void Sgd(Stream&, const SgdArgs&) = 0;
  virtual void SumSquares(Stream&, const SumSquaresArgs&) = 0;
  virtual void Fill(Stream&, const FillArgs&) = 0;
  virtual void Copy(Stream&, const CopyArgs&) = 0;
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_OPS_H_
