// CRC-32C (Castagnoli), as iSCSI and the frames of the data plane use it:
// reflected polynomial 0x82f63b78, start and final xor 0xffffffff. It finds
// damage, not malice.
#ifndef PENSTOCK_COMMON_DIGEST_CRC32C_H_
#define PENSTOCK_COMMON_DIGEST_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::common::digest {

// The checksum of `bytes`; the CPU's CRC instruction where it has one.
uint32_t Crc32c(absl::Span<const std::byte> bytes);
uint32_t Crc32c(absl::string_view bytes);

// The checksum of A followed by `bytes`, given the checksum of A:
// ExtendCrc32c(Crc32c(a), b) == Crc32c(a + b).
uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes);

// The same by table, on every machine: the oracle of the instruction's path.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::Span<const std::byte> bytes);

}  // namespace penstock::common::digest

#endif  // PENSTOCK_COMMON_DIGEST_CRC32C_H_
