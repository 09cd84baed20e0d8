#include "server/device/check_args.h"

#include "absl/strings/string_view.h"
#include "common/log/log.h"

namespace penstock::server::device {
namespace {

// A present, contiguous tensor of a type.
void CheckTensor(const Tensor& tensor, absl::string_view name,
                 DType type = DType::kF32) {
  CHECK(tensor.present()) << name << " is absent";
  CHECK(tensor.type() == type)
      << name << " is " << Name(tensor.type()) << ", not " << Name(type);
  CHECK(tensor.contiguous()) << name << " has strided rows";
}

void CheckMatrix(const Tensor& tensor, absl::string_view name, int64_t rows,
                 int64_t columns) {
  CheckTensor(tensor, name);
  CHECK(tensor.rows() == rows && tensor.columns() == columns)
      << name << " is " << tensor.shape().ToString() << ", not (" << rows
      << ", " << columns << ")";
}

void CheckStrided(const Tensor& tensor, absl::string_view name, int64_t rows,
                  int64_t columns) {
  CHECK(tensor.present()) << name << " is absent";
  CHECK(tensor.type() == DType::kF32) << name << " is " << Name(tensor.type());
  CHECK(tensor.rows() == rows && tensor.columns() == columns)
      << name << " is " << tensor.shape().ToString() << ", not (" << rows
      << ", " << columns << ")";
}

void CheckVector(const Tensor& tensor, absl::string_view name, int64_t size,
                 DType type = DType::kF32) {
  CheckTensor(tensor, name, type);
  CHECK(tensor.elements() == size)
      << name << " is " << tensor.shape().ToString() << ", not (" << size
      << ")";
}

void CheckWeight(const Weight& weight) {
  CheckTensor(weight.master, "weight");
  CHECK_EQ(weight.master.shape().rank(), 2);
}

void CheckDropout(const Dropout& dropout) {
  CHECK(dropout.rate >= 0 && dropout.rate < 1)
      << "dropout rate " << dropout.rate;
  CHECK(dropout.site >= 0 && dropout.site < 65536)
      << "dropout site " << dropout.site;
  if (dropout.rate > 0) {
    CheckVector(dropout.position, "dropout.position", 2, DType::kI64);
  }
}

int64_t CheckAttentionInputs(const AttentionShape& shape, const Tensor& q,
                             const Tensor& k, const Tensor& v) {
  CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0)
      << shape.heads << " heads, " << shape.kv_heads << " kv heads";
  const int64_t rows = shape.batch * shape.seq;
  CheckStrided(q, "q", rows, shape.heads * shape.head_dim);
  CheckStrided(k, "k", rows, shape.kv_heads * shape.head_dim);
  CheckStrided(v, "v", rows, shape.kv_heads * shape.head_dim);
  return rows;
}

}  // namespace

void CheckArgs(const LinearForwardArgs& args) {
  CheckWeight(args.weight);
  const int64_t rows = args.x.rows();
  CheckMatrix(args.x, "x", rows, args.weight.in());
  CheckMatrix(args.y, "y", rows, args.weight.out());
  if (args.bias.present()) CheckVector(args.bias, "bias", args.weight.out());
}

void CheckArgs(const LinearBackwardInputArgs& args) {
  CheckWeight(args.weight);
  const int64_t rows = args.dy.rows();
  CheckMatrix(args.dy, "dy", rows, args.weight.out());
  CheckMatrix(args.dx, "dx", rows, args.weight.in());
}

void CheckArgs(const LinearBackwardWeightArgs& args) {
  CheckTensor(args.x, "x");
  const int64_t in = args.x.columns(), out = args.dy.columns();
  CheckMatrix(args.dy, "dy", args.x.rows(), out);
  if (args.layout == WeightLayout::kInOut) {
    CheckMatrix(args.dw, "dw", in, out);
  } else {
    CheckMatrix(args.dw, "dw", out, in);
  }
  if (args.dbias.present()) CheckVector(args.dbias, "dbias", out);
}

void CheckArgs(const EmbeddingForwardArgs& args) {
  CheckTensor(args.ids, "ids", DType::kI32);
  CheckTensor(args.tokens, "tokens");
  const int64_t width = args.tokens.columns();
  CheckMatrix(args.y, "y", args.ids.elements(), width);
  if (args.positions.present()) {
    CheckMatrix(args.positions, "positions", args.positions.rows(), width);
    CHECK_GE(args.positions.rows(), args.ids.columns());
  }
}

