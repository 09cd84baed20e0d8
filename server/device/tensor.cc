#include "server/device/tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"

namespace penstock::server::device {

int64_t ElementBytes(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBf16:
    case DType::kF16:
      return 2;
  }
  LOG(FATAL) << "dtype " << static_cast<int>(type);
  return 0;
}

const char* Name(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
  }
  return "?";
}

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const int64_t> dims)
    : rank_(static_cast<int>(dims.size())) {
  CHECK_LE(dims.size(), static_cast<size_t>(kMaxRank));
  for (int i = 0; i < rank_; ++i) {
    CHECK_GE(dims[i], 0);
    dims_[i] = dims[i];
  }
}

int64_t Shape::elements() const { return rows() * columns(); }

int64_t Shape::rows() const {
  int64_t rows = 1;
  for (int i = 0; i + 1 < rank_; ++i) rows *= dims_[i];
  return rows;
}

std::string Shape::ToString() const {
  return absl::StrCat(
      "(", absl::StrJoin(absl::MakeConstSpan(dims_.data(), rank_), ", "), ")");
}

Tensor::Tensor(void* data, DType type, const Shape& shape)
    : Tensor(data, type, shape, shape.columns()) {}

Tensor::Tensor(void* data, DType type, const Shape& shape, int64_t row_stride)
    : data_(data), type_(type), shape_(shape), row_stride_(row_stride) {
  CHECK_GE(row_stride, shape.columns());
}

int64_t Tensor::bytes() const {
  CHECK(contiguous());
  return elements() * ElementBytes(type_);
}

float* Tensor::f32() const {
  CHECK(type_ == DType::kF32) << Name(type_);
  return static_cast<float*>(data_);
}
double* Tensor::f64() const {
  CHECK(type_ == DType::kF64) << Name(type_);
  return static_cast<double*>(data_);
}
int32_t* Tensor::i32() const {
  CHECK(type_ == DType::kI32) << Name(type_);
  return static_cast<int32_t*>(data_);
}
int64_t* Tensor::i64() const {
  CHECK(type_ == DType::kI64) << Name(type_);
  return static_cast<int64_t*>(data_);
}

Tensor Tensor::Columns(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin <= end && end <= columns())
      << begin << ".." << end << " of " << shape_.ToString();
  return Tensor(static_cast<std::byte*>(data_) + begin * ElementBytes(type_),
                type_, Shape({rows(), end - begin}), row_stride_);
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin <= end && end <= rows())
      << begin << ".." << end << " of " << shape_.ToString();
  return Tensor(static_cast<std::byte*>(data_) +
                    begin * row_stride_ * ElementBytes(type_),
                type_, Shape({end - begin, columns()}), row_stride_);
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  CHECK(contiguous());
  CHECK_EQ(shape.elements(), elements());
  return Tensor(data_, type_, shape);
}

}  // namespace penstock::server::device
