#include "server/transport/transport.h"

#include "absl/strings/str_cat.h"

namespace penstock::server::transport {

std::string ToString(const Tag& tag) {
  return absl::StrCat("epoch ", tag.epoch, " step ", tag.step, " micro-batch ",
                      tag.micro_batch);
}

uint64_t FormDigest(const device::Tensor& tensor) {
  // FNV-1a over type, rank and dimensions, eight little-endian bytes each.
  uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&digest](uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      digest ^= (value >> (8 * byte)) & 0xff;
      digest *= 0x100000001b3;
    }
  };
  add(static_cast<uint64_t>(tensor.type()));
  add(static_cast<uint64_t>(tensor.shape().rank()));
  for (int i = 0; i < tensor.shape().rank(); ++i) {
    add(static_cast<uint64_t>(tensor.shape().dim(i)));
  }
  return digest;
}

}  // namespace penstock::server::transport
