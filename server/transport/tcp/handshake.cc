#include "server/transport/tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "server/transport/tcp/little_endian.h"

namespace penstock::server::transport::tcp {
namespace {

// Where the fields of a hello are.
constexpr char kMagic[4] = {'P', 'N', 'S', 'K'};
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 5;
constexpr size_t kSourceAt = 6;
constexpr size_t kTargetAt = 8;
constexpr size_t kEpochAt = 10;
constexpr size_t kNonceAt = 18;

}  // namespace

HelloBytes EncodeHello(const Hello& hello) {
  for (const int32_t stage :
       {hello.edge.source_stage, hello.edge.target_stage}) {
    CHECK(0 <= stage && stage <= kMaxStage) << ToString(hello.edge);
  }
  HelloBytes bytes{};
  std::byte* at = bytes.data();
  std::memcpy(at, kMagic, sizeof(kMagic));
  Store(kProtocolVersion, at + kVersionAt);
  Store(static_cast<uint8_t>(hello.edge.kind), at + kKindAt);
  Store(static_cast<uint16_t>(hello.edge.source_stage), at + kSourceAt);
  Store(static_cast<uint16_t>(hello.edge.target_stage), at + kTargetAt);
  Store(static_cast<uint64_t>(hello.epoch), at + kEpochAt);
  std::copy(hello.nonce.begin(), hello.nonce.end(), bytes.begin() + kNonceAt);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(const HelloBytes& bytes) {
  const std::byte* at = bytes.data();
  if (std::memcmp(at, kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError("not a Penstock data connection");
  }
  const uint8_t version = Load<uint8_t>(at + kVersionAt);
  if (version != kProtocolVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("data protocol version ", version, ", this side speaks ",
                     kProtocolVersion));
  }
  const uint8_t kind = Load<uint8_t>(at + kKindAt);
  if (kind < static_cast<uint8_t>(EdgeKind::kActivation) ||
      kind > static_cast<uint8_t>(EdgeKind::kTiedSum)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown edge kind ", kind));
  }
  Hello hello{.edge = {.source_stage = Load<uint16_t>(at + kSourceAt),
                       .target_stage = Load<uint16_t>(at + kTargetAt),
                       .kind = static_cast<EdgeKind>(kind)},
              .epoch = static_cast<int64_t>(Load<uint64_t>(at + kEpochAt))};
  std::copy(bytes.begin() + kNonceAt, bytes.end(), hello.nonce.begin());
  return hello;
}

ProofBytes Prove(absl::string_view secret, Prover prover,
                 const HelloBytes& hello, const ListenerNonce& nonce) {
  std::array<unsigned char, 1 + kHelloBytes + kListenerNonceBytes> text;
  text[0] = static_cast<unsigned char>(prover);
  std::memcpy(text.data() + 1, hello.data(), hello.size());
  std::memcpy(text.data() + 1 + hello.size(), nonce.data(), nonce.size());
  ProofBytes proof;
  unsigned int length = 0;
  CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             text.data(), text.size(),
             reinterpret_cast<unsigned char*>(proof.data()),
             &length) != nullptr);
  CHECK_EQ(length, proof.size());
  return proof;
}

bool SameProof(const ProofBytes& a, const ProofBytes& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

ChallengeBytes MakeChallenge(absl::string_view secret, const HelloBytes& hello,
                             const ListenerNonce& nonce) {
  const ProofBytes proof = Prove(secret, Prover::kListener, hello, nonce);
  ChallengeBytes challenge;
  std::copy(nonce.begin(), nonce.end(), challenge.begin());
  std::copy(proof.begin(), proof.end(), challenge.begin() + nonce.size());
  return challenge;
}

absl::StatusOr<ProofBytes> AnswerChallenge(absl::string_view secret,
                                           const HelloBytes& hello,
                                           const ChallengeBytes& challenge) {
  ListenerNonce nonce;
  ProofBytes proof;
  std::copy_n(challenge.begin(), nonce.size(), nonce.begin());
  std::copy_n(challenge.begin() + nonce.size(), proof.size(), proof.begin());
  if (!SameProof(proof, Prove(secret, Prover::kListener, hello, nonce))) {
    return absl::PermissionDeniedError(
        "who listens there does not know the epoch's secret");
  }
  return Prove(secret, Prover::kDialler, hello, nonce);
}

}  // namespace penstock::server::transport::tcp
