#include "coordinator/dispatch/first_cause.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;

MonotonicTime At(int ms) {
  return MonotonicTime::FromZero(absl::Seconds(5) + absl::Milliseconds(ms));
}
EdgeFailure Edge(const char* reporter, const char* peer, int ms) {
  EdgeFailure edge;
  edge.reporter = reporter;
  edge.peer = peer;
  edge.at = At(ms);
  return edge;
}
FirstCause Causes() { return FirstCause(absl::Milliseconds(200)); }

TEST(FirstCauseTest, ABrokenSessionAloneBlamesNobody) {
  FirstCause causes = Causes();
  causes.SessionBroken("b", At(0));
  EXPECT_FALSE(causes.Lost().has_value());
  EXPECT_FALSE(causes.Unexplained(At(10000)).has_value());
  EXPECT_EQ(causes.NextDeadline(), MonotonicTime::Infinite());
}

TEST(FirstCauseTest, SessionAndEdgeTogetherAreALostStageInEitherOrder) {
  FirstCause causes = Causes();
  causes.SessionBroken("b", At(0));
  causes.EdgeFailed(Edge("a", "b", 200));
  ASSERT_TRUE(causes.Lost().has_value());
  EXPECT_EQ(causes.Lost()->name, "b");
  FirstCause reversed = Causes();
  reversed.EdgeFailed(Edge("a", "b", 0));
  reversed.SessionBroken("b", At(199));
  ASSERT_TRUE(reversed.Lost().has_value());
  EXPECT_EQ(reversed.Lost()->name, "b");
}

TEST(FirstCauseTest, AnEdgeThatBreaksWhileTheSessionIsBrokenIsEvidence) {
  FirstCause causes = Causes();
  causes.SessionBroken("b", At(0));
  causes.EdgeFailed(Edge("a", "b", 3000));
  EXPECT_TRUE(causes.Lost().has_value());
}

TEST(FirstCauseTest, ASessionThatBreaksLongAfterTheEdgeIsAnotherThing) {
  FirstCause causes = Causes();
  causes.EdgeFailed(Edge("a", "b", 0));
  causes.SessionBroken("b", At(201));
  EXPECT_FALSE(causes.Lost().has_value());
}

TEST(FirstCauseTest, TheReportersOwnBrokenSessionIsNoEvidence) {
  FirstCause causes = Causes();
  causes.SessionBroken("a", At(0));
  causes.EdgeFailed(Edge("a", "b", 1));
  EXPECT_FALSE(causes.Lost().has_value());
}

TEST(FirstCauseTest, ARefusedMonitorPortIsEvidenceWithinTheWindow) {
  FirstCause causes = Causes();
  causes.SessionBroken("b", At(0));
  causes.MonitorRefused("b", At(150));
  EXPECT_TRUE(causes.Lost().has_value());
  FirstCause late = Causes();
  late.SessionBroken("b", At(0));
  late.MonitorRefused("b", At(201));
  EXPECT_FALSE(late.Lost().has_value());
}

TEST(FirstCauseTest, AStageThatCameBackIsNotLost) {
  FirstCause causes = Causes();
  causes.SessionBroken("b", At(0));
  causes.SessionRestored("b");
  causes.EdgeFailed(Edge("a", "b", 50));
  EXPECT_FALSE(causes.Lost().has_value());
}

TEST(FirstCauseTest, AnUnexplainedEdgeIsBlamedAfterItsWindow) {
  FirstCause causes = Causes();
  causes.EdgeFailed(Edge("a", "b", 0));
  EXPECT_FALSE(causes.Unexplained(At(199)).has_value());
  EXPECT_EQ(causes.NextDeadline(), At(200));
  ASSERT_TRUE(causes.Unexplained(At(200)).has_value());
  EXPECT_EQ(causes.Unexplained(At(200))->reporter, "a");
}

TEST(FirstCauseTest, InAChainTheEdgeToTheSilentStageIsBlamed) {
  // c hangs; b loses its edge to c and closes all; a sees b go first.
  FirstCause causes = Causes();
  causes.EdgeFailed(Edge("a", "b", 0));
  causes.EdgeFailed(Edge("b", "c", 5));
  ASSERT_TRUE(causes.Unexplained(At(300)).has_value());
  EXPECT_EQ(causes.Unexplained(At(300))->reporter, "b");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
