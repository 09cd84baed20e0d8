// What tests of whole data sets share.
#ifndef PENSTOCK_TESTS_SERVER_DATA_DATASET_CASE_H_
#define PENSTOCK_TESTS_SERVER_DATA_DATASET_CASE_H_

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "server/data/dataset.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::server::data {

// Some bytes, the same each time.
inline std::string SomeText(int64_t bytes) {
  std::string text;
  for (int64_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 37 + i / 5);
  return text;
}

// Of a .jsonl file: three tokens.
inline constexpr char kLine3[] = "{\"input_ids\":[1,2,3]}\n";

class DatasetCase : public ::testing::Test {
 protected:
  Dataset::Options Options(const std::string& path, int64_t length) const {
    return {.train_path = path,
            .sequence_length = length,
            .context = 1024,
            .vocab = 70000};
  }
  tests::fakes::TempDir dir_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_TESTS_SERVER_DATA_DATASET_CASE_H_
