#include "coordinator/schedule/text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr size_t kMaxDigits = 7;  // Numbers stay far below INT_MAX.

// One file being read; knows where it is.
class Reader {
 public:
  Reader(absl::string_view text, const CsvOptions& options)
      : text_(text), options_(options) {}

  absl::StatusOr<std::vector<std::vector<Command>>> Rows() {
    std::vector<std::vector<Command>> rows;
    absl::ConsumePrefix(&text_, "\xef\xbb\xbf");  // As spreadsheets begin it.
    while (!text_.empty()) {
      ++line_;
      const size_t end = text_.find('\n');
      absl::string_view line = text_.substr(0, end);
      text_ = end == absl::string_view::npos ? absl::string_view()
                                             : text_.substr(end + 1);
      absl::ConsumeSuffix(&line, "\r");
      if (absl::StartsWith(line, "#")) continue;
      if (absl::StripAsciiWhitespace(line).empty()) {
        return Error(1, "empty line: every row holds one rank's commands");
      }
      if (static_cast<int>(rows.size()) == options_.ranks) {
        return Error(
            1, absl::StrCat("row ", rows.size() + 1, ", but there ", "are ",
                            options_.ranks, " ranks and a row for each"));
      }
      ASSIGN_OR_RETURN(std::vector<Command> row, Row(line));
      rows.push_back(std::move(row));
    }
    if (static_cast<int>(rows.size()) != options_.ranks) {
      ++line_;
      return Error(1, absl::StrCat("the file ends after ", rows.size(),
                                   " rows, but there are ", options_.ranks,
                                   " ranks and a row for each"));
    }
    return rows;
  }

 private:
  absl::Status Error(size_t column, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.name, ":", line_, ":", column, ": ", what));
  }

  absl::StatusOr<std::vector<Command>> Row(absl::string_view line) const {
    std::vector<Command> row;
    size_t begin = 0;
    while (begin <= line.size()) {
      size_t end = line.find(',', begin);
      if (end == absl::string_view::npos) end = line.size();
      absl::string_view cell = line.substr(begin, end - begin);
      const size_t blanks =
          cell.size() - absl::StripLeadingAsciiWhitespace(cell).size();
      cell = absl::StripAsciiWhitespace(cell);
      if (!cell.empty()) {
        ASSIGN_OR_RETURN(const Command command, Cell(begin + blanks + 1, cell));
        row.push_back(command);
      }
      begin = end + 1;
    }
    return row;
  }

  absl::StatusOr<Command> Cell(size_t column, absl::string_view cell) const {
    size_t at = 0;
    const auto error = [&](absl::string_view what) {
      return Error(column + at,
                   absl::StrCat(common::text::Quoted(cell), ": ", what));
    };
    Command command;
    std::string wrong = Number("stage number", cell, &at, &command.stage);
    if (!wrong.empty()) return error(wrong);

    size_t letters = at;
    while (letters < cell.size() &&
           (absl::ascii_isalpha(cell[letters]) || cell[letters] == '_')) {
      ++letters;
    }
    const absl::string_view name = cell.substr(at, letters - at);
    if (absl::StrContains(name, "SEND") || absl::StrContains(name, "RECV")) {
      return error(
          "sends and receives are not written: they are added and checked by "
          "lowering; give the compute commands only");
    }
    const std::optional<Op> op =
        name.size() == 1 ? OpFromLetter(name[0]) : std::nullopt;
    if (!op.has_value()) {
      return error("expected an operation: F, B, I or W");
    }
    command.op = *op;
    at = letters;

    wrong = Number("micro-batch number", cell, &at, &command.micro_batch);
    if (!wrong.empty()) return error(wrong);
    if (at != cell.size()) {
      return error("text after the command; commands end at a comma");
    }
    return command;
  }

  // Reads digits at *at. Returns what is wrong, or "" and advances *at.
  static std::string Number(absl::string_view what, absl::string_view cell,
                            size_t* at, int* number) {
    size_t end = *at;
    while (end < cell.size() && absl::ascii_isdigit(cell[end])) ++end;
    if (end == *at) return absl::StrCat("expected a ", what);
    if (end - *at > kMaxDigits) {
      return absl::StrCat("the ", what, " is too long");
    }
    if (end - *at > 1 && cell[*at] == '0') {
      return absl::StrCat("the ", what, " has a leading zero");
    }
    *number = 0;
    for (; *at < end; ++*at) *number = *number * 10 + (cell[*at] - '0');
    return "";
  }

  absl::string_view text_;
  const CsvOptions& options_;
  int line_ = 0;
};

// How many commands are not on the rank that `placement` gives their stage.
int Strays(const std::vector<std::vector<Command>>& rows,
           const Placement& placement) {
  int strays = 0;
  for (int r = 0; r < placement.ranks; ++r) {
    for (const Command& c : rows[r]) {
      strays += c.stage < placement.stages() && placement.rank_of(c.stage) != r;
    }
  }
  return strays;
}

}  // namespace

absl::StatusOr<Schedule> ParseCsv(absl::string_view text,
                                  const CsvOptions& options) {
  RETURN_IF_ERROR(
      CheckShape(options.name, {.ranks = options.ranks,
                                .chunks = options.chunks.value_or(1),
                                .micro_batches = options.micro_batches}));
  if (static_cast<int64_t>(text.size()) > kMaxCsvBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.name, ": has ", text.size(), " bytes; at most ", kMaxCsvBytes,
        " (", kMaxCsvBytes >> 20, " MiB) are allowed"));
  }
  Schedule schedule{.name = options.name,
                    .placement = {},
                    .micro_batches = options.micro_batches,
                    .orders = {}};
  ASSIGN_OR_RETURN(schedule.orders, Reader(text, options).Rows());
  int chunks = options.chunks.value_or(1);
  if (!options.chunks.has_value()) {
    for (const auto& row : schedule.orders) {
      for (const Command& c : row) {
        chunks = std::max(chunks, c.stage / options.ranks + 1);
      }
    }
  }
  RETURN_IF_ERROR(
      CheckShape(options.name, {.ranks = options.ranks,
                                .chunks = chunks,
                                .micro_batches = options.micro_batches}));
  const Placement loop =
      LoopPlacement({.ranks = options.ranks, .chunks = chunks});
  const Placement v = VPlacement({.ranks = options.ranks, .chunks = chunks});
  const bool is_v = Strays(schedule.orders, v) < Strays(schedule.orders, loop);
  schedule.placement = is_v ? v : loop;
  return schedule;
}

std::string PrintCsv(const Schedule& schedule) {
  std::string text;
  for (const auto& order : schedule.orders) {
    absl::StrAppend(&text,
                    absl::StrJoin(order, ",",
                                  [](std::string* out, const Command& command) {
                                    absl::StrAppend(out, ToString(command));
                                  }),
                    "\n");
  }
  return text;
}

}  // namespace penstock::coordinator::schedule
