// One line of a .jsonl file: token lines {"input_ids": [...], "labels": [...]}
// and text lines {"text": "..."}. simdjson checks the whole line; of its values
// only what training reads is kept. Fuzzed against nlohmann-json
// (tests/fuzz/jsonl).
#ifndef PENSTOCK_SERVER_DATA_JSON_LINE_H_
#define PENSTOCK_SERVER_DATA_JSON_LINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/device/ops.h"

namespace penstock::server::data {

// A label that no loss is taken of, as Hugging Face marks it.
using device::kIgnoredLabel;

// Arrays and objects within the line's object are nested at most this deep.
inline constexpr int kMaxJsonDepth = 64;

// Reused from line to line, so that a scan does not allocate for each.
struct JsonLine {
  // Empty where the line has no input_ids (then has_tokens is false).
  bool has_tokens = false;
  std::vector<int32_t> input_ids;  // Each >= 0.
  // Aligned with input_ids, each >= 0 or kIgnoredLabel; empty where the line
  // has none (then has_labels is false).
  bool has_labels = false;
  std::vector<int32_t> labels;
  // Its attention_mask would leave out positions that labels after them are
  // predicted from; false without input_ids. (Training has no masks.)
  bool masks = false;
  // The text field, decoded to UTF-8; nullopt where the line has none or has
  // input_ids, which win.
  std::optional<std::string> text;
};

// ResourceExhausted, reason OUT_OF_MEMORY: no memory for `what`.
absl::Status NoMemory(absl::string_view what);
// For a line of so many bytes.
absl::Status NoMemoryForLine(size_t bytes);

// Keeps its memory from line to line. Thread-compatible.
class JsonLineParser {
 public:
  JsonLineParser();
  ~JsonLineParser();

  // Parses `line` into `out`; the text field is called `field`. Whitespace
  // around the object is allowed.
  //
  // InvalidArgument: not one JSON object ("not valid JSON at byte N: ...", N
  // from 0), a number beyond f64 and 64 bits, values nested too deep, a key of
  // ours twice, input_ids that are no array of integers from 0 to 2^31-1,
  // labels that are no array of such or -100, labels and input_ids of different
  // lengths, a text that is no string. labels without input_ids are ignored.
  // NoMemoryForLine(). The caller adds file and line number.
  absl::Status Parse(absl::string_view line, absl::string_view field,
                     JsonLine& out);

 private:
  struct Document;  // simdjson's headers stay out of the room's.
  const std::unique_ptr<Document> document_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_LINE_H_
