#include "server/data/batch_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/data/json_line.h"
#include "server/data/permutation.h"

namespace penstock::server::data {

absl::StatusOr<BatchReader> BatchReader::Create(const Dataset* dataset,
                                                const Options& options) {
  // Divided one after the other, so that no product overflows.
  const bool whole =
      options.global >= 1 && options.micro_batch >= 1 &&
      options.replicas >= 1 && options.global % options.micro_batch == 0 &&
      options.global / options.micro_batch % options.replicas == 0;
  if (!whole) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch.global ", options.global, " must be micro_batch ",
        options.micro_batch, " * micro-batches * replicas ", options.replicas));
  }
  return BatchReader(dataset, options,
                     options.global / options.micro_batch / options.replicas);
}

BatchReader::BatchReader(const Dataset* dataset, const Options& options,
                         int64_t micro_batches)
    : dataset_(dataset), options_(options), micro_batches_(micro_batches) {}

int64_t BatchReader::FirstSample(const MicroBatch& at) const {
  CHECK_GE(at.cursor, 0);
  CHECK(at.replica >= 0 && at.replica < options_.replicas) << at.replica;
  CHECK(at.micro_batch >= 0 && at.micro_batch < micro_batches_)
      << at.micro_batch;
  return at.cursor +
         (at.replica * micro_batches_ + at.micro_batch) * options_.micro_batch;
}

int64_t BatchReader::PassOf(int64_t sample) const {
  return sample / dataset_->train_sequences();
}

int64_t BatchReader::SequenceOf(int64_t sample) const {
  const int64_t n = dataset_->train_sequences();
  const int64_t index = sample % n;
  if (options_.order == Order::kSequential) return index;
  return Permutation({.size = n, .seed = options_.seed, .pass = PassOf(sample)})
      .At(index);
}

SequenceOut BatchReader::Row(const BatchOut& out, int64_t row) const {
  const int64_t length = dataset_->sequence_length();
  const auto cut = [&](absl::Span<int32_t> all) {
    if (all.empty()) return all;
    CHECK_EQ(static_cast<int64_t>(all.size()), options_.micro_batch * length);
    return all.subspan(row * length, length);
  };
  return {.ids = cut(out.ids), .labels = cut(out.labels)};
}

absl::Status BatchReader::ReadTraining(const MicroBatch& at,
                                       const BatchOut& out) const {
  const int64_t first = FirstSample(at);
  for (int64_t row = 0; row < options_.micro_batch; ++row) {
    RETURN_IF_ERROR(
        dataset_->ReadTraining(SequenceOf(first + row), Row(out, row)));
  }
  return absl::OkStatus();
}

absl::Status BatchReader::ReadValidation(const MicroBatch& at,
                                         const BatchOut& out) const {
  const int64_t first = FirstSample(at);
  for (int64_t row = 0; row < options_.micro_batch; ++row) {
    const SequenceOut sequence = Row(out, row);
    if (first + row < dataset_->validation_sequences()) {
      RETURN_IF_ERROR(dataset_->ReadValidation(first + row, sequence));
    } else {
      std::fill(sequence.ids.begin(), sequence.ids.end(), 0);
      std::fill(sequence.labels.begin(), sequence.labels.end(), kIgnoredLabel);
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::data
