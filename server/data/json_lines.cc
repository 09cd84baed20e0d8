#include "server/data/json_lines.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "server/data/line_scanner.h"

namespace penstock::server::data {
namespace {

absl::Status CheckIds(absl::string_view key, const std::vector<int32_t>& ids,
                      absl::string_view where, int64_t vocab,
                      int32_t& largest) {
  for (size_t i = 0; i < ids.size(); ++i) {
    largest = std::max(largest, ids[i]);
    if (ids[i] >= vocab) {
      return TooSmallVocabulary(absl::StrCat(where, ": ", key, "[", i, "]"),
                                ids[i], vocab);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckText(absl::string_view text, absl::string_view where,
                       int64_t vocab, int32_t& largest) {
  // The newline after each text is a token too.
  largest = std::max<int32_t>(largest, '\n');
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t id = static_cast<uint8_t>(text[i]);
    largest = std::max(largest, id);
    if (id >= vocab) {
      return TooSmallVocabulary(
          absl::StrCat(where, ": byte ", i, " of the text"), id, vocab);
    }
  }
  if (vocab > '\n') return absl::OkStatus();
  return TooSmallVocabulary(absl::StrCat(where, ": the newline after the text"),
                            '\n', vocab);
}

}  // namespace

// The one pass over all lines. Confined to Open.
class JsonLines::Scan {
 public:
  Scan(const Options& options, JsonLines& lines)
      : vocab_(options.vocab), lines_(lines) {}

  // May throw std::bad_alloc.
  absl::StatusOr<Content> Run() {
    common::digest::Sha256 sha;
    for (size_t i = 0; i < lines_.input_.files.size(); ++i) {
      file_ = i;
      const InputFile& file = *lines_.input_.files[i];
      LineScanner scanner;
      const auto visit = [&](const Line& line) {
        return Add(static_cast<int32_t>(i), line);
      };
      sha.UpdateU64(file.bytes());
      RETURN_IF_ERROR(file.Scan([&](int64_t, absl::string_view piece) {
        sha.Update(piece);
        return InFile(file, scanner.Add(piece, visit));
      }));
      RETURN_IF_ERROR(InFile(file, scanner.Finish(visit)));
    }
    if (lines_.records_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          lines_.input_.files[0]->path(), ": holds no line but blank ones"));
    }
    if (lines_.kind_ == LineKind::kText) {
      lines_.text_starts_.push_back(content_.tokens);
    }
    content_.digest = sha.Finish();
    return content_;
  }

  // Of where Run() ended.
  absl::Status NoMemoryHere() const {
    constexpr size_t kKept = sizeof(Record) + sizeof(int64_t);
    return common::status::Annotate(
        NoMemory(absl::StrCat("a line after the first ", lines_.count(),
                              ", or for where lines are (up to ", kKept,
                              " bytes each)")),
        lines_.input_.files[file_]->path());
  }

 private:
  // What Add says has its place already; the scanner's own errors have not.
  absl::Status InFile(const InputFile& file, const absl::Status& status) const {
    return placed_ ? status : common::status::Annotate(status, file.path());
  }

  absl::Status Add(int32_t file, const Line& line) {
    const std::string where =
        absl::StrCat(lines_.input_.files[file]->path(), ":", line.number);
    absl::Status status = parser_.Parse(line.bytes, lines_.field_, parsed_);
    if (!status.ok()) {
      status = common::status::Annotate(status, where);
    } else {
      status = Take(where);
    }
    placed_ = !status.ok();
    lines_.records_.push_back({.offset = line.offset,
                               .bytes = static_cast<int32_t>(line.bytes.size()),
                               .file = file});
    return status;
  }

