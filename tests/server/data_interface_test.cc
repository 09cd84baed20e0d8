#include "server/data_interface.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Towards(absl::string_view coordinator) {
  const auto address = common::rpc::ParseAddress(coordinator);
  if (!address.ok()) return address.status();
  return InterfaceTowards(*address);
}

TEST(InterfaceTowardsTest, ACoordinatorOfThisMachineIsOnLoopback) {
  EXPECT_THAT(Towards("unix:/run/penstock/coordinator.sock"),
              IsOkAndHolds("127.0.0.1"));
  EXPECT_THAT(Towards("127.0.0.1:7400"), IsOkAndHolds("127.0.0.1"));
}

// The kernel's answer, not the host as it was written.
TEST(InterfaceTowardsTest, IsThisEndOfTheRoute) {
  EXPECT_THAT(Towards("127.0.0.2:7400"), IsOkAndHolds("127.0.0.1"));
  EXPECT_THAT(Towards("0.0.0.0:7400"), IsOkAndHolds("127.0.0.1"));
}

TEST(InterfaceTowardsTest, AnUnknownNameIsUnavailableAndNamesTheFlag) {
  // Longer than a name can be: no name server is asked.
  EXPECT_THAT(Towards(std::string(300, 'a') + ":7400"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("aaa:7400 cannot be found: "),
                             HasSubstr("say it with --data-interface"))));
}

TEST(CheckOneInterfaceTest, AllInterfacesAreNoAddressForOthers) {
  for (const std::string all : {"0.0.0.0", "::", "0:0::0"}) {
    EXPECT_THAT(CheckOneInterface(all),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(all + " is all interfaces")));
  }
  for (const std::string one : {"127.0.0.1", "::1", "10.0.0.7"}) {
    EXPECT_OK(CheckOneInterface(one));
  }
}

}  // namespace
}  // namespace penstock::server
