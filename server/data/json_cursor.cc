#include "server/data/json_cursor.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/text/utf8.h"
#include "server/data/quote.h"

namespace penstock::server::data {
namespace {

void AppendUtf8(uint32_t code, std::string* out) {
  if (out == nullptr) return;
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace

absl::Status JsonCursor::Error(absl::string_view why) const {
  return absl::InvalidArgumentError(
      absl::StrCat("not valid JSON at byte ", at_, ": ", why,
                   AtEnd() ? absl::string_view(", but the line ends")
                           : absl::string_view(", found "),
                   AtEnd() ? "" : Quote(text_.substr(at_, 16))));
}

void JsonCursor::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
    ++at_;
  }
}

bool JsonCursor::Take(char c) {
  if (AtEnd() || text_[at_] != c) return false;
  ++at_;
  return true;
}

absl::Status JsonCursor::Expect(char c) {
  if (Take(c)) return absl::OkStatus();
  return Error(absl::StrCat("expected ", absl::string_view(&c, 1)));
}

absl::Status JsonCursor::ExpectWord(absl::string_view word) {
  if (text_.substr(at_, word.size()) != word) return Error("expected a value");
  at_ += word.size();
  return absl::OkStatus();
}

absl::Status JsonCursor::TakeString(std::string* out) {
  if (out != nullptr) out->clear();
  RETURN_IF_ERROR(Expect('"'));
  while (true) {
    // Runs of plain ASCII are copied at once.
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= 0x20 && text_[at_] != '"' &&
           text_[at_] != '\\') {
      ++at_;
    }
    if (out != nullptr) out->append(text_.data() + begin, at_ - begin);
    if (AtEnd()) return Error("expected the string's end");
    if (Take('"')) return absl::OkStatus();
    if (Take('\\')) {
      RETURN_IF_ERROR(TakeEscape(out));
    } else if (static_cast<uint8_t>(text_[at_]) < 0x20) {
      return Error("control characters in strings must be escaped");
    } else {
      RETURN_IF_ERROR(TakeUtf8(out));
    }
  }
}

absl::Status JsonCursor::TakeEscape(std::string* out) {
  constexpr absl::string_view kLetters = "\"\\/bfnrt";
  constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const size_t which =
      AtEnd() ? absl::string_view::npos : kLetters.find(text_[at_]);
  if (which != absl::string_view::npos) {
    ++at_;
    if (out != nullptr) *out += kMeanings[which];
    return absl::OkStatus();
  }
  if (!Take('u')) return Error("expected an escape");
  ASSIGN_OR_RETURN(uint32_t code, TakeHex4());
  if (code >= 0xdc00 && code <= 0xdfff) return Error("a lone surrogate");
  if (code >= 0xd800 && code <= 0xdbff) {
    if (!Take('\\') || !Take('u')) return Error("a lone surrogate");
    ASSIGN_OR_RETURN(const uint32_t low, TakeHex4());
    if (low < 0xdc00 || low > 0xdfff) return Error("a lone surrogate");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(code, out);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> JsonCursor::TakeHex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    if (AtEnd() || !absl::ascii_isxdigit(text_[at_])) {
      return Error("expected four hexadecimal digits");
    }
    const char c = absl::ascii_tolower(text_[at_++]);
    code = code << 4 | static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return code;
}

absl::Status JsonCursor::TakeUtf8(std::string* out) {
  const size_t length = common::text::Utf8SequenceBytes(text_.substr(at_));
  if (length == 0) return Error("not UTF-8");
  if (out != nullptr) out->append(text_.data() + at_, length);
  at_ += length;
  return absl::OkStatus();
}

absl::StatusOr<JsonCursor::Number> JsonCursor::TakeNumber() {
  const auto take_digits = [this] {
    const size_t begin = at_;
    while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) ++at_;
    return at_ - begin;
  };
  const bool negative = Take('-');
  const size_t begin = at_;
  if (!Take('0') && take_digits() == 0) return Error("expected a number");
  Number number;
  const absl::string_view digits = text_.substr(begin, at_ - begin);
  number.exact = digits.size() < 19;
  if (number.exact) {
    for (const char c : digits)
      number.integer = number.integer * 10 + (c - '0');
    if (negative) number.integer = -number.integer;
  }
  if (Take('.')) {
    number.exact = false;
    if (take_digits() == 0) return Error("expected digits after the point");
  }
  if (Take('e') || Take('E')) {
    number.exact = false;
    if (!Take('+')) Take('-');
    if (take_digits() == 0) return Error("expected the exponent's digits");
  }
  return number;
}

absl::Status JsonCursor::SkipValue(int depth, int max_depth) {
  if (depth > max_depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("values are nested deeper than ", max_depth));
  }
  switch (Peek()) {
    case '{':
      return SkipObject(depth, max_depth);
    case '[':
      return SkipArray(depth, max_depth);
    case '"':
      return TakeString(nullptr);
    case 't':
      return ExpectWord("true");
    case 'f':
      return ExpectWord("false");
    case 'n':
      return ExpectWord("null");
    default:
      break;
  }
  if (Peek() != '-' && !absl::ascii_isdigit(Peek())) {
    return Error("expected a value");
  }
  return TakeNumber().status();
}

absl::Status JsonCursor::SkipObject(int depth, int max_depth) {
  RETURN_IF_ERROR(Expect('{'));
  SkipSpace();
  if (Take('}')) return absl::OkStatus();
  while (true) {
    SkipSpace();
    RETURN_IF_ERROR(TakeString(nullptr));
    SkipSpace();
    RETURN_IF_ERROR(Expect(':'));
    SkipSpace();
    RETURN_IF_ERROR(SkipValue(depth + 1, max_depth));
    SkipSpace();
    if (Take('}')) return absl::OkStatus();
    if (!Take(',')) return Error("expected , or }");
  }
}

absl::Status JsonCursor::SkipArray(int depth, int max_depth) {
  RETURN_IF_ERROR(Expect('['));
  SkipSpace();
  if (Take(']')) return absl::OkStatus();
  while (true) {
    SkipSpace();
    RETURN_IF_ERROR(SkipValue(depth + 1, max_depth));
    SkipSpace();
    if (Take(']')) return absl::OkStatus();
    if (!Take(',')) return Error("expected , or ]");
  }
}

}  // namespace penstock::server::data
