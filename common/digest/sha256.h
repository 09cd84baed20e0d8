// SHA-256, one-shot and incremental: weights_sha256, data fingerprints, spec
// digests. libcrypto does the work (docs/decisions/0001); no OpenSSL type
// leaves the .cc file.
#ifndef PENSTOCK_COMMON_DIGEST_SHA256_H_
#define PENSTOCK_COMMON_DIGEST_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::common::digest {

using Sha256Digest = std::array<uint8_t, 32>;

// Digests bytes that come in pieces; how they are cut does not matter.
// Thread-compatible; movable (a moved-from object may only be destroyed or
// assigned to).
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  void Update(absl::Span<const std::byte> bytes);
  // Eight little-endian bytes, whatever the machine: for lengths and counts,
  // so that (a, b) and (ab, "") digest differently.
  void UpdateU64(uint64_t value);

  // The digest of all bytes so far; the object starts afresh.
  Sha256Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The digest of `bytes`.
Sha256Digest Sha256Of(absl::string_view bytes);
Sha256Digest Sha256Of(absl::Span<const std::byte> bytes);

// 64 lower-case hexadecimal digits.
std::string ToHex(const Sha256Digest& digest);

}  // namespace penstock::common::digest

#endif  // PENSTOCK_COMMON_DIGEST_SHA256_H_
