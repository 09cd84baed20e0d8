#include "common/rpc/stream_writer.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::rpc {
namespace {

using penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A stream that takes a message when the test says OnWriteDone.
struct FakeStream {
  StreamOperations<std::string> Operations(bool ends_over_a_write) {
    return {
        .start_write =
            [this](const std::string* message) { started.push_back(*message); },
        .end = [this](const absl::Status& s) { ends.push_back(s); },
        .ends_over_a_write = ends_over_a_write};
  }
  std::vector<std::string> started;
  std::vector<absl::Status> ends;
};

TEST(StreamWriterTest, WritesInOrderAndOneAtATime) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true));
  writer.Write("a");
  writer.Write("b");
  writer.Write("c");
  EXPECT_THAT(stream.started, ElementsAre("a"));
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.started, ElementsAre("a", "b"));
  writer.OnWriteDone(true);
  writer.OnWriteDone(true);
  writer.Write("d");
  EXPECT_THAT(stream.started, ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(stream.ends, IsEmpty());
}

TEST(StreamWriterTest, AnEndAfterWritesComesWhenAllIsWritten) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true));
  writer.Write("a");
  writer.Write("b");
  writer.EndAfterWrites(absl::NotFoundError("over"));
  writer.Write("late");
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.ends, IsEmpty());
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.started, ElementsAre("a", "b"));
  EXPECT_THAT(stream.ends, ElementsAre(StatusIs(absl::StatusCode::kNotFound,
                                                HasSubstr("over"))));
}

TEST(StreamWriterTest, AnEndAfterWritesOfAnIdleStreamComesAtOnce) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(false));
  writer.EndAfterWrites(absl::OkStatus());
  writer.EndAfterWrites(absl::OkStatus());
  EXPECT_THAT(stream.ends, ElementsAre(absl::OkStatus()));
}

TEST(StreamWriterTest, AnEndNowDropsWhatWaitsAndComesOnce) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true));
  writer.Write("a");
  writer.Write("b");
  writer.End(absl::AbortedError("first"));
  writer.End(absl::InternalError("second"));
  writer.OnCancel();
  EXPECT_THAT(stream.ends, ElementsAre(StatusIs(absl::StatusCode::kAborted,
                                                HasSubstr("first"))));
  writer.OnWriteDone(true);
  writer.Write("late");
  EXPECT_THAT(stream.started, ElementsAre("a"));
  EXPECT_EQ(stream.ends.size(), 1u);
}

TEST(StreamWriterTest, AnEndNowOverridesOneThatWaitsForWrites) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true));
  writer.Write("a");
  writer.EndAfterWrites(absl::OkStatus());
  writer.End(absl::UnavailableError("shutting down"));
  EXPECT_THAT(stream.ends, ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("shutting down"))));
}

// A client's end is an operation of the write chain itself.
TEST(StreamWriterTest, AnEndNowWaitsForTheWriteUnderWayWhereItMust) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(false));
  writer.Write("a");
  writer.Write("b");
  writer.End(absl::OkStatus());
  EXPECT_THAT(stream.ends, IsEmpty());
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.ends, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(stream.started, ElementsAre("a"));
}

TEST(StreamWriterTest, AFailedWriteEndsTheStreamAsCancelled) {
  for (const bool over : {true, false}) {
    FakeStream stream;
    StreamWriter<std::string> writer(stream.Operations(over));
    writer.Write("a");
    writer.Write("b");
    writer.OnWriteDone(false);
    EXPECT_THAT(stream.started, ElementsAre("a"));
    EXPECT_THAT(stream.ends,
                ElementsAre(StatusIs(absl::StatusCode::kCancelled,
                                     HasSubstr("the stream is broken"))));
  }
}

TEST(StreamWriterTest, ACancelledCallEndsTheStream) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true));
  writer.OnCancel();
  writer.Write("late");
  EXPECT_THAT(stream.started, IsEmpty());
  EXPECT_THAT(stream.ends,
              ElementsAre(StatusIs(absl::StatusCode::kCancelled,
                                   HasSubstr("the call was cancelled"))));
}

TEST(StreamWriterTest, AFullQueueEndsTheStreamAndDropsWhatWaits) {
  FakeStream stream;
  StreamWriter<std::string> writer(
      stream.Operations(true),
      {.messages = 2, .when_full = absl::OutOfRangeError("too slow")});
  writer.Write("under way");
  writer.Write("a");
  writer.Write("b");
  EXPECT_THAT(stream.ends, IsEmpty());
  writer.Write("c");
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.started, ElementsAre("under way"));
  EXPECT_THAT(stream.ends, ElementsAre(StatusIs(absl::StatusCode::kOutOfRange,
                                                HasSubstr("too slow"))));
}

TEST(StreamWriterTest, WhoTakesNothingIsCutOffBeforeTheEnd) {
  FakeStream stream;
  size_t ends_at_cut = 1;
  int cuts = 0;
  StreamWriter<std::string> writer(
      stream.Operations(true), {.messages = 1,
                                .when_full = absl::CancelledError("too slow"),
                                .cut_off = [&] {
                                  ++cuts;
                                  ends_at_cut = stream.ends.size();
                                }});
  writer.Write("under way");
  writer.Write("a");
  EXPECT_EQ(cuts, 0);
  writer.Write("b");
  writer.Write("c");
  EXPECT_EQ(cuts, 1);
  EXPECT_EQ(ends_at_cut, 0);
  EXPECT_EQ(stream.ends.size(), 1);
}

TEST(StreamWriterTest, AFullQueueKeepsTheNewestWhereThatIsTheRule) {
  FakeStream stream;
  StreamWriter<std::string> writer(stream.Operations(true), {.messages = 1});
  writer.Write("under way");
  writer.Write("a");
  writer.Write("b");
  writer.Write("c");
  writer.OnWriteDone(true);
  EXPECT_THAT(stream.started, ElementsAre("under way", "c"));
  EXPECT_THAT(stream.ends, IsEmpty());
}

}  // namespace
}  // namespace penstock::common::rpc
