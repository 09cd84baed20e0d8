#include "common/digest/sha256.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::common::digest {
namespace {

// FIPS 180-4 examples.
TEST(Sha256Test, KnownAnswers) {
  EXPECT_EQ(ToHex(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb924"
            "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223"
            "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, HowTheBytesAreCutDoesNotMatter) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t cut = 0; cut <= text.size(); cut += 13) {
    Sha256 sha;
    sha.Update(absl::string_view(text).substr(0, cut));
    sha.Update(absl::string_view(text).substr(cut));
    EXPECT_EQ(sha.Finish(), Sha256Of(text)) << cut;
  }
}

TEST(Sha256Test, StartsAfreshAfterFinish) {
  Sha256 sha;
  sha.Update("first");
  sha.Finish();
  sha.Update("abc");
  EXPECT_EQ(sha.Finish(), Sha256Of("abc"));
}

TEST(Sha256Test, StateMovesAlong) {
  Sha256 sha;
  sha.Update("a");
  Sha256 moved = std::move(sha);
  moved.Update("bc");
  EXPECT_EQ(moved.Finish(), Sha256Of("abc"));
}

TEST(Sha256Test, NumbersAreLittleEndian) {
  Sha256 sha;
  sha.UpdateU64(0x0102030405060708);
  EXPECT_EQ(sha.Finish(), Sha256Of("\x08\x07\x06\x05\x04\x03\x02\x01"));
}

}  // namespace
}  // namespace penstock::common::digest
