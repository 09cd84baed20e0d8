#include "server/device/cpu/factory.h"

#include "gtest/gtest.h"
#include "server/device/cpu/kernel_table.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device::cpu {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(CpuFactoryTest, IsaNamesGoBothWays) {
  for (const Isa isa : {Isa::kSse4, Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_THAT(ParseIsa(Name(isa)), IsOkAndHolds(isa));
  }
  EXPECT_THAT(ParseIsa("avx10"), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("'avx10'")));
}

TEST(CpuFactoryTest, NumericsIdNamesDeviceLevelVersionAndTable) {
  EXPECT_THAT(NumericsId(Isa::kAvx2),
              ContainsRegex("^cpu-avx2-[0-9]+-[0-9a-f]{8}$"));
}

TEST(CpuFactoryTest, MaxIsaCapsTheLevel) {
  for (const Isa isa : SupportedIsas()) {
    ASSERT_OK_AND_ASSIGN(const auto device, CreateCpuDevice({.max_isa = isa}));
    EXPECT_EQ(device->numerics_id(), NumericsId(isa));
    EXPECT_EQ(SupportedNumericsIds(isa).back(), NumericsId(isa));
  }
  ASSERT_OK_AND_ASSIGN(const auto best, CreateCpuDevice({}));
  EXPECT_EQ(best->numerics_id(), NumericsId(SupportedIsas().back()));
  EXPECT_EQ(SupportedNumericsIds(std::nullopt).size(), SupportedIsas().size());
}

TEST(CpuFactoryTest, NoThreadsAreInvalid) {
  EXPECT_THAT(
      CreateCpuDevice({.threads = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads is 0")));
}

}  // namespace
}  // namespace penstock::server::device::cpu
