#include "client/child_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::client {
namespace {

struct Answers {
  std::string line, trouble;
};

Answers Of(const std::string& log) {
  const tests::fakes::TempDir dir;
  const int fd = open(dir.Write("log", log).c_str(), O_RDONLY | O_CLOEXEC);
  Answers answers{LastLine(fd), LastTrouble(fd)};
  close(fd);
  return answers;
}

TEST(ChildLogTest, TheLastLineThatIsNotEmpty) {
  EXPECT_EQ(Of("").line, "");
  EXPECT_EQ(Of("one\ntwo\n\n").line, "two");
  EXPECT_EQ(Of(std::string(100000, 'x') + "\nend").line, "end");
  EXPECT_EQ(LastLine(-1), "");
}

TEST(ChildLogTest, InformationIsNoTrouble) {
  const std::string info =
      "2026-11-30T00:00:00.000000Z INFO coordinator core.cc:7] released 1\n";
  const std::string error =
      "2026-11-30T00:00:00.000000Z ERROR coordinator core.cc:7] disk full\n";
  EXPECT_EQ(Of(error + info).line + "\n", info);
  EXPECT_EQ(Of(error + info).trouble, "");
  EXPECT_EQ(Of(info + error).trouble + "\n", error);
  // What is no line of ours: the language's last words.
  EXPECT_EQ(Of(info + "terminate called\n").trouble, "terminate called");
}

}  // namespace
}  // namespace penstock::client
