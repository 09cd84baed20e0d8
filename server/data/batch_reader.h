// Which sequences a step takes, and their tokens: the deterministic sampler.
//
// Sample g of a job belongs to pass g div n (n training sequences) and is the
// sequence Permutation(seed, pass)(g mod n), or g mod n in sequential order.
// A step's samples follow each other: replica-major, then micro-batch. Nothing
// depends on K, on who asks or on the size of a micro-batch.
#ifndef PENSTOCK_SERVER_DATA_BATCH_READER_H_
#define PENSTOCK_SERVER_DATA_BATCH_READER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/data/dataset.h"

namespace penstock::server::data {

enum class Order { kShuffled, kSequential };

// Where a micro-batch goes. Either span may be empty: not wanted.
struct BatchOut {
  absl::Span<int32_t> ids;     // (micro_batch, sequence_length)
  absl::Span<int32_t> labels;  // (micro_batch, sequence_length); [b, t] is what
                               // position t must predict, -100: nothing
};

// Thread-safe.
class BatchReader {
 public:
  struct Options {
    int64_t global = 0;       // Sequences a step, all replicas together.
    int64_t micro_batch = 0;  // Sequences a micro-batch.
    int64_t replicas = 1;
    Order order = Order::kShuffled;
    uint64_t seed = 0;  // Of the job.
  };

  // `dataset` must outlive the reader. InvalidArgument unless `global` is
  // micro_batch * M * replicas for a whole M of at least 1.
  static absl::StatusOr<BatchReader> Create(const Dataset* dataset,
                                            const Options& options);

  // M, micro-batches of one replica a step.
  int64_t micro_batches() const { return micro_batches_; }

  // A micro-batch of a step, or of an evaluation.
  struct MicroBatch {
    // Sequences that all earlier steps took (the job's data cursor): the
    // step's first sample. Step n from 1 of a job with one batch size:
    // (n - 1) * global. Evaluation batch b: b * global.
    int64_t cursor = 0;
    int64_t replica = 0;      // In [0, replicas).
    int64_t micro_batch = 0;  // In [0, micro_batches()).
  };

  // The global sample of the micro-batch's first sequence; the others follow.
  int64_t FirstSample(const MicroBatch& at) const;

  // The data pass that sample `sample` belongs to, from 0.
  int64_t PassOf(int64_t sample) const;

  // The training sequence, in file order, that sample `sample` is.
  int64_t SequenceOf(int64_t sample) const;

  // Fills `out`. DataLoss when a file has changed. Reads the disk.
  absl::Status ReadTraining(const MicroBatch& at, const BatchOut& out) const;

  // The same for validation: sequences in file order. Past the last one, rows
  // are filled with id 0 and label -100, so that they count for nothing.
  absl::Status ReadValidation(const MicroBatch& at, const BatchOut& out) const;

 private:
  BatchReader(const Dataset* dataset, const Options& options,
              int64_t micro_batches);

  // Row `row` of `out`.
  SequenceOut Row(const BatchOut& out, int64_t row) const;

  const Dataset* dataset_;
  Options options_;
  int64_t micro_batches_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_BATCH_READER_H_
