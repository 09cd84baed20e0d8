// Device memory for tests: guarded, filled through the copies that the device
// offers, read back only after the stream is idle.
//
//   Harness h(device);
//   const Tensor x = h.In(Shape({2, 3}), values);
//   const Tensor y = h.Out(Shape({2, 3}));
//   h.ops().Add(h.stream(), {.a = x, .b = x, .y = y});
//   EXPECT_THAT(h.Read(y), ...);
#ifndef PENSTOCK_TESTS_CONFORMANCE_DEVICE_HARNESS_H_
#define PENSTOCK_TESTS_CONFORMANCE_DEVICE_HARNESS_H_

#include <memory>
#include <vector>

#include "server/device/device.h"
#include "server/device/ops.h"
#include "server/device/tensor.h"

namespace penstock::server::device {

// Confined to the test's thread.
class Harness {
 public:
  explicit Harness(Device& device);
  // Expects that inputs, guard zones and the gaps of strided tensors are as
  // they were.
  ~Harness();

  Device& device() { return device_; }
  Ops& ops() { return device_.ops(); }
  Stream& stream() { return *stream_; }

  // row_stride 0: contiguous.
  Tensor In(const Shape& shape, const std::vector<float>& values,
            int64_t row_stride = 0);
  Tensor InI32(const Shape& shape, const std::vector<int32_t>& values);
  Tensor InI64(const Shape& shape, const std::vector<int64_t>& values);
  // May be changed by the op.
  Tensor InOut(const Shape& shape, const std::vector<float>& values,
               int64_t row_stride = 0);
  // Filled with NaN: what the op does not assign shows.
  Tensor Out(const Shape& shape, int64_t row_stride = 0,
             DType type = DType::kF32);
  // A weight of (in, out) values in row-major (in, out) order, in `layout`,
  // packed.
  Weight PackedWeight(int64_t in, int64_t out, WeightLayout layout,
                      const std::vector<float>& in_out_values);

  // Synchronises the stream and reads the tensor's elements.
  std::vector<double> Read(const Tensor& tensor);

 private:
  struct Block;

  Tensor Add(DType type, const Shape& shape, int64_t row_stride,
             const void* values, bool input);
  std::vector<std::byte> Image(const Block& block);
  void CheckGuards(const Block& block, const std::vector<std::byte>& image);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

// Seeded values in (-scale, scale).
std::vector<float> Random(int64_t size, uint32_t seed, float scale = 1);
std::vector<int32_t> RandomIds(int64_t size, uint32_t seed, int32_t limit);

}  // namespace penstock::server::device

#endif  // PENSTOCK_TESTS_CONFORMANCE_DEVICE_HARNESS_H_
