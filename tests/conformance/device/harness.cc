#include "tests/conformance/device/harness.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/time/time.h"
#include "common/log/log.h"
#include "gtest/gtest.h"

namespace penstock::server::device {
namespace {

constexpr int64_t kGuardBytes = 192;
constexpr std::byte kGuard{0x5A};

template <typename T>
double Element(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

double Decode(DType type, const std::byte* at) {
  switch (type) {
    case DType::kF32:
      return Element<float>(at);
    case DType::kF64:
      return Element<double>(at);
    case DType::kI32:
      return Element<int32_t>(at);
    case DType::kI64:
      return static_cast<double>(Element<int64_t>(at));
    case DType::kBf16:
    case DType::kF16:
      break;
  }
  LOG(FATAL) << "tests read no " << Name(type);
  return 0;
}

}  // namespace

struct Harness::Block {
  std::unique_ptr<Buffer> buffer;
  Tensor tensor;
  bool input = false;
  std::vector<std::byte> image;  // What was uploaded, guards included.

  // Where row r begins in the image, and how long rows are, in bytes.
  int64_t RowBegin(int64_t r) const {
    return kGuardBytes + r * tensor.row_stride() * ElementBytes(tensor.type());
  }
  int64_t RowBytes() const {
    return tensor.columns() * ElementBytes(tensor.type());
  }
};

Harness::Harness(Device& device) : device_(device) {
  auto stream = device.CreateStream();
  CHECK_OK(stream.status());
  stream_ = *std::move(stream);
}

Harness::~Harness() {
  for (const auto& block : blocks_) {
    const std::vector<std::byte> image = Image(*block);
    CheckGuards(*block, image);
    if (block->input) {
      EXPECT_TRUE(image == block->image) << "an input was changed";
    }
  }
}

Tensor Harness::Add(DType type, const Shape& shape, int64_t row_stride,
                    const void* values, bool input) {
  auto block = std::make_unique<Block>();
  const int64_t stride = row_stride == 0 ? shape.columns() : row_stride;
  const int64_t bytes =
      2 * kGuardBytes + shape.rows() * stride * ElementBytes(type);
  auto buffer = device_.Allocate(bytes, MemoryUse::kWorkspace);
  CHECK_OK(buffer.status());
  block->buffer = *std::move(buffer);
  block->tensor =
      Tensor(block->buffer->data() + kGuardBytes, type, shape, stride);
  block->input = input;
  block->image.assign(bytes, kGuard);
  const int64_t row_bytes = block->RowBytes();
  for (int64_t r = 0; r < shape.rows() && row_bytes > 0; ++r) {
    std::byte* row = block->image.data() + block->RowBegin(r);
    if (values == nullptr) {
      std::memset(row, 0xFF, row_bytes);
    } else {
      std::memcpy(row, static_cast<const std::byte*>(values) + r * row_bytes,
                  row_bytes);
    }
  }
  auto staging = device_.Allocate(bytes, MemoryUse::kPinnedHost);
  CHECK_OK(staging.status());
  std::memcpy((*staging)->data(), block->image.data(), bytes);
  device_.CopyToDevice(*stream_, block->buffer->data(), (*staging)->data(),
                       bytes);
  CHECK_OK(stream_->Synchronize(absl::InfiniteFuture()));
  blocks_.push_back(std::move(block));
  return blocks_.back()->tensor;
}

Tensor Harness::In(const Shape& shape, const std::vector<float>& values,
                   int64_t row_stride) {
  CHECK_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return Add(DType::kF32, shape, row_stride, values.data(), true);
}

Tensor Harness::InI32(const Shape& shape, const std::vector<int32_t>& values) {
  CHECK_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return Add(DType::kI32, shape, 0, values.data(), true);
}

Tensor Harness::InI64(const Shape& shape, const std::vector<int64_t>& values) {
  CHECK_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return Add(DType::kI64, shape, 0, values.data(), true);
}

Tensor Harness::InOut(const Shape& shape, const std::vector<float>& values,
                      int64_t row_stride) {
  CHECK_EQ(shape.elements(), static_cast<int64_t>(values.size()));
  return Add(DType::kF32, shape, row_stride, values.data(), false);
}

Tensor Harness::Out(const Shape& shape, int64_t row_stride, DType type) {
  return Add(type, shape, row_stride, nullptr, false);
}

Weight Harness::PackedWeight(int64_t in, int64_t out, WeightLayout layout,
                             const std::vector<float>& in_out_values) {
  Weight weight{.layout = layout};
  if (layout == WeightLayout::kInOut) {
    weight.master = In(Shape({in, out}), in_out_values);
  } else {
    std::vector<float> transposed(in_out_values.size());
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        transposed[o * in + i] = in_out_values[i * out + o];
      }
    }
    weight.master = In(Shape({out, in}), transposed);
  }
  const int64_t bytes = ops().PackedWeightBytes(in, out);
  if (bytes > 0) {
    weight.packed = Out(Shape({bytes / ElementBytes(DType::kF32)}));
    ops().PackWeight(stream(), weight);
  }
  return weight;
}

std::vector<double> Harness::Read(const Tensor& tensor) {
  for (const auto& block : blocks_) {
    if (block->tensor.data() != tensor.data()) continue;
    const std::vector<std::byte> image = Image(*block);
    CheckGuards(*block, image);
    std::vector<double> values;
    values.reserve(tensor.elements());
    const int64_t size = ElementBytes(tensor.type());
    for (int64_t r = 0; r < tensor.rows(); ++r) {
      const std::byte* row = image.data() + block->RowBegin(r);
      for (int64_t c = 0; c < tensor.columns(); ++c) {
        values.push_back(Decode(tensor.type(), row + c * size));
      }
    }
    return values;
  }
  LOG(FATAL) << "not a tensor of this harness";
  return {};
}

std::vector<std::byte> Harness::Image(const Block& block) {
  const int64_t bytes = block.buffer->bytes();
  auto staging = device_.Allocate(bytes, MemoryUse::kPinnedHost);
  CHECK_OK(staging.status());
  device_.CopyToHost(*stream_, (*staging)->data(), block.buffer->data(), bytes);
  CHECK_OK(stream_->Synchronize(absl::InfiniteFuture()));
  return std::vector<std::byte>((*staging)->data(), (*staging)->data() + bytes);
}

void Harness::CheckGuards(const Block& block,
                          const std::vector<std::byte>& image) {
  // Before, between and behind the rows.
  int64_t at = 0;
  for (int64_t r = 0; r <= block.tensor.rows(); ++r) {
    const bool last = r == block.tensor.rows();
    const int64_t end =
        last ? static_cast<int64_t>(image.size()) : block.RowBegin(r);
    for (; at < end; ++at) {
      if (image[at] == kGuard) continue;
      ADD_FAILURE() << "byte " << at - kGuardBytes << " of a tensor of "
                    << block.tensor.shape().ToString()
                    << ", outside its rows, was written";
      return;
    }
    if (!last) at = block.RowBegin(r) + block.RowBytes();
  }
}

std::vector<float> Random(int64_t size, uint32_t seed, float scale) {
  std::mt19937 generator(seed);
  std::vector<float> values(size);
  for (float& value : values) {
    value = (static_cast<float>(generator() >> 8) * 0x1p-23f - 1) * scale;
  }
  return values;
}

std::vector<int32_t> RandomIds(int64_t size, uint32_t seed, int32_t limit) {
  std::mt19937 generator(seed);
  std::vector<int32_t> values(size);
  for (int32_t& value : values) value = generator() % limit;
  return values;
}

}  // namespace penstock::server::device
