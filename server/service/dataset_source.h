// The executor's micro-batches from a Dataset.
#ifndef PENSTOCK_SERVER_SERVICE_DATASET_SOURCE_H_
#define PENSTOCK_SERVER_SERVICE_DATASET_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/data/batch_reader.h"
#include "server/data/dataset.h"
#include "server/executor/micro_batch_source.h"

namespace penstock::server::service {

// Thread-compatible: confined to the engine thread.
class DatasetSource final : public executor::MicroBatchSource {
 public:
  // InvalidArgument: data::BatchReader::Create.
  static absl::StatusOr<std::unique_ptr<DatasetSource>> Create(
      std::shared_ptr<const data::Dataset> dataset,
      const data::BatchReader::Options& options);

  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override;

 private:
  DatasetSource(std::shared_ptr<const data::Dataset> dataset,
                data::BatchReader reader, int64_t global, int64_t micro_batch)
      : dataset_(std::move(dataset)),
        reader_(reader),
        global_(global),
        micro_batch_(micro_batch) {}

  const std::shared_ptr<const data::Dataset> dataset_;  // The reader's.
  const data::BatchReader reader_;
  const int64_t global_;
  const int64_t micro_batch_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_DATASET_SOURCE_H_
