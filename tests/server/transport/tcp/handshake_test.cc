#include "server/transport/tcp/handshake.h"

#include "gmock/gmock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

Hello SomeHello() {
  Hello hello{.edge = {3, 4, EdgeKind::kGradient}, .epoch = 0x1122334455};
  for (size_t i = 0; i < hello.nonce.size(); ++i) {
    hello.nonce[i] = static_cast<std::byte>(0xa0 + i);
  }
  return hello;
}

ListenerNonce SomeNonce() {
  ListenerNonce nonce;
  nonce.fill(std::byte{9});
  return nonce;
}

TEST(HandshakeTest, HelloBytesAreAsDocumented) {
  std::string hex;
  for (const std::byte byte : EncodeHello(SomeHello())) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(byte));
    hex += two;
  }
  EXPECT_EQ(hex,
            "504e534b0102030004005544332211000000"
            "a0a1a2a3a4a5a6a7a8a9aaabacad");
}

TEST(HandshakeTest, HelloSurvivesTheWire) {
  EXPECT_THAT(DecodeHello(EncodeHello(SomeHello())), IsOkAndHolds(SomeHello()));
}

TEST(HandshakeTest, WrongMagicVersionAndKindAreRefused) {
  HelloBytes bytes = EncodeHello(SomeHello());
  bytes[0] = std::byte{'G'};
  EXPECT_THAT(DecodeHello(bytes), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("not a Penstock")));
  bytes = EncodeHello(SomeHello());
  bytes[4] = std::byte{9};
  EXPECT_THAT(DecodeHello(bytes), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("version 9")));
  for (const int kind : {0, 5, 255}) {
    bytes = EncodeHello(SomeHello());
    bytes[5] = static_cast<std::byte>(kind);
    EXPECT_THAT(DecodeHello(bytes), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("edge kind")));
  }
}

TEST(HandshakeTest, ProofIsHmacSha256) {
  // Python: hmac.new(secret, b"D" + hello + nonce, hashlib.sha256).hexdigest()
  const ProofBytes proof =
      Prove(kSecret, Prover::kDialler, EncodeHello(SomeHello()), SomeNonce());
  std::string hex;
  for (const std::byte byte : proof) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(byte));
    hex += two;
  }
  EXPECT_EQ(hex,
            "681d31ff3d0af1261083b36dc53db373e547176a623c275b687453d0b3b2cf96");
}

TEST(HandshakeTest, BothSidesProveTheSecret) {
  const HelloBytes hello = EncodeHello(SomeHello());
  const ListenerNonce nonce = SomeNonce();
  auto proof =
      AnswerChallenge(kSecret, hello, MakeChallenge(kSecret, hello, nonce));
  ASSERT_OK(proof.status());
  EXPECT_TRUE(
      SameProof(*proof, Prove(kSecret, Prover::kDialler, hello, nonce)));
}

TEST(HandshakeTest, AListenerWithAnotherSecretIsFound) {
  const HelloBytes hello = EncodeHello(SomeHello());
  EXPECT_THAT(
      AnswerChallenge(kSecret, hello,
                      MakeChallenge("another secret..", hello, SomeNonce())),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("secret")));
}

TEST(HandshakeTest, AProofHoldsForOneSideEdgeAndPairOfNoncesOnly) {
  const HelloBytes hello = EncodeHello(SomeHello());
  const ProofBytes proof =
      Prove(kSecret, Prover::kListener, hello, SomeNonce());
  // A challenge echoed as the dialler's proof.
  EXPECT_FALSE(
      SameProof(proof, Prove(kSecret, Prover::kDialler, hello, SomeNonce())));
  Hello other = SomeHello();
  other.nonce[0] = std::byte{0};
  EXPECT_FALSE(SameProof(proof, Prove(kSecret, Prover::kListener,
                                      EncodeHello(other), SomeNonce())));
  other = SomeHello();
  other.edge.source_stage = 5;
  EXPECT_FALSE(SameProof(proof, Prove(kSecret, Prover::kListener,
                                      EncodeHello(other), SomeNonce())));
  ListenerNonce nonce = SomeNonce();
  nonce[15] = std::byte{0};
  EXPECT_FALSE(
      SameProof(proof, Prove(kSecret, Prover::kListener, hello, nonce)));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
