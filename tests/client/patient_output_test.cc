#include "client/patient_output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include "common/file/fd.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using common::file::Fd;

// A pipe with as little room as there is.
class PatientOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
    room_ = fcntl(writer_.get(), F_SETPIPE_SZ, 1);
    ASSERT_GT(room_, 0);
  }

  std::string Read(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t have = 0; have < bytes;) {
      const ssize_t got = read(reader_.get(), &text[have], bytes - have);
      if (got <= 0) return text.substr(0, have);
      have += got;
    }
    return text;
  }

  Fd reader_, writer_;
  int room_ = 0;
};

TEST_F(PatientOutputTest, WhoeverWritesDoesNotWaitForTheReader) {
  PatientOutput output(writer_.get());
  const std::string full(room_ + 100, 'x');
  output.Write(full);
  output.Write("one\n");
  output.Write("two\n");
  EXPECT_EQ(Read(full.size() + 8), full + "one\ntwo\n");
}

TEST_F(PatientOutputTest, TextThatWouldWaitBehindTooMuchIsLeftOutAsAWhole) {
  std::optional<PatientOutput> output(writer_.get());
  const std::string full(PatientOutput::kMostWaiting - 4, 'x');
  output->Write(full);  // It waits until its last byte is taken.
  output->Write("more than fits\n");
  output->Write("two\n");
  EXPECT_EQ(Read(full.size() + 4), full + "two\n");
  output.reset();
  output.emplace(writer_.get());
  output->Write("again\n");
  EXPECT_EQ(Read(6), "again\n");
}

TEST_F(PatientOutputTest, ItsEndWaitsUntilAllIsTaken) {
  std::optional<PatientOutput> output(writer_.get());
  output->Write("one\n");
  output.reset();
  writer_.Reset();
  EXPECT_EQ(Read(100), "one\n");
}

TEST_F(PatientOutputTest, ADescriptorThatDoesNotBlockIsWaitedForToo) {
  ASSERT_EQ(fcntl(writer_.get(), F_SETFL, O_NONBLOCK), 0);
  std::optional<PatientOutput> output(writer_.get());
  const std::string full(2 * room_ + 100, 'x');
  output->Write(full);
  std::thread ending([&] {
    output.reset();
    writer_.Reset();
  });
  EXPECT_EQ(Read(full.size() + 1), full);
  ending.join();
}

TEST_F(PatientOutputTest, AReaderThatHasGoneIsNotWaitedFor) {
  signal(SIGPIPE, SIG_IGN);
  PatientOutput output(writer_.get());
  output.Write(std::string(room_ + 100, 'x'));
  reader_.Reset();
}

}  // namespace
}  // namespace penstock::client
