// A set of .jsonl files as records: where each line is, what all lines hold.
// The first line decides whether these are token lines or text lines.
#ifndef PENSTOCK_SERVER_DATA_JSON_LINES_H_
#define PENSTOCK_SERVER_DATA_JSON_LINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/data/input_files.h"
#include "server/data/json_line.h"
#include "server/data/token_stream.h"
#include "server/data/vocabulary.h"

namespace penstock::server::data {

enum class LineKind { kTokens, kText };

// Thread-safe.
class JsonLines {
 public:
  struct Options {
    std::string field;  // Of the text, in lines without input_ids.
    // Ids, labels and text bytes must be below; kNoVocabulary: any may be.
    int64_t vocab = kNoVocabulary;
  };
  struct Scanned;

  // Reads all of `input` once and checks every line. REQUIRES: its format is
  // jsonl. InvalidArgument naming FILE:LINE: a line that JsonLineParser
  // refuses, of another kind or (tokens) another length than the first, of
  // fewer than 2 tokens, with an id that the vocabulary does not hold; no line
  // at all. NoMemory() for a line, or for where all lines are.
  static absl::StatusOr<Scanned> Open(Input input, const Options& options);

  LineKind kind() const { return kind_; }
  int64_t count() const { return static_cast<int64_t>(records_.size()); }
  // Token lines: how many input_ids each has, at least 2.
  int64_t line_tokens() const { return line_tokens_; }
  // Text lines: where in the stream of all texts line `index` starts; of
  // count(), the stream's length. Each text has a newline after it.
  int64_t text_start(int64_t index) const { return text_starts_[index]; }
  // Text lines: the line that holds byte `offset` of that stream.
  int64_t text_line_at(int64_t offset) const;

  // Reads line `index` again. REQUIRES: 0 <= index < count(). DataLoss when it
  // is no longer what was checked; NoMemoryForLine().
  absl::Status Read(int64_t index, JsonLine& out) const;

 private:
  class Scan;
  struct Record {
    int64_t offset = 0;
    int32_t bytes = 0;
    int32_t file = 0;
  };

  // May throw std::bad_alloc.
  absl::Status ReadAgain(int64_t index, JsonLine& out) const;

  JsonLines(Input input, std::string field)
      : input_(std::move(input)), field_(std::move(field)) {}

  // Constant after Open.
  Input input_;
  std::string field_;
  LineKind kind_ = LineKind::kTokens;
  int64_t line_tokens_ = 0;
  std::vector<Record> records_;
  std::vector<int64_t> text_starts_;
};

struct JsonLines::Scanned {
  std::unique_ptr<JsonLines> lines;
  Content content;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_LINES_H_
