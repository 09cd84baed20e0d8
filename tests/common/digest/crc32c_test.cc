#include "common/digest/crc32c.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::common::digest {
namespace {

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return absl::Span<const std::byte>(
      reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// RFC 3720, B.4, and the usual check value.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(ExtendCrc32cPortable(0, Bytes("123456789")), 0xe3069283u);
}

TEST(Crc32cTest, TableAndInstructionAgreeAtEveryLengthAndOffset) {
  std::mt19937_64 random(1);
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; begin + size <= text.size(); ++size) {
      const auto part = Bytes(absl::string_view(text).substr(begin, size));
      EXPECT_EQ(Crc32c(part), ExtendCrc32cPortable(0, part));
    }
  }
}

TEST(Crc32cTest, ExtendsAcrossACut) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)),
                           Bytes(absl::string_view(text).substr(cut))),
              Crc32c(text));
  }
}

}  // namespace
}  // namespace penstock::common::digest
