#include "common/digest/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "common/log/log.h"

namespace penstock::common::digest {
namespace {

// libcrypto's digest calls fail only when memory runs out or the library is
// broken: nothing a caller could handle.
void CheckCall(int result, const char* call) {
  CHECK(result == 1) << "libcrypto: " << call << " failed";
}

absl::string_view AsView(absl::Span<const std::byte> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
}

}  // namespace

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {
    CHECK(evp != nullptr) << "libcrypto: no memory for a digest";
    Start();
  }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void Start() {
    CheckCall(EVP_DigestInit_ex(evp, EVP_sha256(), nullptr), "DigestInit");
  }

  EVP_MD_CTX* const evp;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view bytes) {
  CheckCall(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()),
            "DigestUpdate");
}

void Sha256::Update(absl::Span<const std::byte> bytes) {
  Update(AsView(bytes));
}

void Sha256::UpdateU64(uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  Update(absl::string_view(bytes, sizeof(bytes)));
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  CheckCall(EVP_DigestFinal_ex(context_->evp, digest.data(), &size),
            "DigestFinal");
  CHECK_EQ(size, digest.size());
  context_->Start();
  return digest;
}

Sha256Digest Sha256Of(absl::string_view bytes) {
  Sha256 sha;
  sha.Update(bytes);
  return sha.Finish();
}

Sha256Digest Sha256Of(absl::Span<const std::byte> bytes) {
  return Sha256Of(AsView(bytes));
}

std::string ToHex(const Sha256Digest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace penstock::common::digest
