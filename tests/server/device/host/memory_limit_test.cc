#include "server/device/host/memory_limit.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::server::device::host {
namespace {

constexpr int64_t kMachine = int64_t{64} << 30;

// A made-up /sys/fs/cgroup and /proc/self/cgroup.
class MemoryLimitTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    dir_.Write(file, text);
  }
  MemoryLimit Find() {
    return FindMemoryLimit({.machine_bytes = kMachine,
                            .groups = dir_.Path("groups"),
                            .mount = dir_.Path("mount")});
  }

  tests::fakes::TempDir dir_;
};

TEST_F(MemoryLimitTest, WithoutGroupsTheMachineIsTheLimit) {
  EXPECT_EQ(Find().bytes, kMachine);
  EXPECT_EQ(Find().group, "");
  Write("groups", "0::/user.slice\nnonsense\n");
  EXPECT_EQ(Find().bytes, kMachine);
}

TEST_F(MemoryLimitTest, TheGroupsOwnLimitCounts) {
  Write("groups", "0::/system.slice/stage.service\n");
  Write("mount/system.slice/stage.service/memory.max", "1073741824\n");
  Write("mount/system.slice/memory.max", "max\n");
  EXPECT_EQ(Find().bytes, 1 << 30);
  EXPECT_EQ(Find().group, "/system.slice/stage.service");
}

TEST_F(MemoryLimitTest, ALowerLimitFurtherUpCountsForItsGroup) {
  Write("groups", "0::/pod/stage-0\n");
  Write("mount/pod/stage-0/memory.max", "4096\n");
  Write("mount/pod/memory.max", "2048\n");
  EXPECT_EQ(Find().bytes, 2048);
  EXPECT_EQ(Find().group, "/pod");
}

TEST_F(MemoryLimitTest, AContainersRootHasItsLimit) {
  Write("groups", "0::/\n");
  Write("mount/memory.max", "4096\n");
  EXPECT_EQ(Find().bytes, 4096);
  EXPECT_EQ(Find().group, "/");
}

TEST_F(MemoryLimitTest, Version1HasAHierarchyForMemory) {
  Write("groups", "5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/\n");
  Write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Find().bytes, kMachine);
  // A container may see a path of the host's, and its own group at the root.
  Write("mount/memory/memory.limit_in_bytes", "8192\n");
  EXPECT_EQ(Find().bytes, 8192);
  EXPECT_EQ(Find().group, "/");
  Write("mount/memory/docker/b/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(Find().bytes, 4096);
  EXPECT_EQ(Find().group, "/docker/b");
}

TEST_F(MemoryLimitTest, ThisProcessHasOne) {
  EXPECT_GT(FindMemoryLimit().bytes, 0);
}

}  // namespace
}  // namespace penstock::server::device::host
