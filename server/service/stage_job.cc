#include "server/service/stage_job.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "common/status/status_macros.h"
#include "common/text/utf8.h"
#include "server/checkpoint/model_folder_reader.h"
#include "server/executor/edge_proto.h"
#include "server/executor/measured_memory.h"
#include "server/model/hugging_face.h"
#include "server/model/init.h"
#include "server/service/dataset_source.h"
#include "server/service/model_folder_writer.h"
#include "server/transport/modelled/modelled_transport.h"

namespace penstock::server::service {
namespace {

constexpr absl::Duration kWatchInterval = absl::Seconds(1);
// Elements of a new weight that are made at a time.
constexpr size_t kMadePiece = 1 << 20;
// They are for people; the fingerprint is of all.
constexpr int kFilesTold = 64;

v1::InputReport ToProto(const data::InputReport& report) {
  v1::InputReport out;
  out.set_fingerprint(report.fingerprint);
  out.set_sequences(report.sequences);
  out.set_tokens(report.tokens);
  out.set_sequence_length(report.sequence_length);
  out.set_line_tokens(report.line_tokens);
  out.set_largest_id(report.largest_id);
  out.set_masked_line(common::text::Utf8OrEscaped(report.masked_line));
  out.set_file_count(static_cast<int64_t>(report.files.size()));
  for (const data::ListedFile& file : report.files) {
    if (out.files_size() == kFilesTold) break;
    v1::InputFile& to = *out.add_files();
    to.set_path(common::text::Utf8OrEscaped(file.path));
    to.set_bytes(file.bytes);
  }
  return out;
}

absl::StatusOr<checkpoint::ModelFolderReader> OpenFolder(
    const std::string& folder, const model::ModelConfig& config) {
  checkpoint::ModelFolderReader::Options options;
  options.folder = folder;
  options.prefix = model::NamePrefix(config);
  if (config.tied) {
    options.tied_head_source = model::TokenEmbeddingName(config);
  }
  for (const model::ParameterSpec& spec : model::CanonicalParameters(config)) {
    std::vector<int64_t> shape;
    for (int i = 0; i < spec.shape.rank(); ++i) {
      shape.push_back(spec.shape.dim(i));
    }
    options.expected.push_back({.name = spec.name, .shape = std::move(shape)});
  }
  return checkpoint::ModelFolderReader::Open(options);
}

// The digest of the folder's files, which suit the model.
absl::StatusOr<std::string> CheckModel(const v1::CheckInputs& request,
                                       const model::ModelConfig& model,
                                       JobInputs& inputs) {
  const auto piece_read = [&inputs] { return inputs.PieceDone(); };
  ASSIGN_OR_RETURN(const checkpoint::ModelFolderReader folder,
                   OpenFolder(request.model_path(), model));
  for (const v1::Chunk& chunk : request.chunks()) {
    if (chunk.embedding() && model.tied) {
      RETURN_IF_ERROR(folder.CheckTiedHead(piece_read));
    }
  }
  return folder.Digest(piece_read);
}

data::Format Decode(v1::DataConfig::Format format) {
  switch (format) {
    case v1::DataConfig::FORMAT_TEXT:
      return data::Format::kText;
    case v1::DataConfig::FORMAT_JSONL:
      return data::Format::kJsonl;
    case v1::DataConfig::FORMAT_NANOGPT:
      return data::Format::kNanogpt;
    default:
      return data::Format::kAuto;
  }
}

// The assignment's values come from what was reported of these data.
absl::Status CheckResolved(const v1::DataConfig& data,
                           const model::ModelConfig& model,
                           const data::Dataset& dataset) {
  const int64_t length = dataset.sequence_length();
  if ((data.sequence_length() != 0 && data.sequence_length() != length) ||
      model.context < length) {
    return absl::InternalError(absl::StrCat(
        data.train_path(), ": its sequences predict ", length,
        " tokens each, but the assignment says ", data.sequence_length(),
        " and model.context ", model.context));
  }
  int64_t largest = dataset.train_report().largest_id;
  if (const auto& validation = dataset.validation_report()) {
    largest = std::max(largest, validation->largest_id);
  }
  if (model.vocab != 0 && model.vocab <= largest) {
    return absl::InternalError(
        absl::StrCat(data.train_path(), ": has token id ", largest,
                     ", but the assignment says model.vocab ", model.vocab));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const data::Dataset>> JobInputs::OpenData(
    const v1::DataConfig& data, const model::ModelConfig& model) {
  // Not of what the data decide: at the check that is open, then resolved.
  v1::DataConfig named = data;
  named.clear_sequence_length();
  named.clear_text_sequence_length();
  const std::string key = named.SerializeAsString();
  if (dataset_ != nullptr && key == key_) {
    RETURN_IF_ERROR(CheckResolved(data, model, *dataset_));
    return dataset_;
  }
  data::Dataset::Options options;
  options.train_path = data.train_path();
  options.validation_path = data.validation_path();
  options.validation_millionths = data.validation_millionths();
  options.format = Decode(data.format());
  options.field = data.field();
  if (data.sequence_length() != 0) {
    options.sequence_length = data.sequence_length();
  }
  if (data.text_sequence_length() != 0) {
    options.text_sequence_length = data.text_sequence_length();
  }
  options.context = model.context;
  options.vocab = model.vocab == 0 ? data::kNoVocabulary : model.vocab;
  options.piece_done = [this] { return PieceDone(); };
  ASSIGN_OR_RETURN(std::unique_ptr<data::Dataset> opened,
                   data::Dataset::Open(options));
  dataset_ = std::move(opened);
  key_ = key;
  return dataset_;
}

void JobInputs::Reset() {
  dataset_.reset();
  key_.clear();
}

namespace {

absl::StatusOr<v1::InputsChecked> CheckAll(const v1::CheckInputs& request,
                                           JobInputs& inputs) {
  // The vocabulary may still be open (the data decide): everything else of the
  // model is checked now.
  v1::ModelConfig checked = request.model();
  if (checked.vocab() == 0) checked.set_vocab(1);
  ASSIGN_OR_RETURN(model::ModelConfig model, executor::DecodeModel(checked));
  model.vocab = request.model().vocab();
  v1::InputsChecked result;
  if (!request.model_path().empty()) {
    const absl::StatusOr<std::string> digest =
        CheckModel(request, model, inputs);
    if (!digest.ok()) {
      return common::status::WithKeyPath(digest.status(), "model.from");
    }
    result.set_model_digest(*digest);
  }
  if (request.has_data()) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const data::Dataset> dataset,
                     inputs.OpenData(request.data(), model));
    *result.mutable_train() = ToProto(dataset->train_report());
    if (dataset->validation_report().has_value()) {
      *result.mutable_validation() = ToProto(*dataset->validation_report());
    }
  }
  return result;
}

}  // namespace

v1::InputsChecked CheckInputs(const v1::CheckInputs& request,
                              const std::string& stage_name,
                              JobInputs& inputs) {
  absl::StatusOr<v1::InputsChecked> checked = CheckAll(request, inputs);
  if (checked.ok()) return *std::move(checked);
  v1::InputsChecked failed;
  *failed.mutable_failure() =
      common::rpc::ToCause(checked.status(), stage_name);
  failed.set_failed_key(common::status::KeyPath(checked.status()));
  return failed;
}

// Passes the executor's words on, as messages of the job's epoch.
class StageJob::Listener final : public executor::ExecutorListener {
 public:
  Listener(int64_t epoch, JobRunner::Report report)
      : epoch_(epoch), report_(std::move(report)) {}

