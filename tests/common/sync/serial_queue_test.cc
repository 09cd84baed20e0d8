#include "common/sync/serial_queue.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::common::sync {
namespace {

using ::testing::ElementsAre;

TEST(SerialQueueTest, RunsInOrderAndDestructorDrains) {
  std::vector<int> order;
  {
    SerialQueue queue;
    queue.Post([&] {
      order.push_back(1);
      queue.Post([&] { order.push_back(3); });
    });
    queue.Post([&] { order.push_back(2); });
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(SerialQueueTest, DrainWaitsForWhatWasPosted) {
  SerialQueue queue;
  int done = 0;
  for (int i = 0; i < 100; ++i) queue.Post([&] { ++done; });
  queue.Drain();
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace penstock::common::sync
