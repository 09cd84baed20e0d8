// The planner's table of kernels is the cpu device's own, whichever levels this
// machine can run (memory_prediction_test compares what those allocate).
#include "coordinator/planner/device_sizes.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/device/cpu/kernel_table.h"

namespace penstock {
namespace {

using coordinator::planner::KernelSizes;
using coordinator::planner::KernelSizesOf;
using coordinator::planner::PackedBytesOf;
using coordinator::planner::ScratchBytesOf;
using server::device::cpu::Isa;
using server::device::cpu::KernelBlocks;
using server::device::cpu::NumericsId;

constexpr std::pair<Isa, KernelBlocks> kLevels[] = {
    {Isa::kSse4, server::device::cpu::kSse4Blocks},
    {Isa::kAvx2, server::device::cpu::kAvx2Blocks},
    {Isa::kAvx512, server::device::cpu::kAvx512Blocks}};

TEST(DeviceSizesTest, AreThoseOfTheKernelTable) {
  for (const auto& [isa, blocks] : kLevels) {
    SCOPED_TRACE(NumericsId(isa));
    const std::optional<KernelSizes> sizes = KernelSizesOf(NumericsId(isa));
    ASSERT_TRUE(sizes.has_value());
    EXPECT_EQ(sizes->lanes, blocks.lanes);
    EXPECT_EQ(sizes->panel, blocks.panel());
    EXPECT_EQ(sizes->kc, blocks.kc);
    EXPECT_EQ(sizes->mc, blocks.mc);
  }
}

TEST(DeviceSizesTest, AnotherVersionOrTableIsNotKnown) {
  for (const auto& level : kLevels) {
    const std::string id = NumericsId(level.first);
    const std::string other_table = id.substr(0, id.size() - 8) + "00000000";
    for (const std::string& other :
         {absl::StrCat(id, "0"), other_table, id.substr(0, id.size() - 1)}) {
      EXPECT_EQ(PackedBytesOf(other), nullptr) << other;
      EXPECT_EQ(ScratchBytesOf(other), nullptr) << other;
    }
  }
}

TEST(DeviceSizesTest, TheReferencePacksNothing) {
  EXPECT_EQ(PackedBytesOf("reference-2"), nullptr);
  EXPECT_EQ(ScratchBytesOf("reference-2"), nullptr);
}

}  // namespace
}  // namespace penstock
