#include "coordinator/dispatch/inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/message_size.h"
#include "coordinator/spec/data_facts.h"

namespace penstock::coordinator::dispatch {
namespace {

// InvalidArgument with FILE:LINE:COL and reason `reason`, for a rule that
// knows only the key.
absl::Status AtKey(const NewJob& job, const std::string& key_path,
                   const std::string& message, const std::string& reason) {
  return common::status::WithReason(
      absl::InvalidArgumentError(spec::Render(
          spec::Violation{.key_path = key_path, .message = message},
          job.positions)),
      reason);
}

absl::Status FailureOf(const NewJob& job, const CheckedInputs& checked) {
  const v1::Cause& failure = checked.answer.failure();
  std::string reason = failure.reason();
  if (reason.empty()) {
    const auto code = static_cast<absl::StatusCode>(failure.code());
    reason = code == absl::StatusCode::kNotFound ||
                     code == absl::StatusCode::kPermissionDenied ||
                     code == absl::StatusCode::kUnavailable
                 ? common::status::kReasonInputNotVisible
                 : common::status::kReasonInvalidSpec;
  }
  const std::string message =
      absl::StrCat("stage ", checked.stage_name, " on host ", checked.host,
                   ": ", failure.message());
  if (!checked.answer.failed_key().empty()) {
    return AtKey(job, checked.answer.failed_key(), message, reason);
  }
  return common::status::WithReason(absl::InvalidArgumentError(message),
                                    reason);
}

std::string Seen(const v1::InputReport& report) {
  std::string files;
  for (const v1::InputFile& file : report.files()) {
    absl::StrAppend(&files, files.empty() ? "" : ", ", file.path(), " of ",
                    file.bytes(), " bytes");
  }
  if (report.file_count() > report.files_size()) {
    absl::StrAppend(&files, " and ", report.file_count() - report.files_size(),
                    " more");
  }
  return absl::StrCat(report.sequences(), " sequences of ",
                      report.sequence_length(), " tokens in ", files,
                      ", digest ", report.fingerprint().substr(0, 12));
}

// Every reader must see what the first one sees.
absl::Status CheckSame(const NewJob& job, const char* key,
                       const CheckedInputs& a, const v1::InputReport& x,
                       const CheckedInputs& b, const v1::InputReport& y) {
  if (x.fingerprint() == y.fingerprint() && x.sequences() == y.sequences() &&
      x.sequence_length() == y.sequence_length()) {
    return absl::OkStatus();
  }
  return AtKey(
      job, key,
      absl::StrCat("stage ", a.stage_name, " on host ", a.host, " sees ",
                   Seen(x), "; stage ", b.stage_name, " on host ", b.host,
                   " sees ", Seen(y), "; give every host the same files"),
      common::status::kReasonInputNotVisible);
}

// Weights of two hosts that differ would be one model from two.
absl::Status CheckSameModel(const NewJob& job,
                            const std::vector<CheckedInputs>& answers) {
  if (job.spec.model.from.empty()) return absl::OkStatus();
  const CheckedInputs& a = answers.front();
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    const CheckedInputs& b = answers[rank];
    if (a.answer.model_digest() == b.answer.model_digest()) continue;
    const auto seen = [](const CheckedInputs& checked) {
      return absl::StrCat("stage ", checked.stage_name, " on host ",
                          checked.host, " sees weights with digest ",
                          checked.answer.model_digest().empty()
                              ? "(none)"
                              : checked.answer.model_digest().substr(0, 12));
    };
    return AtKey(job, "model.from",
                 absl::StrCat(seen(a), "; ", seen(b),
                              "; give every host the same files"),
                 common::status::kReasonInputNotVisible);
  }
  return absl::OkStatus();
}

absl::Status CheckTrain(const NewJob& job, const v1::InputReport& train,
                        const spec::JobSpec& spec) {
  if (train.sequence_length() < 1 ||
      train.sequence_length() > spec.model.context) {
    return AtKey(
        job, "data.train",
        absl::StrCat("has sequences of ", train.sequence_length(),
                     " tokens; the model takes 1 to ", spec.model.context),
        common::status::kReasonInvalidSpec);
  }
  if (train.sequences() < 1) {
    return AtKey(
        job, "data.train",
        absl::StrCat("has ", train.tokens(), " tokens, not one sequence of ",
                     train.sequence_length(),
                     " + 1; use a shorter "
                     "data.sequence_length or more "
                     "data"),
        common::status::kReasonInvalidSpec);
  }
  if (train.largest_id() >= spec.model.vocab) {
    return AtKey(job, spec.model.from.empty() ? "model.vocab" : "model.from",
                 absl::StrCat("the vocabulary has ", spec.model.vocab,
                              " ids, too few for the data: they have id ",
                              train.largest_id()),
                 common::status::kReasonInvalidSpec);
  }
  return absl::OkStatus();
}

// What somebody may have counted on.
void NoteMask(absl::string_view key, const v1::InputReport& report,
              ResolvedInputs& resolved) {
  if (report.masked_line().empty()) return;
  resolved.ignored.push_back(absl::StrCat(
      key, ": ", report.masked_line(),
      ": its attention_mask leaves out positions before labels that count, but "
      "masks have no effect: a token is predicted from all before it. Leave "
      "those positions out of input_ids, or set the labels to -100"));
}

absl::Status ResolveEvaluation(const NewJob& job,
                               const v1::InputReport& validation,
                               int64_t chunks, ResolvedInputs& resolved) {
  const spec::JobSpec& spec = resolved.spec;
  if (!spec.evaluate.has_value()) return absl::OkStatus();
  if (validation.sequences() < 1) {
    return AtKey(job, "data.validation",
                 "holds not one sequence; give a larger share or more data",
                 common::status::kReasonInvalidSpec);
  }
  const int64_t size = spec.batch.micro_batch.value_or(1);
  // 128 bits: evaluate.batches may be up to kMaxSteps.
  const __int128 wanted = static_cast<__int128>(spec.evaluate->batches) *
                          spec.batch.global / spec.replicas;
  // Rows past the last sequence count for nothing.
  const auto rows =
      static_cast<int64_t>(std::min<__int128>(wanted, validation.sequences()));
  const int64_t used = (rows + size - 1) / size;
  const int64_t bytes =
      CommandsBytes({.commands = used * chunks,
                     .micro_batches = used,
                     .stages = chunks * spec.pipeline.stages.value_or(1)});
  if (bytes > RoomForStep()) {
    return AtKey(
        job, "evaluate.batches",
        absl::StrCat(used,
                     " validation micro-batches are too many: the "
                     "commands of an evaluation take up to ",
                     bytes, " bytes, and a message has room for ",
                     RoomForStep(),
                     "; evaluate fewer batches or raise batch.micro_batch"),
        common::status::kReasonInvalidSpec);
  }
  resolved.evaluation_micro_batches = static_cast<int>(used);
  return absl::OkStatus();
}

}  // namespace

