#include "server/data/batch_reader.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

std::string TestData(absl::string_view name) {
  return std::string(getenv("PENSTOCK_TEST_DATA")) + "/" + std::string(name);
}

std::unique_ptr<Dataset> OpenShakespeare(int64_t length,
                                         int64_t validation_millionths) {
  auto dataset = Dataset::Open({.train_path = TestData("shakespeare_20000.txt"),
                                .validation_millionths = validation_millionths,
                                .sequence_length = length,
                                .context = length,
                                .vocab = 256});
  CHECK_OK(dataset.status());
  return *std::move(dataset);
}

// Rows of a batch: ids, then labels.
using Row = std::vector<int32_t>;

std::vector<Row> ReadRows(const Dataset& dataset, const BatchReader& reader,
                          const BatchReader::MicroBatch& at, int64_t rows) {
  const int64_t length = dataset.sequence_length();
  std::vector<int32_t> ids(rows * length), labels(rows * length);
  CHECK_OK(reader.ReadTraining(
      at, {.ids = absl::MakeSpan(ids), .labels = absl::MakeSpan(labels)}));
  std::vector<Row> result;
  for (int64_t row = 0; row < rows; ++row) {
    Row one(ids.begin() + row * length, ids.begin() + (row + 1) * length);
    one.insert(one.end(), labels.begin() + row * length,
               labels.begin() + (row + 1) * length);
    result.push_back(one);
  }
  return result;
}

// All rows of a step in the order of their samples.
std::vector<Row> ReadStep(const Dataset& dataset,
                          const BatchReader::Options& options, int64_t cursor) {
  const BatchReader reader = *BatchReader::Create(&dataset, options);
  std::vector<Row> step;
  for (int64_t r = 0; r < options.replicas; ++r) {
    for (int64_t m = 0; m < reader.micro_batches(); ++m) {
      const BatchReader::MicroBatch at{
          .cursor = cursor, .replica = r, .micro_batch = m};
      CHECK_EQ(reader.FirstSample(at),
               cursor + static_cast<int64_t>(step.size()));
      for (Row& row : ReadRows(dataset, reader, at, options.micro_batch)) {
        step.push_back(std::move(row));
      }
    }
  }
  return step;
}

TEST(BatchReaderTest, AStepIsTheSameForEveryMicroBatchSizeAndReplicas) {
  const auto dataset = OpenShakespeare(16, 0);
  for (const Order order : {Order::kShuffled, Order::kSequential}) {
    const BatchReader::Options whole{
        .global = 24, .micro_batch = 24, .order = order, .seed = 5};
    for (const int64_t cursor : {0, 24, 1224, 1240, 99984}) {
      const auto expected = ReadStep(*dataset, whole, cursor);
      ASSERT_EQ(expected.size(), 24u);
      for (const int64_t micro_batch : {1, 2, 3, 4, 6, 8, 12}) {
        for (const int64_t replicas : {1, 2}) {
          BatchReader::Options cut = whole;
          cut.micro_batch = micro_batch;
          cut.replicas = replicas;
          if (24 / micro_batch % replicas != 0) continue;
          EXPECT_EQ(ReadStep(*dataset, cut, cursor), expected);
        }
      }
    }
  }
}