void CheckArgs(const EmbeddingBackwardArgs& args) {
  CheckTensor(args.ids, "ids", DType::kI32);
  CheckTensor(args.dtokens, "dtokens");
  const int64_t width = args.dtokens.columns();
  CheckMatrix(args.dy, "dy", args.ids.elements(), width);
  if (args.dpositions.present()) {
    CheckMatrix(args.dpositions, "dpositions", args.dpositions.rows(), width);
    CHECK_GE(args.dpositions.rows(), args.ids.columns());
  }
}

void CheckArgs(const LayerNormForwardArgs& args) {
  CheckTensor(args.x, "x");
  const int64_t rows = args.x.rows(), width = args.x.columns();
  CHECK_GT(width, 0);
  CheckVector(args.gain, "gain", width);
  CheckMatrix(args.y, "y", rows, width);
  CheckVector(args.rstd, "rstd", rows);
  CHECK_EQ(args.bias.present(), args.mean.present());
  if (args.bias.present()) {
    CheckVector(args.bias, "bias", width);
    CheckVector(args.mean, "mean", rows);
  }
}

void CheckArgs(const LayerNormBackwardInputArgs& args) {
  CheckTensor(args.x, "x");
  const int64_t rows = args.x.rows(), width = args.x.columns();
  CHECK_GT(width, 0);
  CheckVector(args.gain, "gain", width);
  CheckVector(args.rstd, "rstd", rows);
  if (args.mean.present()) CheckVector(args.mean, "mean", rows);
  CheckMatrix(args.dy, "dy", rows, width);
  if (args.residual.present()) {
    CheckMatrix(args.residual, "residual", rows, width);
  }
  CheckMatrix(args.dx, "dx", rows, width);
}

void CheckArgs(const LayerNormBackwardWeightArgs& args) {
  CheckTensor(args.x, "x");
  const int64_t rows = args.x.rows(), width = args.x.columns();
  CheckVector(args.rstd, "rstd", rows);
  CheckMatrix(args.dy, "dy", rows, width);
  CheckVector(args.dgain, "dgain", width);
  CHECK_EQ(args.dbias.present(), args.mean.present());
  if (args.mean.present()) {
    CheckVector(args.mean, "mean", rows);
    CheckVector(args.dbias, "dbias", width);
  }
}

void CheckArgs(const RopeArgs& args) {
  CHECK(args.head_dim > 0 && args.head_dim % 2 == 0)
      << "head_dim " << args.head_dim;
  CheckStrided(args.x, "x", args.x.rows(), args.x.columns());
  CHECK_EQ(args.x.columns() % args.head_dim, 0);
  if (args.x.rows() > 0) {
    CHECK_GT(args.seq, 0);
    CHECK_EQ(args.x.rows() % args.seq, 0);
  }
  CheckMatrix(args.cosine, "cosine", args.cosine.rows(), args.head_dim / 2);
  CheckMatrix(args.sine, "sine", args.sine.rows(), args.head_dim / 2);
  CHECK_GE(args.cosine.rows(), args.seq);
  CHECK_GE(args.sine.rows(), args.seq);
}

void CheckArgs(const AttentionForwardArgs& args) {
  const AttentionShape& s = args.shape;
  const int64_t rows = CheckAttentionInputs(s, args.q, args.k, args.v);
  CheckDropout(args.dropout);
  CheckMatrix(args.y, "y", rows, s.heads * s.head_dim);
  CheckVector(args.logsum, "logsum", rows * s.heads);
}

void CheckArgs(const AttentionBackwardArgs& args) {
  const AttentionShape& s = args.shape;
  const int64_t rows = CheckAttentionInputs(s, args.q, args.k, args.v);
  CheckDropout(args.dropout);
  CheckMatrix(args.y, "y", rows, s.heads * s.head_dim);
  CheckVector(args.logsum, "logsum", rows * s.heads);
  CheckMatrix(args.dy, "dy", rows, s.heads * s.head_dim);
  CheckStrided(args.dq, "dq", rows, s.heads * s.head_dim);
  CheckStrided(args.dk, "dk", rows, s.kv_heads * s.head_dim);
  CheckStrided(args.dv, "dv", rows, s.kv_heads * s.head_dim);
}

