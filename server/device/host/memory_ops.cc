#include "server/device/host/memory_ops.h"

#include <algorithm>
#include <cstring>

#include "server/device/half.h"

namespace penstock::server::device::host {

void Convert(const ConvertArgs& args) {
  for (int64_t i = 0; i < args.x.elements(); ++i) {
    uint32_t bits = 0;  // Of the value as f32.
    switch (args.x.type()) {
      case DType::kBf16:
        bits = BitsFromBf16(static_cast<const uint16_t*>(args.x.data())[i]);
        break;
      case DType::kF16:
        bits = BitsFromF16(static_cast<const uint16_t*>(args.x.data())[i]);
        break;
      default:
        bits = static_cast<const uint32_t*>(args.x.data())[i];
    }
    if (args.y.type() == DType::kBf16) {
      static_cast<uint16_t*>(args.y.data())[i] = Bf16FromBits(bits);
    } else {
      static_cast<uint32_t*>(args.y.data())[i] = bits;
    }
  }
}

void Fill(const FillArgs& args) {
  std::fill_n(args.y.f32(), args.y.elements(), args.value);
}

void Copy(const CopyArgs& args) {
  if (args.x.bytes() == 0) return;
  std::memmove(args.y.data(), args.x.data(), args.x.bytes());
}

}  // namespace penstock::server::device::host
