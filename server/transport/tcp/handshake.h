// What is said on a new connection before it belongs to an edge: both sides
// prove that they know the epoch's secret. Byte layouts and the reasons are in
// docs/wire_protocol.md. Pure but for the HMAC; no sockets here.
//
//   dialler                                 listener
//   Hello (32 bytes)                ->
//                                   <-      Challenge (48): nonce, its proof
//   Proof (32)                      ->
//                                   <-      kWelcome (1): the edge stands
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_HANDSHAKE_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

inline constexpr uint8_t kProtocolVersion = 1;
inline constexpr size_t kHelloBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kListenerNonceBytes = 16;
inline constexpr size_t kChallengeBytes = kListenerNonceBytes + kProofBytes;
inline constexpr std::byte kWelcome{0x06};

// Stages are 16 bits wide on the wire.
inline constexpr int32_t kMaxStage = 65535;

using HelloBytes = std::array<std::byte, kHelloBytes>;
using ProofBytes = std::array<std::byte, kProofBytes>;
using ListenerNonce = std::array<std::byte, kListenerNonceBytes>;
using ChallengeBytes = std::array<std::byte, kChallengeBytes>;

struct Hello {
  Edge edge;  // REQUIRES: stages in [0, kMaxStage].
  int64_t epoch = 0;
  std::array<std::byte, 14> nonce{};

  friend bool operator==(const Hello&, const Hello&) = default;
};

HelloBytes EncodeHello(const Hello& hello);
// InvalidArgument: wrong magic, version or edge kind.
absl::StatusOr<Hello> DecodeHello(const HelloBytes& bytes);

enum class Prover : uint8_t { kDialler = 'D', kListener = 'L' };

// HMAC-SHA256(secret, prover, hello, listener's nonce).
ProofBytes Prove(absl::string_view secret, Prover prover,
                 const HelloBytes& hello, const ListenerNonce& nonce);
// Takes the same time whether and where they differ.
bool SameProof(const ProofBytes& a, const ProofBytes& b);

ChallengeBytes MakeChallenge(absl::string_view secret, const HelloBytes& hello,
                             const ListenerNonce& nonce);
// The dialler's proof; PermissionDenied when the listener's is wrong.
absl::StatusOr<ProofBytes> AnswerChallenge(absl::string_view secret,
                                           const HelloBytes& hello,
                                           const ChallengeBytes& challenge);

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_HANDSHAKE_H_
