// The job's data: training and validation sequences, opened and checked as a
// whole before anything else happens, and what every reader must agree on.
#ifndef PENSTOCK_SERVER_DATA_DATASET_H_
#define PENSTOCK_SERVER_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/data/input_files.h"
#include "server/data/sequence_source.h"
#include "server/data/vocabulary.h"

namespace penstock::server::data {

// What a reader saw of training or validation data. The first and the last
// stage both read: the coordinator refuses the job unless their fingerprints
// are equal.
struct InputReport {
  // SHA-256 in hex over format, text field (where used), sequence length,
  // sizes and bytes of the files, and which of their sequences are meant. No
  // paths: hosts may mount the data elsewhere.
  std::string fingerprint;
  Format format = Format::kText;
  int64_t sequences = 0;        // Windows or lines of this part.
  int64_t tokens = 0;           // In all of the files.
  int64_t sequence_length = 0;  // Tokens predicted a sequence, resolved.
  int64_t line_tokens = 0;      // Token lines: input_ids a line; else 0.
  int64_t largest_id = 0;       // In all of the files, labels included.
  std::string masked_line;      // As Content's, of all of the files.
  std::vector<ListedFile> files;
};

// Thread-safe.
class Dataset {
 public:
  // At most one of validation_path and validation_millionths is given.
  struct Options {
    std::string train_path;
    std::string validation_path;  // "": none.
    // The last floor(share * n) of the n training windows or lines are for
    // validation, and training never reads them; in millionths, so that this
    // is exact.
    int64_t validation_millionths = 0;
    Format format = Format::kAuto;
    std::string field = "text";
    // nullopt: the first token line's count - 1; where there are no token
    // lines, `text_sequence_length`, and without that `context`.
    std::optional<int64_t> sequence_length;
    std::optional<int64_t> text_sequence_length;
    int64_t context = 0;            // model.context: no sequence may be longer.
    int64_t vocab = kNoVocabulary;  // model.vocab: every id must be below.
    PieceDone piece_done;           // While Open() reads; may be empty.
  };

  // Reads all files once. InvalidArgument with the key (data.train,
  // data.validation; also as common/status/key_path.h), the file and where it
  // is a line's fault the line: what OpenInput, FlatTokenStream and JsonLines
  // refuse, a sequence length other than the token lines' or more than the
  // context, fewer tokens than one sequence needs, a share that leaves no
  // validation or no training sequence.
  static absl::StatusOr<std::unique_ptr<Dataset>> Open(const Options& options);

  int64_t sequence_length() const { return train_->sequence_length(); }
  int64_t train_sequences() const { return train_report_.sequences; }
  int64_t validation_sequences() const {
    return validation_report_.has_value() ? validation_report_->sequences : 0;
  }
  const InputReport& train_report() const { return train_report_; }
  // nullopt: no validation data.
  const std::optional<InputReport>& validation_report() const {
    return validation_report_;
  }

  // Sequence `index` of [0, train_sequences()) or [0, validation_sequences()),
  // in file order. As SequenceSource::Read.
  absl::Status ReadTraining(int64_t index, const SequenceOut& out) const;
  absl::Status ReadValidation(int64_t index, const SequenceOut& out) const;

 private:
  Dataset() = default;

  // Constant after Open.
  std::unique_ptr<SequenceSource> train_;
  std::unique_ptr<SequenceSource> validation_;  // Null: the end of train_.
  InputReport train_report_;
  std::optional<InputReport> validation_report_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_DATASET_H_