  absl::Status Take(const std::string& where) {
    if (!parsed_.has_tokens && !parsed_.text.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": has neither input_ids nor the text field ",
                       common::text::Quoted(lines_.field_), " (data.field)"));
    }
    const LineKind kind =
        parsed_.has_tokens ? LineKind::kTokens : LineKind::kText;
    if (first_.empty()) {
      first_ = where;
      lines_.kind_ = kind;
    } else if (kind != lines_.kind_) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": has ", kind == LineKind::kTokens ? "" : "no ",
                       "input_ids, but the first line (", first_, ") has ",
                       kind == LineKind::kTokens ? "none" : "them"));
    }
    return kind == LineKind::kTokens ? TakeTokens(where) : TakeText(where);
  }

  absl::Status TakeTokens(const std::string& where) {
    const int64_t tokens = static_cast<int64_t>(parsed_.input_ids.size());
    if (tokens < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": has ", tokens,
                       " input_ids; it needs 2, as the last is only a label"));
    }
    if (lines_.records_.empty()) lines_.line_tokens_ = tokens;
    if (tokens != lines_.line_tokens_) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": has ", tokens, " input_ids, but the first line (", first_,
          ") has ", lines_.line_tokens_, "; all lines must be as long"));
    }
    content_.tokens += tokens;
    if (parsed_.masks && content_.masked_line.empty()) {
      content_.masked_line = where;
    }
    RETURN_IF_ERROR(CheckIds("input_ids", parsed_.input_ids, where, vocab_,
                             content_.largest_id));
    return CheckIds("labels", parsed_.labels, where, vocab_,
                    content_.largest_id);
  }

  absl::Status TakeText(const std::string& where) {
    lines_.text_starts_.push_back(content_.tokens);
    content_.tokens += static_cast<int64_t>(parsed_.text->size()) + 1;
    return CheckText(*parsed_.text, where, vocab_, content_.largest_id);
  }

  const int64_t vocab_;
  JsonLines& lines_;
  Content content_;
  JsonLineParser parser_;
  JsonLine parsed_;
  std::string first_;  // Where the first line is.
  bool placed_ = false;
  size_t file_ = 0;
};

absl::StatusOr<JsonLines::Scanned> JsonLines::Open(Input input,
                                                   const Options& options) {
  CHECK(input.format == Format::kJsonl);
  std::unique_ptr<JsonLines> lines(
      new JsonLines(std::move(input), options.field));
  Scan scan(options, *lines);
  // The standard containers say it by an exception, which ends here.
  try {
    ASSIGN_OR_RETURN(const Content content, scan.Run());
    return Scanned{.lines = std::move(lines), .content = content};
  } catch (const std::bad_alloc&) {
    return scan.NoMemoryHere();
  }
}

int64_t JsonLines::text_line_at(int64_t offset) const {
  return std::upper_bound(text_starts_.begin(), text_starts_.end(), offset) -
         text_starts_.begin() - 1;
}

absl::Status JsonLines::Read(int64_t index, JsonLine& out) const {
  CHECK(index >= 0 && index < count());
  const Record& record = records_[index];
  absl::Status status;
  try {
    status = ReadAgain(index, out);
  } catch (const std::bad_alloc&) {
    status = NoMemoryForLine(record.bytes);
  }
  if (!absl::IsResourceExhausted(status)) return status;
  return common::status::Annotate(
      status, absl::StrCat(input_.files[record.file]->path(),
                           ", the line at byte ", record.offset));
}

absl::Status JsonLines::ReadAgain(int64_t index, JsonLine& out) const {
  const Record& record = records_[index];
  const InputFile& file = *input_.files[record.file];
  std::string bytes(record.bytes, '\0');
  RETURN_IF_ERROR(file.Read(
      record.offset, absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()),
                                    bytes.size())));
  const absl::Status parsed = JsonLineParser().Parse(bytes, field_, out);
  if (absl::IsResourceExhausted(parsed)) return parsed;
  // The same bytes passed the same checks in Open.
  const bool same =
      parsed.ok() &&
      (kind_ == LineKind::kTokens
           ? static_cast<int64_t>(out.input_ids.size()) == line_tokens_
           : out.text.has_value() &&
                 static_cast<int64_t>(out.text->size()) + 1 ==
                     text_starts_[index + 1] - text_starts_[index]);
  if (same) return absl::OkStatus();
  return FileChanged(file.path(),
                     absl::StrCat("the line at byte ", record.offset,
                                  " was changed since the job read it"));
}

}  // namespace penstock::server::data
