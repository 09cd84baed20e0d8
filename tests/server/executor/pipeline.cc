#include "tests/server/executor/pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/digest/sha256.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/device/reference/factory.h"
#include "server/model/init.h"

namespace penstock::testing {

using common::sync::MutexLock;
using server::executor::Executor;
using server::model::ParameterStore;

namespace {

std::string Combined(const std::map<std::string, std::string>& digests) {
  common::digest::Sha256 sha;
  for (const auto& [name, digest] : digests) {
    sha.Update(name);
    sha.Update(absl::string_view("\0", 1));
    sha.Update(absl::string_view(digest));
  }
  return common::digest::ToHex(sha.Finish());
}

}  // namespace

void Mailbox::Put(RankEvent event) {
  MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

std::unique_ptr<RankEvent> Mailbox::Take() {
  MutexLock lock(&mutex_);
  const auto there = [this] {
    mutex_.AssertHeld();
    return !events_.empty();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(60))) {
    return nullptr;
  }
  auto event = std::make_unique<RankEvent>(std::move(events_.front()));
  events_.pop_front();
  return event;
}

std::vector<RankEvent> Mailbox::TakeAll() {
  MutexLock lock(&mutex_);
  std::vector<RankEvent> events(events_.begin(), events_.end());
  events_.clear();
  return events;
}

absl::Status MadeUpData::Read(Split split, int64_t first,
                              absl::Span<int32_t> ids,
                              absl::Span<int32_t> labels) {
  const auto token = [&](int64_t sequence, int64_t position) {
    uint64_t x = sequence * 1000 + position * 7 +
                 (split == Split::kValidation ? 500'000 : 0);
    x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15;
    return static_cast<int32_t>((x >> 33) % vocab_);
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = token(first + i / sequence_length_, i % sequence_length_);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t sequence = first + i / sequence_length_;
    const int64_t next = i % sequence_length_ + 1;
    labels[i] = (sequence + next) % 5 == 0 ? server::device::kIgnoredLabel
                                           : token(sequence, next);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(Options options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(options)));
  RETURN_IF_ERROR(pipeline->Build());
  return pipeline;
}

Pipeline::~Pipeline() {
  Abort();
  StopExecutors();
}

void Pipeline::StopExecutors() {
  for (Rank& rank : ranks_) rank.executor.reset();
}

absl::Status Pipeline::OpenListeners(std::vector<std::string>& addresses) {
  for (int r = 0; r < options_.program.ranks(); ++r) {
    ASSIGN_OR_RETURN(listeners_.emplace_back(),
                     server::transport::tcp::Listener::Open(
                         {}, real_clock_, common::ids::SystemRandom()));
    addresses.push_back(listeners_.back()->address());
  }
  return absl::OkStatus();
}

absl::Status Pipeline::Build() {
  AssignmentOptions settings = options_.assignment;
  if (options_.wire == Wire::kTcp) {
    RETURN_IF_ERROR(OpenListeners(settings.addresses));
  }
  const std::vector<v1::Assignment> assignments =
      Assignments(options_.program, settings);
  for (size_t r = 0; r < assignments.size(); ++r) {
    Rank& rank = ranks_.emplace_back();
    ASSIGN_OR_RETURN(rank.assignment,
                     server::executor::DecodeAssignment(assignments[r]));
    if (options_.device) {
      rank.device = options_.device(r);
    } else {
      ASSIGN_OR_RETURN(rank.device,
                       server::device::reference::CreateReferenceDevice());
    }
    rank.data = options_.data
                    ? options_.data(r)
                    : std::make_unique<MadeUpData>(settings.sequence_length,
                                                   settings.model.vocab);
    ASSIGN_OR_RETURN(
        rank.parameters,
        ParameterStore::Create(*rank.device, rank.assignment.parameters()));
    ParameterStore::Source source = options_.weights;
    if (!source) {
      source = [&settings](const server::model::ParameterSpec& spec,
                           absl::Span<float> values) {
        server::model::Initialise(settings.seed, spec, values);
        return absl::OkStatus();
      };
    }
    ASSIGN_OR_RETURN(const auto stream, rank.device->CreateStream());
    RETURN_IF_ERROR(
        rank.parameters->Load(*stream, source, 0, absl::InfiniteFuture()));
    rank.listener = std::make_unique<RankListener>(r, mailbox_);
  }
  return StartExecutors(0);
}

absl::StatusOr<std::unique_ptr<server::transport::Transport>>
Pipeline::MakeTransport(int rank) {
  const server::transport::TransportOptions options =
      ranks_[rank].assignment.transport(epoch_, std::string(32, 's'));
  if (options_.wire == Wire::kTcp) {
    return listeners_[rank]->CreateTransport(options);
  }
  return hub_->Join(absl::StrCat("stage-", rank), options);
}

absl::Status Pipeline::StartExecutors(int64_t step) {
  hub_ = std::make_unique<server::transport::inprocess::Hub>(options_.hub);
  for (int r = 0; r < ranks(); ++r) {
    Rank& rank = ranks_[r];
    ASSIGN_OR_RETURN(std::unique_ptr<server::transport::Transport> transport,
                     MakeTransport(r));
    if (options_.transport) {
      transport = options_.transport(r, std::move(transport));
    }
    ASSIGN_OR_RETURN(rank.executor,
                     Executor::Create(rank.assignment,
                                      {.epoch = epoch_,
                                       .step = step,
                                       .stage_name = absl::StrCat("stage-", r)},
                                      {.device = rank.device.get(),
                                       .parameters = rank.parameters.get(),
                                       .transport = std::move(transport),
                                       .source = rank.data.get(),
                                       .writer = options_.writer,
                                       .clock = &clock(),
                                       .listener = rank.listener.get()}));
  }
  return absl::OkStatus();
}

void Pipeline::Abort() {
  for (Rank& rank : ranks_) {
    if (rank.executor != nullptr) {
      rank.executor->Abort(absl::AbortedError("the test aborts"));
    }
  }
}

absl::Status Pipeline::NextEpoch(int64_t step) {
  Abort();
  StopExecutors();
  mailbox_.TakeAll();
  ++epoch_;
  adam_t_ = step;
  step_ = step;
  return StartExecutors(step);
}

absl::StatusOr<RankEvent> Pipeline::Next() {
  std::unique_ptr<RankEvent> event = mailbox_.Take();
  if (event == nullptr) return absl::DeadlineExceededError("the test hangs");
  if (const auto* failure = std::get_if<v1::StageFailure>(&event->body)) {
    return absl::Status(
        static_cast<absl::StatusCode>(failure->cause().code()),
        absl::StrCat("rank ", event->rank, ": ", failure->cause().message()));
  }
  return *std::move(event);
}

v1::ReleaseStep Pipeline::Combine(Step& step, int64_t number) {
  double loss = 0, squares = 0;
  std::map<int64_t, double> sums;
  for (const v1::StepReport& report : step.reports) {
    for (const v1::MicroBatchLoss& part : report.losses()) {
      loss += part.loss_sum();
      step.valid += part.valid_tokens();
    }
    for (const v1::TensorSum& sum : report.sums()) {
      CHECK(sums.emplace(sum.canonical_index(), sum.sum_squares()).second)
          << "parameter " << sum.canonical_index() << " is reported twice";
    }
  }
  for (const auto& [index, sum] : sums) squares += sum;
  v1::ReleaseStep release;
  release.set_step(number);
  if (step.valid == 0) {
    release.set_decision(v1::ReleaseStep::DECISION_SKIP);
    return release;
  }
  step.loss = loss / step.valid;
  step.grad_norm = std::sqrt(squares) / step.valid;
  ++adam_t_;
  const auto correction = [this](double beta) {
    return static_cast<float>(
        1 - std::pow(static_cast<double>(static_cast<float>(beta)),
                     static_cast<double>(adam_t_)));
  };
  const v1::OptimizerConfig& optimizer = options_.assignment.optimizer;
  const double clip =
      std::min(1.0, options_.clip_norm / (step.grad_norm + 1e-6));
  release.set_decision(v1::ReleaseStep::DECISION_APPLY);
  release.set_grad_scale(static_cast<float>(clip / step.valid));
  release.set_learning_rate(static_cast<float>(options_.learning_rate));
  release.set_bias_correction1(correction(optimizer.beta1()));
  release.set_bias_correction2(correction(optimizer.beta2()));
  release.set_adam_t(adam_t_);
  return release;
}

absl::StatusOr<std::vector<Pipeline::Step>> Pipeline::Train(
    int count, const AtBarrier& at_barrier) {
  const int64_t end = step_ + count;
  int64_t queued = step_;
  std::vector<Step> steps;
  std::map<int64_t, int> acks;
  while (step_ < end) {
    for (; queued < std::min(end, step_ + options_.window); ++queued) {
      for (int r = 0; r < ranks(); ++r) {
        RETURN_IF_ERROR(Enqueue(r, Commands(r, queued + 1)));
      }
    }
    Step step;
    step.reports.resize(ranks());
    for (int reported = 0; reported < ranks();) {
      ASSIGN_OR_RETURN(const RankEvent event, Next());
      if (const auto* report = std::get_if<v1::StepReport>(&event.body)) {
        CHECK_EQ(report->step(), step_ + 1);
        step.reports[event.rank] = *report;
        ++reported;
      } else {
        ++acks[std::get<v1::ApplyAck>(event.body).step()];
      }
    }
    const v1::ReleaseStep release = Combine(step, step_ + 1);
    if (at_barrier) at_barrier(step);
    for (int r = 0; r < ranks(); ++r) {
      RETURN_IF_ERROR(Enqueue(r, release));
    }
    ++step_;
    steps.push_back(std::move(step));
  }
  while (count > 0 && acks[end] < ranks()) {
    ASSIGN_OR_RETURN(const RankEvent event, Next());
    ++acks[std::get<v1::ApplyAck>(event.body).step()];
  }
  return steps;
}

absl::StatusOr<v1::EvalReport> Pipeline::Evaluate(int micro_batches) {
  for (int r = 0; r < ranks(); ++r) {
    RETURN_IF_ERROR(Enqueue(
        r, EvaluateCommands(options_.program, r, step_, micro_batches)));
  }
  ASSIGN_OR_RETURN(const RankEvent event, Next());
  return std::get<v1::EvalReport>(event.body);
}

absl::StatusOr<std::string> Pipeline::End() {
  for (int r = 0; r < ranks(); ++r) {
    RETURN_IF_ERROR(Enqueue(r, v1::End()));
  }
  std::map<std::string, std::string> digests;
  for (int r = 0; r < ranks(); ++r) {
    ASSIGN_OR_RETURN(const RankEvent event, Next());
    for (const v1::TensorDigest& digest :
         std::get<v1::EndReport>(event.body).digests()) {
      CHECK(digests.emplace(digest.name(), digest.sha256()).second)
          << digest.name() << " has two owners";
    }
  }
  return Combined(digests);
}

absl::StatusOr<std::string> Pipeline::WeightsSha256() {
  std::map<std::string, std::string> digests;
  for (Rank& rank : ranks_) {
    ASSIGN_OR_RETURN(const auto stream, rank.device->CreateStream());
    ASSIGN_OR_RETURN(const auto read,
                     rank.parameters->Digests(*stream, absl::InfiniteFuture()));
    for (const ParameterStore::TensorDigest& digest : read) {
      digests[digest.name] =
          std::string(digest.sha256.begin(), digest.sha256.end());
    }
  }
  return Combined(digests);
}

absl::Status Pipeline::ReadWeights(const ParameterStore::Sink& sink) {
  for (Rank& rank : ranks_) {
    ASSIGN_OR_RETURN(const auto stream, rank.device->CreateStream());
    RETURN_IF_ERROR(
        rank.parameters->ReadWeights(*stream, sink, absl::InfiniteFuture()));
  }
  return absl::OkStatus();
}

absl::Status Pipeline::ReadGradients(const ParameterStore::Sink& sink) {
  for (Rank& rank : ranks_) {
    ASSIGN_OR_RETURN(const auto stream, rank.device->CreateStream());
    RETURN_IF_ERROR(
        rank.parameters->ReadGradients(*stream, sink, absl::InfiniteFuture()));
  }
  return absl::OkStatus();
}

}  // namespace penstock::testing
