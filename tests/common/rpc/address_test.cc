#include "common/rpc/address.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::rpc {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

TEST(AddressTest, PrintsWhatItParsed) {
  for (const std::string text : {"unix:/run/penstock/coordinator.sock",
                                 "127.0.0.1:7400", "host:0", "[::1]:7400"}) {
    ASSERT_OK_AND_ASSIGN(const Address address, ParseAddress(text));
    EXPECT_EQ(address.ToString(), text);
  }
}

TEST(AddressTest, KnowsLoopback) {
  EXPECT_TRUE(ParseAddress("[::1]:1")->loopback());
  EXPECT_TRUE(ParseAddress("[0:0:0:0:0:0:0:1]:1")->loopback());
  EXPECT_TRUE(ParseAddress("127.0.0.9:1")->loopback());
  EXPECT_TRUE(ParseAddress("localhost:1")->loopback());
  EXPECT_FALSE(ParseAddress("[::]:1")->loopback());
  EXPECT_FALSE(ParseAddress("0.0.0.0:1")->loopback());
  EXPECT_FALSE(ParseAddress("126.0.0.1:1")->loopback());
  EXPECT_FALSE(ParseAddress("127.example.org:1")->loopback());
}

TEST(AddressTest, KnowsWhatEachMachineHasOfItsOwn) {
  for (const std::string text : {"unix:/run/s", "127.0.0.9:1", "[::1]:1",
                                 "localhost:1", "0.0.0.0:1", "[::]:1"}) {
    EXPECT_TRUE(ParseAddress(text)->machines_own()) << text;
  }
  for (const std::string text : {"10.0.0.7:1", "[fe80::1]:1", "node-7:1"}) {
    EXPECT_FALSE(ParseAddress(text)->machines_own()) << text;
  }
}

TEST(AddressTest, RefusesWhatIsNoAddress) {
  const auto refused = [](const std::string& text, const char* why) {
    EXPECT_THAT(ParseAddress(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  };
  refused("unix:", "path is empty");
  refused(absl::StrCat("unix:", std::string(108, 'x')), "at most 107");
  refused("localhost", "no port");
  refused(":7400", "host is empty");
  refused("host:66000", "port");
  refused("host:12x", "port");
  refused("::1:7400", "brackets");
}

}  // namespace
}  // namespace penstock::common::rpc