absl::Status PlaceRefusal(const NewJob& job, const absl::Status& refusal) {
  const std::string reason = common::status::Reason(refusal);
  return AtKey(job, common::status::KeyPath(refusal),
               std::string(refusal.message()),
               reason.empty() ? common::status::kReasonInvalidSpec : reason);
}

absl::StatusOr<ResolvedInputs> ResolveInputs(
    const NewJob& job, const std::vector<CheckedInputs>& answers, int chunks) {
  for (const CheckedInputs& checked : answers) {
    if (checked.answer.has_failure()) return FailureOf(job, checked);
  }
  RETURN_IF_ERROR(CheckSameModel(job, answers));
  const CheckedInputs* first = nullptr;
  for (const CheckedInputs& checked : answers) {
    if (!checked.reads_data) continue;
    if (first == nullptr) first = &checked;
    RETURN_IF_ERROR(CheckSame(job, "data.train", *first, first->answer.train(),
                              checked, checked.answer.train()));
    RETURN_IF_ERROR(CheckSame(job, "data.validation", *first,
                              first->answer.validation(), checked,
                              checked.answer.validation()));
  }
  const v1::InputReport& train = first->answer.train();
  const v1::InputReport& validation = first->answer.validation();

  ResolvedInputs resolved;
  resolved.spec = job.spec;
  const std::vector<spec::Violation> violations = spec::ApplyDataFacts(
      {.first_line_tokens = train.line_tokens()}, resolved.spec);
  if (!violations.empty()) {
    return spec::ToStatus(violations, job.positions);
  }
  resolved.spec.data.sequence_length = train.sequence_length();
  RETURN_IF_ERROR(CheckTrain(job, train, resolved.spec));
  if (validation.largest_id() >= resolved.spec.model.vocab) {
    return AtKey(job, "data.validation",
                 absl::StrCat("has id ", validation.largest_id(),
                              "; the vocabulary has ",
                              resolved.spec.model.vocab, " ids"),
                 common::status::kReasonInvalidSpec);
  }
  resolved.sequences = train.sequences();
  RETURN_IF_ERROR(spec::ToStatus(
      spec::ResolveSteps(train.sequences(), resolved.spec), job.positions));
  resolved.steps = *resolved.spec.steps;
  RETURN_IF_ERROR(ResolveEvaluation(job, validation, chunks, resolved));
  NoteMask("data.train", train, resolved);
  if (validation.masked_line() != train.masked_line()) {
    NoteMask("data.validation", validation, resolved);
  }
  resolved.data_digest = common::digest::ToHex(common::digest::Sha256Of(
      absl::StrCat(train.fingerprint(), "\n", validation.fingerprint())));
  return resolved;
}

}  // namespace penstock::coordinator::dispatch