  void OnStepReport(const v1::StepReport& report) override {
    v1::StageMessage message;
    *message.mutable_step_report() = report;
    report_(epoch_, std::move(message));
  }
  void OnApplyAck(const v1::ApplyAck& ack) override {
    v1::StageMessage message;
    *message.mutable_apply_ack() = ack;
    report_(epoch_, std::move(message));
  }
  void OnEvalReport(const v1::EvalReport& report) override {
    v1::StageMessage message;
    *message.mutable_eval_report() = report;
    report_(epoch_, std::move(message));
  }
  void OnEndReport(const v1::EndReport& report) override {
    v1::StageMessage message;
    *message.mutable_end_report() = report;
    report_(epoch_, std::move(message));
  }
  void OnFailure(const v1::StageFailure& failure) override {
    v1::StageMessage message;
    *message.mutable_failure() = failure;
    report_(epoch_, std::move(message));
  }

 private:
  const int64_t epoch_;
  const JobRunner::Report report_;
};

absl::StatusOr<std::unique_ptr<StageJob>> StageJob::Create(
    const StageResources& resources, const v1::Assignment& assignment,
    int64_t epoch, JobInputs& inputs, JobRunner::Report report) {
  ASSIGN_OR_RETURN(executor::StageAssignment decoded,
                   executor::DecodeAssignment(assignment));
  std::unique_ptr<StageJob> job(
      new StageJob(resources, assignment.job_id(), std::move(decoded), epoch));
  ASSIGN_OR_RETURN(job->device_, resources.make_device(assignment.numerics_id(),
                                                       assignment.threads()));
  job->listener_ = std::make_unique<Listener>(epoch, std::move(report));
  RETURN_IF_ERROR(job->OpenSource(assignment, inputs));
  RETURN_IF_ERROR(job->LoadWeights(assignment, inputs));
  RETURN_IF_ERROR(job->StartExecutor(assignment));
  return job;
}

StageJob::StageJob(const StageResources& resources, std::string job_id,
                   executor::StageAssignment assignment, int64_t epoch)
    : resources_(resources),
      job_id_(std::move(job_id)),
      assignment_(std::move(assignment)),
      epoch_(epoch) {}

StageJob::~StageJob() {
  watch_.reset();     // It calls the executor,
  executor_.reset();  // which uses everything else.
}

absl::Status StageJob::OpenSource(const v1::Assignment& assignment,
                                  JobInputs& inputs) {
  if (!assignment.has_data()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::shared_ptr<const data::Dataset> dataset,
                   inputs.OpenData(assignment.data(), assignment_.model));
  ASSIGN_OR_RETURN(
      source_,
      DatasetSource::Create(
          std::move(dataset),
          {.global = assignment.micro_batch() * assignment.micro_batches(),
           .micro_batch = assignment.micro_batch(),
           .order =
               assignment.data().order() == v1::DataConfig::ORDER_SEQUENTIAL
                   ? data::Order::kSequential
                   : data::Order::kShuffled,
           .seed = assignment.seed()}));
  return absl::OkStatus();
}

absl::Status StageJob::LoadWeights(const v1::Assignment& assignment,
                                   JobInputs& inputs) {
  device::Device& device = *device_;
  ASSIGN_OR_RETURN(parameters_, model::ParameterStore::Create(
                                    device, assignment_.parameters()));
  ASSIGN_OR_RETURN(const std::unique_ptr<device::Stream> stream,
                   device.CreateStream());
  const absl::Time deadline =
      resources_.clock->Now() + assignment_.connect_deadline;
  if (assignment.model_path().empty()) {
    const uint64_t seed = assignment.seed();
    return parameters_->Load(
        *stream,
        [seed, &inputs](const model::ParameterSpec& spec,
                        absl::Span<float> values) -> absl::Status {
          for (size_t done = 0; done < values.size(); done += kMadePiece) {
            model::InitialisePart(seed, spec, done,
                                  values.subspan(done, kMadePiece));
            RETURN_IF_ERROR(inputs.PieceDone());
          }
          return absl::OkStatus();
        },
        0, deadline);
  }
  ASSIGN_OR_RETURN(const checkpoint::ModelFolderReader folder,
                   OpenFolder(assignment.model_path(), assignment_.model));
  return parameters_->Load(
      *stream,
      [&folder, &inputs](const model::ParameterSpec& spec,
                         absl::Span<float> values) {
        return common::status::Annotate(
            folder.Read(spec.name, values,
                        [&inputs] { return inputs.PieceDone(); }),
            "model.from");
      },
      0, deadline);
}

absl::Status StageJob::StartExecutor(const v1::Assignment& assignment) {
  ASSIGN_OR_RETURN(std::unique_ptr<transport::Transport> transport,
                   resources_.make_transport(assignment_.transport(
                       epoch_, assignment.epoch_secret())));
  if (const auto& wire = assignment_.modelled_transfers;
      wire.has_value() && wire->takes_time()) {
    transport = transport::modelled::ModelTransfers(std::move(transport), *wire,
                                                    *resources_.clock);
  }
  transport_ = transport.get();
  writer_ = std::make_unique<ModelFolderWriter>(assignment_.model, epoch_);
  ASSIGN_OR_RETURN(
      executor_,
      executor::Executor::Create(
          assignment_,
          {.epoch = epoch_, .step = 0, .stage_name = resources_.stage_name},
          {.device = device_.get(),
           .parameters = parameters_.get(),
           .transport = std::move(transport),
           .source = source_.get(),
           .writer = writer_.get(),
           .clock = resources_.clock,
           .listener = listener_.get()}));
  ASSIGN_OR_RETURN(watch_, executor::DeadlineWatch::Start(
                               [this] { return executor_->CheckDeadline(); },
                               kWatchInterval));
  return absl::OkStatus();
}

absl::StatusOr<v1::StageReady> StageJob::Connect() {
  RETURN_IF_ERROR(transport_->Connect(resources_.clock->Now() +
                                      assignment_.connect_deadline));
  v1::StageReady ready;
  const std::vector<model::ParameterSpec>& owned = parameters_->owned();
  for (const model::ParameterSpec& spec : owned) {
    v1::ParameterInfo& to = *ready.add_parameters();
    to.set_name(spec.name);
    to.set_canonical_index(spec.index);
    to.set_elements(spec.shape.elements());
    to.set_owned(true);
  }
  *ready.mutable_memory() = executor::PeakMemory(device_->memory());
  return ready;
}

std::vector<v1::Edge> StageJob::unconnected() const {
  std::vector<v1::Edge> edges;
  for (const transport::Edge& edge : transport_->Unconnected()) {
    edges.push_back(executor::ToProto(edge));
  }
  return edges;
}

absl::Status StageJob::Run(const RunAction& work) {
  return std::visit(
      [&](const auto& message) {
        return executor_->Enqueue(message, work.came);
      },
      work.work);
}

bool StageJob::TellsFailure() const {
  return !executor_->Stopped().ok() || transport_->failure().edge.has_value();
}

void StageJob::Abort(const absl::Status& cause) { executor_->Abort(cause); }

}  // namespace penstock::server::service
