#include "server/data/dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "common/status/status_macros.h"
#include "server/data/open_source.h"

namespace penstock::server::data {
namespace {

constexpr int64_t kMillion = 1000000;

// Which of a source's sequences a report is about; half-open.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

std::string Fingerprint(const OpenedSource& opened, absl::string_view field,
                        Range range) {
  common::digest::Sha256 sha;
  const auto add_text = [&sha](absl::string_view text) {
    sha.UpdateU64(text.size());
    sha.Update(text);
  };
  add_text("penstock-input-1");
  add_text(Name(opened.format));
  const bool uses_field =
      opened.format == Format::kJsonl && opened.line_tokens == 0;
  add_text(uses_field ? field : "");
  sha.UpdateU64(opened.source->sequence_length());
  sha.UpdateU64(range.begin);
  sha.UpdateU64(range.end);
  sha.Update(absl::string_view(
      reinterpret_cast<const char*>(opened.content.digest.data()),
      opened.content.digest.size()));
  return common::digest::ToHex(sha.Finish());
}

InputReport Report(const OpenedSource& opened, absl::string_view field,
                   Range range) {
  return {.fingerprint = Fingerprint(opened, field, range),
          .format = opened.format,
          .sequences = range.end - range.begin,
          .tokens = opened.content.tokens,
          .sequence_length = opened.source->sequence_length(),
          .line_tokens = opened.line_tokens,
          .largest_id = opened.content.largest_id,
          .masked_line = opened.content.masked_line,
          .files = opened.files};
}

absl::StatusOr<OpenedSource> OpenKey(absl::string_view key,
                                     const SourceOptions& options) {
  auto opened = OpenSource(options);
  if (opened.ok()) return opened;
  return common::status::WithKeyPath(
      common::status::Annotate(opened.status(), key), key);
}

// How many of `sequences` are for validation: the exact floor(share * n).
absl::StatusOr<int64_t> HeldOut(int64_t sequences, int64_t millionths) {
  if (millionths == 0) return 0;
  const auto held_out = static_cast<int64_t>(static_cast<__int128>(sequences) *
                                             millionths / kMillion);
  if (millionths < 0 || millionths >= kMillion || held_out < 1 ||
      held_out >= sequences) {
    return common::status::WithKeyPath(
        absl::InvalidArgumentError(absl::StrCat(
            "data.validation: a share of ",
            static_cast<double>(millionths) / 1e6, " of ", sequences,
            sequences == 1 ? " sequence" : " sequences", " leaves none for ",
            held_out < 1 ? "validation" : "training")),
        "data.validation");
  }
  return held_out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const Options& options) {
  CHECK(options.validation_path.empty() || options.validation_millionths == 0);
  SourceOptions source{.path = options.train_path,
                       .format = options.format,
                       .field = options.field,
                       .sequence_length = options.sequence_length,
                       .text_sequence_length = options.text_sequence_length,
                       .context = options.context,
                       .vocab = options.vocab,
                       .piece_done = options.piece_done};
  ASSIGN_OR_RETURN(OpenedSource train, OpenKey("data.train", source));
  const int64_t sequences = train.source->sequences();
  ASSIGN_OR_RETURN(const int64_t held_out,
                   HeldOut(sequences, options.validation_millionths));
  std::unique_ptr<Dataset> dataset(new Dataset());
  const Range kept{.begin = 0, .end = sequences - held_out};
  dataset->train_report_ = Report(train, options.field, kept);
  if (held_out > 0) {
    dataset->validation_report_ =
        Report(train, options.field, {.begin = kept.end, .end = sequences});
  }
  if (!options.validation_path.empty()) {
    source.path = options.validation_path;
    source.sequence_length = train.source->sequence_length();
    ASSIGN_OR_RETURN(OpenedSource validation,
                     OpenKey("data.validation", source));
    dataset->validation_report_ =
        Report(validation, options.field,
               {.begin = 0, .end = validation.source->sequences()});
    dataset->validation_ = std::move(validation.source);
  }
  dataset->train_ = std::move(train.source);
  return dataset;
}

absl::Status Dataset::ReadTraining(int64_t index,
                                   const SequenceOut& out) const {
  CHECK(index >= 0 && index < train_sequences());
  return train_->Read(index, out);
}

absl::Status Dataset::ReadValidation(int64_t index,
                                     const SequenceOut& out) const {
  CHECK(index >= 0 && index < validation_sequences());
  if (validation_ != nullptr) return validation_->Read(index, out);
  return train_->Read(train_sequences() + index, out);
}

}  // namespace penstock::server::data
