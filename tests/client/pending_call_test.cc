#include "client/pending_call.h"

#include "common/sync/mutex.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using common::sync::Notification;

TEST(PendingCallTest, IsDoneOnceTheCallHasReturnedAndBeforeItWakes) {
  Notification go_on;
  Notification woken;
  int answer = 0;
  bool done_at_wake = false;
  const PendingCall* self = nullptr;
  const PendingCall call(
      [&] {
        go_on.WaitForNotification();
        answer = 7;
      },
      [&] {
        done_at_wake = self->done();
        woken.Notify();
      });
  self = &call;
  EXPECT_FALSE(call.done());
  go_on.Notify();
  woken.WaitForNotification();
  EXPECT_TRUE(done_at_wake);
  EXPECT_TRUE(call.done());
  EXPECT_EQ(answer, 7);
}

TEST(PendingCallTest, ItsEndWaitsForTheCall) {
  Notification go_on;
  bool returned = false;
  {
    const PendingCall call(
        [&] {
          go_on.WaitForNotification();
          returned = true;
        },
        [] {});
    go_on.Notify();
  }
  EXPECT_TRUE(returned);
}

}  // namespace
}  // namespace penstock::client
