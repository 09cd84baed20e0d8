#include "common/rpc/admission.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::rpc {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AdmissionTest, OneOverTheLimitIsToldWhatAndWhatToDo) {
  Admission admission("WatchJob streams", 2, "end one of them");
  ASSERT_OK_AND_ASSIGN(Admission::Ticket first, admission.Enter());
  ASSERT_OK_AND_ASSIGN(const Admission::Ticket second, admission.Enter());
  EXPECT_THAT(admission.Enter().status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("2 WatchJob streams"),
                             HasSubstr("end one of them"))));
  const Admission::Ticket copy = first;
  first.reset();
  // The copy counts.
  EXPECT_THAT(admission.Enter().status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(AdmissionTest, ACallThatHasEndedMakesRoom) {
  Admission admission("calls", 1, "wait");
  ASSERT_OK_AND_ASSIGN(Admission::Ticket only, admission.Enter());
  only.reset();
  EXPECT_OK(admission.Enter().status());
}

}  // namespace
}  // namespace penstock::common::rpc
