#include "server/device/host/memory_ops.h"

#include <algorithm>
#include <cstring>

namespace penstock::server::device::host {

void Fill(const FillArgs& args) {
  std::fill_n(args.y.f32(), args.y.elements(), args.value);
}

void Copy(const CopyArgs& args) {
  if (args.x.bytes() == 0) return;
  std::memmove(args.y.data(), args.x.data(), args.x.bytes());
}

}  // namespace penstock::server::device::host