TEST(BatchReaderTest, EachPassTakesEverySequenceOnceInAnotherOrder) {
  const auto dataset = OpenShakespeare(100, 0);
  const int64_t n = dataset->train_sequences();
  ASSERT_EQ(n, 199);
  ASSERT_OK_AND_ASSIGN(
      const BatchReader reader,
      BatchReader::Create(dataset.get(),
                          {.global = 1, .micro_batch = 1, .seed = 9}));
  std::set<std::vector<int64_t>> orders;
  for (int64_t pass = 0; pass < 5; ++pass) {
    std::vector<int64_t> order;
    for (int64_t g = pass * n; g < (pass + 1) * n; ++g) {
      EXPECT_EQ(reader.PassOf(g), pass);
      order.push_back(reader.SequenceOf(g));
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(BatchReaderTest, SequentialTakesFileOrderAgainAndAgain) {
  const auto dataset = OpenShakespeare(100, 0);
  ASSERT_OK_AND_ASSIGN(
      const BatchReader reader,
      BatchReader::Create(
          dataset.get(),
          {.global = 1, .micro_batch = 1, .order = Order::kSequential}));
  for (int64_t g = 0; g < 500; ++g) EXPECT_EQ(reader.SequenceOf(g), g % 199);
}

TEST(BatchReaderTest, TrainingNeverTakesAValidationSequence) {
  const auto dataset = OpenShakespeare(100, 100000);
  ASSERT_EQ(dataset->train_sequences(), 180);
  ASSERT_EQ(dataset->validation_sequences(), 19);
  ASSERT_OK_AND_ASSIGN(
      const BatchReader reader,
      BatchReader::Create(dataset.get(), {.global = 1, .micro_batch = 1}));
  for (int64_t g = 0; g < 1000; ++g) EXPECT_LT(reader.SequenceOf(g), 180);
}

TEST(BatchReaderTest, OneHalfAloneIsTheSameAsInBoth) {
  const auto dataset = OpenShakespeare(16, 0);
  ASSERT_OK_AND_ASSIGN(
      const BatchReader reader,
      BatchReader::Create(dataset.get(), {.global = 8, .micro_batch = 4}));
  const BatchReader::MicroBatch at{.cursor = 80, .micro_batch = 1};
  std::vector<int32_t> ids(64), labels(64), one(64);
  ASSERT_OK(reader.ReadTraining(
      at, {.ids = absl::MakeSpan(ids), .labels = absl::MakeSpan(labels)}));
  ASSERT_OK(reader.ReadTraining(at, {.ids = absl::MakeSpan(one)}));
  EXPECT_EQ(one, ids);
  ASSERT_OK(reader.ReadTraining(at, {.labels = absl::MakeSpan(one)}));
  EXPECT_EQ(one, labels);
}

TEST(BatchReaderTest, EvaluationTakesTheFirstBatchesInOrderAndFillsTheRest) {
  const auto dataset = OpenShakespeare(100, 100000);  // 19 for validation.
  ASSERT_OK_AND_ASSIGN(
      const BatchReader reader,
      BatchReader::Create(dataset.get(), {.global = 8, .micro_batch = 4}));
  for (int64_t first = 0; first < 24; first += 4) {
    std::vector<int32_t> ids(400, 7), labels(400, 7);
    ASSERT_OK(reader.ReadValidation(
        {.cursor = first / 8 * 8, .micro_batch = first / 4 % 2},
        {.ids = absl::MakeSpan(ids), .labels = absl::MakeSpan(labels)}));
    for (int64_t row = 0; row < 4; ++row) {
      const Row row_ids(ids.begin() + row * 100, ids.begin() + row * 100 + 100);
      const Row row_labels(labels.begin() + row * 100,
                           labels.begin() + row * 100 + 100);
      if (first + row >= 19) {
        EXPECT_THAT(row_ids, Each(0));
        EXPECT_THAT(row_labels, Each(-100));
        continue;
      }
      Row expected_ids(100), expected_labels(100);
      ASSERT_OK(dataset->ReadValidation(
          first + row, {.ids = absl::MakeSpan(expected_ids),
                        .labels = absl::MakeSpan(expected_labels)}));
      EXPECT_EQ(row_ids, expected_ids);
      EXPECT_EQ(row_labels, expected_labels);
    }
  }
}

TEST(BatchReaderTest, ABatchThatDoesNotDivideIsRefused) {
  const auto dataset = OpenShakespeare(100, 0);
  for (const BatchReader::Options& options :
       {BatchReader::Options{.global = 8, .micro_batch = 3},
        BatchReader::Options{.global = 8, .micro_batch = 0},
        BatchReader::Options{.global = 0, .micro_batch = 1},
        BatchReader::Options{.global = 8, .micro_batch = 4, .replicas = 4},
        BatchReader::Options{.global = 8, .micro_batch = 16}}) {
    EXPECT_THAT(BatchReader::Create(dataset.get(), options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("batch.global")));
  }
}

// Another program reads the same lines: nlohmann-json, line by line.
TEST(BatchReaderTest, ParityLinesComeOutAsTheyAre) {
  for (const char* name :
       {"parity/gpt2_masked/train.jsonl", "parity/llama_tied/train.jsonl"}) {
    auto opened = Dataset::Open(
        {.train_path = TestData(name), .context = 64, .vocab = 256});
    ASSERT_OK(opened.status());
    const Dataset& dataset = **opened;
    const int64_t length = dataset.sequence_length();
    ASSERT_OK_AND_ASSIGN(
        const BatchReader reader,
        BatchReader::Create(
            &dataset,
            {.global = 4, .micro_batch = 2, .order = Order::kSequential}));
    std::ifstream file(TestData(name));
    std::string line;
    int64_t count = 0;
    std::vector<Row> rows;
    for (; std::getline(file, line); ++count) {
      if (count % 2 == 0) {
        rows = ReadRows(dataset, reader,
                        {.cursor = count / 4 * 4, .micro_batch = count / 2 % 2},
                        2);
      }
      const auto json = nlohmann::json::parse(line);
      const auto ids = json["input_ids"].get<std::vector<int32_t>>();
      const auto labels = json["labels"].get<std::vector<int32_t>>();
      ASSERT_EQ(static_cast<int64_t>(ids.size()), length + 1);
      Row expected(ids.begin(), ids.end() - 1);
      expected.insert(expected.end(), labels.begin() + 1, labels.end());
      EXPECT_EQ(rows[count % 2], expected) << name << ":" << count + 1;
    }
    EXPECT_EQ(count, dataset.train_sequences());
  }
}

}  // namespace
}  // namespace penstock::server::data