void CheckArgs(const GeluForwardArgs& args) {
  CheckTensor(args.x, "x");
  CheckVector(args.y, "y", args.x.elements());
  CheckVector(args.slope, "slope", args.x.elements());
}

void CheckArgs(const MultiplyArgs& args) {
  CheckTensor(args.a, "a");
  CheckVector(args.b, "b", args.a.elements());
  CheckVector(args.y, "y", args.a.elements());
}

void CheckArgs(const SwigluForwardArgs& args) {
  const int64_t rows = args.y.rows(), columns = args.y.columns();
  CheckStrided(args.gate, "gate", rows, columns);
  CheckStrided(args.up, "up", rows, columns);
  CheckTensor(args.y, "y");
}

void CheckArgs(const SwigluBackwardArgs& args) {
  const int64_t rows = args.dy.rows(), columns = args.dy.columns();
  CheckStrided(args.gate, "gate", rows, columns);
  CheckStrided(args.up, "up", rows, columns);
  CheckTensor(args.dy, "dy");
  CheckStrided(args.dgate, "dgate", rows, columns);
  CheckStrided(args.dup, "dup", rows, columns);
}

void CheckArgs(const AddArgs& args) {
  CheckTensor(args.a, "a");
  CheckVector(args.b, "b", args.a.elements());
  CheckVector(args.y, "y", args.a.elements());
}

void CheckArgs(const DropoutArgs& args) {
  CheckTensor(args.x, "x");
  CHECK_EQ(args.x.shape().rank(), 3);
  CheckDropout(args.dropout);
  CheckVector(args.y, "y", args.x.elements());
  if (args.residual.present()) {
    CheckVector(args.residual, "residual", args.x.elements());
  }
}

void CheckArgs(const CrossEntropyForwardArgs& args) {
  CheckTensor(args.logits, "logits");
  const int64_t rows = args.logits.rows();
  CHECK_GT(args.logits.columns(), 0);
  CheckVector(args.labels, "labels", rows, DType::kI32);
  CheckVector(args.logsum, "logsum", rows);
  CheckTensor(args.sequence_loss, "sequence_loss", DType::kF64);
  const int64_t batch = args.sequence_loss.elements();
  CheckVector(args.sequence_valid, "sequence_valid", batch, DType::kI64);
  CHECK_EQ(batch * args.seq, rows);
}

void CheckArgs(const CrossEntropyBackwardArgs& args) {
  CheckTensor(args.logits, "logits");
  CheckVector(args.labels, "labels", args.logits.rows(), DType::kI32);
  CheckVector(args.logsum, "logsum", args.logits.rows());
}

void CheckArgs(const AdamwArgs& args) {
  CheckVector(args.scalars, "scalars", kUpdateScalars);
  CheckTensor(args.gradient, "gradient");
  const int64_t size = args.gradient.elements();
  CheckVector(args.weight, "weight", size);
  CheckVector(args.moment1, "moment1", size);
  CheckVector(args.moment2, "moment2", size);
  CheckVector(args.next_weight, "next_weight", size);
  CheckVector(args.next_moment1, "next_moment1", size);
  CheckVector(args.next_moment2, "next_moment2", size);
}

void CheckArgs(const SgdArgs& args) {
  CheckVector(args.scalars, "scalars", kUpdateScalars);
  CheckTensor(args.gradient, "gradient");
  const int64_t size = args.gradient.elements();
  CheckVector(args.weight, "weight", size);
  CheckVector(args.next_weight, "next_weight", size);
  if (args.momentum != 0) {
    CheckVector(args.velocity, "velocity", size);
    CheckVector(args.next_velocity, "next_velocity", size);
  }
}

void CheckArgs(const SumSquaresArgs& args) {
  CheckTensor(args.x, "x");
  CheckVector(args.sum, "sum", 1, DType::kF64);
}

void CheckArgs(const FillArgs& args) { CheckTensor(args.y, "y"); }

void CheckArgs(const CopyArgs& args) {
  CheckTensor(args.x, "x", args.x.type());
  CheckTensor(args.y, "y", args.x.type());
  CHECK(args.x.shape() == args.y.shape())
      << args.x.shape().ToString() << " to " << args.y.shape().ToString();
}

}  // namespace penstock::server::device
