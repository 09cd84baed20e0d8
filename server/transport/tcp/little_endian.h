// Integers as the wire has them: little-endian, whatever the machine.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_LITTLE_ENDIAN_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>

namespace penstock::server::transport::tcp {

template <typename Unsigned>
void Store(Unsigned value, std::byte* at) {
  for (size_t i = 0; i < sizeof(value); ++i) {
    at[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  }
}

template <typename Unsigned>
Unsigned Load(const std::byte* at) {
  Unsigned value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) {
    value |= static_cast<Unsigned>(at[i]) << (8 * i);
  }
  return value;
}

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_LITTLE_ENDIAN_H_
