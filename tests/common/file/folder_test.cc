#include "common/file/folder.h"

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/failing_readdir.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::common::file {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ListFolderTest, NamesWhatIsThere) {
  const tests::fakes::TempDir dir;
  dir.Write("a", "");
  dir.Write("folder/b", "");
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : ListFolder(dir.path(), error)) {
    names.insert(entry.path().string());
  }
  EXPECT_FALSE(error);
  EXPECT_EQ(names, (std::set<std::string>{dir.Path("a"), dir.Path("folder")}));
}

TEST(ListFolderTest, OneThatIsNotThereIsAnError) {
  const tests::fakes::TempDir dir;
  std::error_code error;
  EXPECT_THAT(ListFolder(dir.Path("none"), error), IsEmpty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
}

TEST(ListFolderTest, OneThatCannotBeReadToItsEndIsAnErrorWithWhatCameBefore) {
  const tests::fakes::TempDir dir;
  for (int i = 0; i < 10; ++i) dir.Write(absl::StrCat(i), "");
  const tests::fakes::FailingReaddir failing(7);
  std::error_code error;
  // Of the seven two may have been "." and "..".
  EXPECT_THAT(ListFolder(dir.path(), error), SizeIs(::testing::Ge(5)));
  EXPECT_EQ(error, std::errc::io_error);
}

}  // namespace
}  // namespace penstock::common::file
