#include "common/process/daemon.h"

#include <CLI/CLI.hpp>
#include <string>

#include "common/process/build_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::common::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What the parser says of `line`; empty: nothing.
std::string Parse(const std::string& line, DaemonFlags& flags) {
  CLI::App app("Does nothing.", "penstock-nothing");
  AddDaemonFlags(app, flags);
  try {
    app.parse(line);
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return "";
}

TEST(DaemonFlagsTest, WithoutAnyALogIsTextFromInfoOn) {
  DaemonFlags flags;
  EXPECT_EQ(Parse("", flags), "");
  EXPECT_EQ(flags.log_format, "text");
  EXPECT_EQ(flags.log_level, "info");
  EXPECT_EQ(flags.die_with_parent, 0);
}

TEST(DaemonFlagsTest, TakesEachValue) {
  for (const char* level : {"info", "warning", "error"}) {
    for (const char* format : {"text", "json"}) {
      DaemonFlags flags;
      EXPECT_EQ(Parse(std::string("--log-level ") + level + " --log-format " +
                          format + " --die-with-parent 4711",
                      flags),
                "");
      EXPECT_EQ(flags.log_level, level);
      EXPECT_EQ(flags.log_format, format);
      EXPECT_EQ(flags.die_with_parent, 4711);
    }
  }
}

TEST(DaemonFlagsTest, AnotherValueIsRefusedWithTheFlagAndWhatThereIs) {
  DaemonFlags flags;
  EXPECT_THAT(Parse("--log-format xml", flags),
              AllOf(HasSubstr("--log-format"),
                    HasSubstr("'xml' is neither text nor json")));
  EXPECT_THAT(Parse("--log-level debug", flags),
              AllOf(HasSubstr("--log-level"),
                    HasSubstr("'debug' is none of info, warning, error")));
  EXPECT_THAT(Parse("--die-with-parent me", flags),
              HasSubstr("--die-with-parent"));
}

TEST(DaemonFlagsTest, TheVersionNamesProgramAndBuild) {
  DaemonFlags flags;
  EXPECT_EQ(Parse("--version", flags),
            std::string("penstock-nothing ") + kVersion + " (" + kBuild + ")");
}

}  // namespace
}  // namespace penstock::common::process
