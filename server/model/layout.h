// Static memory layouts: named tensors at fixed offsets of one block of bytes.
//
// Slots, workspaces and parameter buffers are laid out once from shapes alone,
// so their sizes can be predicted to the byte and a step allocates nothing.
#ifndef PENSTOCK_SERVER_MODEL_LAYOUT_H_
#define PENSTOCK_SERVER_MODEL_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/device/tensor.h"

namespace penstock::server::model {

// Every tensor and every block of a layout starts at a multiple of this.
inline constexpr int64_t kAlignment = 64;

// `bytes` rounded up to kAlignment.
int64_t Aligned(int64_t bytes);

// Where one tensor lies in a block.
struct Field {
  std::string name;  // Shows in tests and memory reports.
  int64_t offset = 0;
  device::DType type = device::DType::kF32;
  device::Shape shape;

  int64_t bytes() const;
  // The tensor inside the block that starts at `base`.
  device::Tensor At(std::byte* base) const;
};

// Thread-compatible while it is filled, then immutable.
class Layout {
 public:
  // Places a tensor after the ones before it and returns where.
  Field Add(absl::string_view name, device::DType type,
            const device::Shape& shape);
  // Places `bytes` opaque bytes and returns their offset.
  int64_t AddBlock(int64_t bytes);

  // Bytes of the whole block: a multiple of kAlignment, 0 when empty.
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_LAYOUT_H_
