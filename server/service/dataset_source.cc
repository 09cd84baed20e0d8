#include "server/service/dataset_source.h"

#include <utility>

#include "common/status/status_macros.h"

namespace penstock::server::service {

absl::StatusOr<std::unique_ptr<DatasetSource>> DatasetSource::Create(
    std::shared_ptr<const data::Dataset> dataset,
    const data::BatchReader::Options& options) {
  ASSIGN_OR_RETURN(data::BatchReader reader,
                   data::BatchReader::Create(dataset.get(), options));
  return std::unique_ptr<DatasetSource>(new DatasetSource(
      std::move(dataset), reader, options.global, options.micro_batch));
}

absl::Status DatasetSource::Read(Split split, int64_t first,
                                 absl::Span<int32_t> ids,
                                 absl::Span<int32_t> labels) {
  const data::BatchReader::MicroBatch at{
      .cursor = first - first % global_,
      .micro_batch = first % global_ / micro_batch_};
  const data::BatchOut out{.ids = ids, .labels = labels};
  return split == Split::kTraining ? reader_.ReadTraining(at, out)
                                   : reader_.ReadValidation(at, out);
}

}  // namespace penstock::server::service
