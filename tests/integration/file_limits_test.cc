// What the coordinator takes, the client reads: the rooms do not see each
// other's limits.
#include <cstdint>

#include "client/input_file.h"
#include "coordinator/schedule/text.h"
#include "coordinator/spec/limits.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(FileLimitsTest, TheClientReadsWhatTheCoordinatorTakes) {
  EXPECT_EQ(client::kMaxJobFileBytes,
            static_cast<int64_t>(coordinator::spec::kMaxJobFileBytes));
  EXPECT_EQ(client::kMaxScheduleFileBytes, coordinator::schedule::kMaxCsvBytes);
}

}  // namespace
}  // namespace penstock
