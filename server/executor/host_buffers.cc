#include "server/executor/host_buffers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/status/status_macros.h"

namespace penstock::server::executor {

absl::StatusOr<std::unique_ptr<HostInputs>> HostInputs::Create(
    device::Device& device, const StageAssignment& assignment,
    const std::vector<std::unique_ptr<model::Chunk>>& chunks,
    MicroBatchSource* source) {
  std::unique_ptr<HostInputs> inputs(
      new HostInputs(device, assignment, source));
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (source == nullptr &&
        (chunks[i]->has_embedding() || chunks[i]->has_head())) {
      return absl::FailedPreconditionError(
          absl::StrCat("stage ", assignment.chunks[i].stage,
                       " reads data, but the rank has no source of it"));
    }
    inputs->chunks_.push_back(chunks[i].get());
    std::vector<Staging> slots;
    for (int slot = 0; slot < assignment.chunks[i].slots; ++slot) {
      Staging staging;
      ASSIGN_OR_RETURN(staging.buffer,
                       device.Allocate(chunks[i]->host_input_bytes(),
                                       device::MemoryUse::kPinnedHost));
      ASSIGN_OR_RETURN(staging.copied, device.CreateEvent());
      slots.push_back(std::move(staging));
    }
    inputs->staging_.push_back(std::move(slots));
  }
  return inputs;
}

absl::Status HostInputs::Fill(const Program& program,
                              const ProgramCommand& command) {
  const Staging& staging = staging_[command.chunk][command.slot];
  RETURN_IF_ERROR(staging.copied->Await(absl::InfiniteFuture()));
  const model::Chunk& chunk = *chunks_[command.chunk];
  std::byte* const base = staging.buffer->data();
  const int64_t first =
      program.trains()
          ? assignment_.FirstTrainingSequence(program.step, command.micro_batch)
          : assignment_.FirstValidationSequence(command.micro_batch);
  int64_t* const position = chunk.Position(base).i64();
  position[0] = program.step;
  position[1] = first;
  if (!chunk.has_embedding() && !chunk.has_head()) return absl::OkStatus();
  const int64_t rows = assignment_.shape.rows();
  absl::Span<int32_t> ids, labels;
  if (chunk.has_embedding()) ids = {chunk.Ids(base).i32(), size_t(rows)};
  if (chunk.has_head()) labels = {chunk.Labels(base).i32(), size_t(rows)};
  return source_->Read(program.trains() ? MicroBatchSource::Split::kTraining
                                        : MicroBatchSource::Split::kValidation,
                       first, ids, labels);
}

void HostInputs::Copy(device::Stream& stream, const ProgramCommand& command,
                      std::byte* slot) {
  const Staging& staging = staging_[command.chunk][command.slot];
  device_.CopyToDevice(stream, slot, staging.buffer->data(),
                       chunks_[command.chunk]->host_input_bytes());
  stream.Record(*staging.copied);
}

int64_t LossBuffer::PredictBytes(const StageAssignment& assignment) {
  return assignment.micro_batches * assignment.shape.batch *
         static_cast<int64_t>(sizeof(double) + sizeof(int64_t));
}

absl::StatusOr<std::unique_ptr<LossBuffer>> LossBuffer::Create(
    device::Device& device, const StageAssignment& assignment) {
  std::unique_ptr<LossBuffer> losses(new LossBuffer(device, assignment));
  const int64_t bytes = PredictBytes(assignment);
  ASSIGN_OR_RETURN(losses->device_memory_,
                   device.Allocate(bytes, device::MemoryUse::kWorkspace));
  ASSIGN_OR_RETURN(losses->host_memory_,
                   device.Allocate(bytes, device::MemoryUse::kPinnedHost));
  return losses;
}

int64_t LossBuffer::LossOffset(int micro_batch) const {
  return (micro_batch % micro_batches_) * batch_ * sizeof(double);
}
int64_t LossBuffer::ValidOffset(int micro_batch) const {
  return (micro_batches_ + micro_batch % micro_batches_) * batch_ *
         sizeof(int64_t);
}

device::Tensor LossBuffer::sequence_loss(int micro_batch) const {
  return device::Tensor(device_memory_->data() + LossOffset(micro_batch),
                        device::DType::kF64, {batch_});
}
device::Tensor LossBuffer::sequence_valid(int micro_batch) const {
  return device::Tensor(device_memory_->data() + ValidOffset(micro_batch),
                        device::DType::kI64, {batch_});
}

void LossBuffer::CopyToHost(device::Stream& stream) {
  device_.CopyToHost(stream, host_memory_->data(), device_memory_->data(),
                     host_memory_->bytes());
}

v1::MicroBatchLoss LossBuffer::Sum(int micro_batch) const {
  const auto* loss = reinterpret_cast<const double*>(host_memory_->data() +
                                                     LossOffset(micro_batch));
  const auto* valid = reinterpret_cast<const int64_t*>(
      host_memory_->data() + ValidOffset(micro_batch));
  double loss_sum = 0;
  int64_t valid_tokens = 0;
  for (int64_t i = 0; i < batch_; ++i) {
    loss_sum += loss[i];
    valid_tokens += valid[i];
  }
  v1::MicroBatchLoss sum;
  sum.set_micro_batch(micro_batch);
  sum.set_loss_sum(loss_sum);
  sum.set_valid_tokens(valid_tokens);
  return sum;
}

}  // namespace penstock::server::executor
