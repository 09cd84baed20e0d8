#include "server/transport/tcp/frame.h"

#include <random>

#include "gmock/gmock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

const Frame kMessage = {
    .type = FrameType::kMessage,
    .tag = {.epoch = 7, .step = 1LL << 40, .micro_batch = -1},
    .payload_bytes = 8 << 20,
    .form_digest = 0x0123456789abcdef,
    .number = 0xfffffffe};
const Frame kGrant = {.type = FrameType::kGrant, .granted = 5, .received = 3};

// As a person would write it down from docs/wire_protocol.md.
std::string Hex(const FrameBytes& bytes) {
  std::string hex;
  for (const std::byte byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(byte));
    hex += two;
  }
  return hex;
}

TEST(FrameTest, BytesAreAsDocumented) {
  EXPECT_EQ(Hex(EncodeFrame(kMessage)).substr(0, 88),
            "01000000ffffffff0700000000000000"
            "00000000000100000000800000000000"
            "efcdab8967452301feffffff");
  EXPECT_EQ(Hex(EncodeFrame(kGrant)).substr(0, 88),
            "02000000000000000000000000000000"
            "05000000000000000300000000000000"
            "000000000000000000000000");
}

TEST(FrameTest, EveryTypeSurvivesTheWire) {
  for (const Frame& frame :
       {kMessage, kGrant, Frame{.type = FrameType::kGoodbye}}) {
    EXPECT_THAT(DecodeFrame(EncodeFrame(frame)), IsOkAndHolds(frame));
  }
}

TEST(FrameTest, EveryFlippedBitIsFound) {
  for (const Frame& frame : {kMessage, kGrant}) {
    const FrameBytes good = EncodeFrame(frame);
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      FrameBytes bad = good;
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_THAT(DecodeFrame(bad), StatusIs(absl::StatusCode::kDataLoss, _));
    }
  }
}

TEST(FrameTest, RandomBytesAreNoFrame) {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    FrameBytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_THAT(DecodeFrame(bytes),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("malformed")));
  }
}

}  // namespace
}  // namespace penstock::server::transport::tcp
