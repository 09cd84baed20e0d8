// A borrowed, typed view of device memory.
//
// A tensor is at most kMaxRank-dimensional, row-major. Rows (the last
// dimension) are contiguous; consecutive rows may be `row_stride` elements
// apart, so that q, k and v can be columns of one (rows, 3*width) product.
// Immutable value; it never owns memory (Buffer in device.h does).
#ifndef PENSTOCK_SERVER_DEVICE_TENSOR_H_
#define PENSTOCK_SERVER_DEVICE_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/types/span.h"

namespace penstock::server::device {

enum class DType : uint8_t {
  kF32 = 1,
  kF64 = 2,
  kBf16 = 3,
  kF16 = 4,
  kI32 = 5,
  kI64 = 6
};

// Bytes of one element.
int64_t ElementBytes(DType type);
const char* Name(DType type);  // "f32"

inline constexpr int kMaxRank = 4;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t dim(int index) const { return dims_[index]; }
  // Product of all dimensions; 1 for rank 0.
  int64_t elements() const;
  // Product of all but the last dimension, and the last dimension.
  int64_t rows() const;
  int64_t columns() const { return rank_ == 0 ? 1 : dims_[rank_ - 1]; }
  std::string ToString() const;  // "(2, 128, 64)"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

class Tensor {
 public:
  // An absent tensor: optional arguments of ops take it. data() is null.
  Tensor() = default;
  // Contiguous rows.
  Tensor(void* data, DType type, const Shape& shape);
  // REQUIRES: row_stride >= shape.columns().
  Tensor(void* data, DType type, const Shape& shape, int64_t row_stride);

  bool present() const { return data_ != nullptr; }
  void* data() const { return data_; }
  DType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t rows() const { return shape_.rows(); }
  int64_t columns() const { return shape_.columns(); }
  int64_t elements() const { return shape_.elements(); }
  int64_t row_stride() const { return row_stride_; }  // Elements.
  bool contiguous() const { return row_stride_ == shape_.columns(); }
  // REQUIRES: contiguous().
  int64_t bytes() const;

  // Typed pointers. REQUIRES: type() is that type.
  float* f32() const;
  double* f64() const;
  int32_t* i32() const;
  int64_t* i64() const;

  // Columns [begin, end) of every row: the same rows, row_stride kept.
  Tensor Columns(int64_t begin, int64_t end) const;
  // Rows [begin, end), as a two-dimensional tensor.
  Tensor Rows(int64_t begin, int64_t end) const;
  // The same elements with another shape. REQUIRES: contiguous().
  Tensor Reshaped(const Shape& shape) const;

 private:
  void* data_ = nullptr;
  DType type_ = DType::kF32;
  Shape shape_;
  int64_t row_stride_ = 0;
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_TENSOR_H_
