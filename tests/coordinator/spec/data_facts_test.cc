#include "coordinator/spec/data_facts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job whose data are JSON lines that decide the rest.
JobSpec JsonlJob() {
  JobSpec spec;
  spec.model.context = 16;
  spec.data.train = "a.jsonl";
  spec.data.format = DataFormat::kJsonl;
  spec.batch.global = 4;
  return spec;
}

MATCHER_P2(Breaks, key_path, message, "") {
  return arg.key_path == key_path &&
         ::testing::Matches(HasSubstr(message))(arg.message);
}

TEST(DataFactsTest, TokenLinesDecideTheSequenceLength) {
  JobSpec spec = JsonlJob();
  spec.model.vocab = 100;
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 17}, spec), IsEmpty());
  EXPECT_EQ(spec.data.sequence_length, 16);
}

TEST(DataFactsTest, TokenLinesMustFitTheContextAndBeLongEnough) {
  JobSpec spec = JsonlJob();
  spec.model.vocab = 100;
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 18}, spec),
              ElementsAre(Breaks("data.train", "more than model.context, 16")));
  JobSpec other = JsonlJob();
  other.model.vocab = 100;
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 1}, other),
              ElementsAre(Breaks("data.train", "at least 2")));
}

TEST(DataFactsTest, GivenSequenceLengthMustBeThatOfTheTokenLines) {
  JobSpec spec = JsonlJob();
  spec.model.vocab = 100;
  spec.data.sequence_length = 8;
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 17}, spec),
              ElementsAre(Breaks("data.sequence_length", "give 16")));
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 9}, spec), IsEmpty());
}

TEST(DataFactsTest, TokenLinesNeedAVocabulary) {
  JobSpec spec = JsonlJob();
  EXPECT_THAT(ApplyDataFacts({.first_line_tokens = 9}, spec),
              ElementsAre(Breaks("model.vocab", "is required")));
}

TEST(DataFactsTest, TextLinesTakeTheBytesVocabularyAndTheContext) {
  JobSpec spec = JsonlJob();
  EXPECT_THAT(ApplyDataFacts({}, spec), IsEmpty());
  EXPECT_EQ(spec.model.vocab, 256);
  EXPECT_EQ(spec.data.sequence_length, 16);
  spec.model.vocab = 200;
  EXPECT_THAT(ApplyDataFacts({}, spec),
              ElementsAre(Breaks("model.vocab", "too few")));
}

TEST(DataFactsTest, EpochsBecomeSteps) {
  JobSpec spec = JsonlJob();
  spec.epochs = 3;
  EXPECT_THAT(ResolveSteps(7, spec), IsEmpty());
  EXPECT_EQ(spec.steps, 5);  // ⌊3·7 / 4⌋
  EXPECT_EQ(spec.epochs, std::nullopt);
  EXPECT_EQ(spec.lr_schedule.decay_steps, 5);
}

TEST(DataFactsTest, EpochsOfLessThanOneStepAreRefused) {
  JobSpec spec = JsonlJob();
  spec.epochs = 1;
  EXPECT_THAT(ResolveSteps(3, spec),
              ElementsAre(Breaks("epochs", "less than one step")));
  EXPECT_THAT(ResolveSteps(0, spec),
              ElementsAre(Breaks("epochs", "less than one step")));
}

TEST(DataFactsTest, StepsStayAsTheyAre) {
  JobSpec spec = JsonlJob();
  spec.steps = 9;
  EXPECT_THAT(ResolveSteps(0, spec), IsEmpty());
  EXPECT_EQ(spec.steps, 9);
}

}  // namespace
}  // namespace penstock::coordinator::spec
