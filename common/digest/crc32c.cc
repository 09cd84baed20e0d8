#include "common/digest/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace penstock::common::digest {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(
    uint32_t crc, absl::Span<const std::byte> bytes) {
  uint64_t state = ~crc;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  uint32_t tail = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++at) {
    tail = _mm_crc32_u8(tail, static_cast<uint8_t>(*at));
  }
  return ~tail;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, absl::Span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc = kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCrc32cPortable(crc, bytes);
}

uint32_t Crc32c(absl::Span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

uint32_t Crc32c(absl::string_view bytes) {
  return Crc32c(absl::Span<const std::byte>(
      reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
}

}  // namespace penstock::common::digest
