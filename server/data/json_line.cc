#include "server/data/json_line.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/data/json_cursor.h"
#include "server/data/quote.h"

namespace penstock::server::data {
namespace {

enum class TokenKind { kId, kLabel };

absl::Status NoInteger(absl::string_view key, size_t index, TokenKind kind) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, "[", index, "] must be an integer from 0 to 2147483647",
                   kind == TokenKind::kLabel ? ", or -100" : ""));
}

absl::Status TakeTokens(JsonCursor& cursor, absl::string_view key,
                        TokenKind kind, std::vector<int32_t>& out) {
  out.clear();
  if (cursor.Peek() != '[') {
    // What stands there instead must still be JSON.
    RETURN_IF_ERROR(cursor.SkipValue(1, kMaxJsonDepth));
    return absl::InvalidArgumentError(
        absl::StrCat(key, " must be an array of integers"));
  }
  RETURN_IF_ERROR(cursor.Expect('['));
  cursor.SkipSpace();
  if (cursor.Take(']')) return absl::OkStatus();
  while (true) {
    cursor.SkipSpace();
    const char first = cursor.Peek();
    if (first != '-' && (first < '0' || first > '9')) {
      RETURN_IF_ERROR(cursor.SkipValue(2, kMaxJsonDepth));
      return NoInteger(key, out.size(), kind);
    }
    ASSIGN_OR_RETURN(const JsonCursor::Number number, cursor.TakeNumber());
    const bool token = number.exact && number.integer >= 0 &&
                       number.integer <= std::numeric_limits<int32_t>::max();
    const bool ignored = kind == TokenKind::kLabel && number.exact &&
                         number.integer == kIgnoredLabel;
    if (!token && !ignored) return NoInteger(key, out.size(), kind);
    out.push_back(static_cast<int32_t>(number.integer));
    cursor.SkipSpace();
    if (cursor.Take(']')) return absl::OkStatus();
    if (!cursor.Take(',')) return cursor.Error("expected , or ]");
  }
}

absl::Status Twice(absl::string_view key) {
  return absl::InvalidArgumentError(
      absl::StrCat("the key ", Quote(key), " is there twice"));
}

// Reads one object. labels count only beside input_ids, the text field only
// without: what a text set keeps under "labels" is its own affair. So values
// that may turn out not to count are skipped first, and read at the end.
class LineReader {
 public:
  LineReader(absl::string_view line, absl::string_view field, JsonLine& out)
      : cursor_(line), field_(field), out_(out) {}

  absl::Status Read() {
    cursor_.SkipSpace();
    if (!cursor_.Take('{')) return cursor_.Error("expected an object");
    RETURN_IF_ERROR(TakeMembers());
    cursor_.SkipSpace();
    if (!cursor_.AtEnd()) return cursor_.Error("expected the end of the line");
    return out_.has_tokens ? FinishTokens() : FinishText();
  }

 private:
  absl::Status TakeMembers() {
    cursor_.SkipSpace();
    if (cursor_.Take('}')) return absl::OkStatus();
    while (true) {
      cursor_.SkipSpace();
      RETURN_IF_ERROR(cursor_.TakeString(&key_));
      cursor_.SkipSpace();
      RETURN_IF_ERROR(cursor_.Expect(':'));
      cursor_.SkipSpace();
      RETURN_IF_ERROR(TakeMember());
      cursor_.SkipSpace();
      if (cursor_.Take('}')) return absl::OkStatus();
      if (!cursor_.Take(',')) return cursor_.Error("expected , or }");
    }
  }

  absl::Status TakeMember() {
    if (key_ == "input_ids") {
      if (out_.has_tokens) return Twice(key_);
      out_.has_tokens = true;
      return TakeTokens(cursor_, key_, TokenKind::kId, out_.input_ids);
    }
    if (key_ == "labels") {
      if (labels_seen_) return Twice(key_);
      labels_seen_ = true;
      if (out_.has_tokens) {
        out_.has_labels = true;
        return TakeTokens(cursor_, key_, TokenKind::kLabel, out_.labels);
      }
      labels_at_ = cursor_;
    }
    if (key_ == field_) {
      if (text_at_.has_value()) return Twice(key_);
      text_at_ = cursor_;
    }
    return cursor_.SkipValue(1, kMaxJsonDepth);
  }

  absl::Status FinishTokens() {
    if (labels_at_.has_value()) {
      out_.has_labels = true;
      RETURN_IF_ERROR(
          TakeTokens(*labels_at_, "labels", TokenKind::kLabel, out_.labels));
    }
    if (out_.has_labels && out_.labels.size() != out_.input_ids.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          out_.labels.size(), " labels for ", out_.input_ids.size(),
          " input_ids; they must be as many"));
    }
    return absl::OkStatus();
  }

  absl::Status FinishText() {
    if (!text_at_.has_value()) return absl::OkStatus();
    if (text_at_->Peek() != '"') {
      return absl::InvalidArgumentError(
          absl::StrCat("the text field ", Quote(field_), " must be a string"));
    }
    return text_at_->TakeString(&out_.text.emplace());
  }

  JsonCursor cursor_;
  const absl::string_view field_;
  JsonLine& out_;
  std::string key_;
  bool labels_seen_ = false;
  std::optional<JsonCursor> labels_at_;  // Labels that came before input_ids.
  std::optional<JsonCursor> text_at_;
};

}  // namespace

absl::Status ParseJsonLine(absl::string_view line, absl::string_view field,
                           JsonLine& out) {
  out.has_tokens = false;
  out.input_ids.clear();
  out.has_labels = false;
  out.labels.clear();
  out.text.reset();
  return LineReader(line, field, out).Read();
}

}  // namespace penstock::server::data
