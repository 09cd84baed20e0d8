// Where sockets go when the first choice will not do.
#include "client/runtime_directory.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::client {
namespace {

TEST(RuntimeDirectoryTest, TheFirstThatWillDoIsTaken) {
  const tests::fakes::TempDir first, second;
  EXPECT_EQ(RuntimeDirectory({first.path(), second.path(), "/tmp"}),
            first.path());
  EXPECT_EQ(RuntimeDirectory({"", second.path(), "/tmp"}), second.path());
}

TEST(RuntimeDirectoryTest, WhatIsNotThereIsPassedOver) {
  const tests::fakes::TempDir dir;
  EXPECT_EQ(RuntimeDirectory({dir.Path("none"), dir.path(), "/tmp"}),
            dir.path());
}

TEST(RuntimeDirectoryTest, WhatIsTooLongForASocketIsPassedOver) {
  const tests::fakes::TempDir dir;
  const std::string deep = dir.Path(std::string(80, 'd'));
  std::filesystem::create_directory(deep);
  EXPECT_EQ(RuntimeDirectory({deep, dir.path(), "/tmp"}), dir.path());
}

TEST(RuntimeDirectoryTest, TheLastIsTakenWhereNoneWillDo) {
  EXPECT_EQ(RuntimeDirectory({"/none/a", "/none/b"}), "/none/b");
}

}  // namespace
}  // namespace penstock::client
